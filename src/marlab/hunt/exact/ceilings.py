"""How well anybody can predict rule-based players: exact scores of predictors that know their rules.

A model of other agents cannot beat row 1 and has to approach row 3. Tie rule: a predictor's choices are ordered by
probability, equal ones by the lowest action number; `top1_split` shares the point among equal best guesses instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.rules import STAY, Game
from marlab.hunt.players.rollout import moments
from marlab.hunt.players.rules import RulePlayers, rule_probabilities
from marlab.hunt.players.seats import Kind, parse_role
from marlab.lab.runs.rng import Rngs
from marlab.lab.stats import mean_interval

TIE_RULE = "ties go to the lowest action number"
GOALS = (Kind.NS, Kind.NH)
EPISODES_AT_ONCE = 1000


class Score(NamedTuple):
    """A predictor's mean scores over rows."""

    top1: float
    top3: float
    cross_entropy: float  # nats; infinite if it ever excludes what happens
    top1_split: float
    rows: int
    halves: tuple[float, ...]  # half widths of the 95 % intervals of the four scores; NaN from a single batch


@dataclass(frozen=True)
class Ceilings:
    """Scores against players that are NS or NH with equal chance, and against RAND players."""

    known: Score  # 1. the true type is given
    mixture: Score  # 2. half NS, half NH, whatever happens
    bayes: Score  # 3. exact belief from the actions of this episode
    always_stay: float  # share of rows a constant "stay" gets right
    uniform: Score  # uniform over legal actions, against RAND
    belief: tuple[float, ...]  # mean belief in the true type at t = 0, 1, ...


class _Tally:
    """Sums of one predictor's scores, batch by batch of whole episodes."""

    def __init__(self) -> None:
        self._batches: list[Tensor] = []  # each [5]: four sums of scores and the number of rows

    def new_batch(self) -> None:
        self._batches.append(torch.zeros(5, dtype=torch.float64))

    def add(self, predicted: Tensor, action: Tensor) -> None:
        """Score distributions [R, A] on the actions [R] that happened."""
        chance = predicted.gather(1, action.unsqueeze(1))  # [R, 1]
        equal = predicted == chance
        before = (predicted > chance) | (equal & (torch.arange(predicted.shape[1]) < action.unsqueeze(1)))
        rank = before.sum(1)  # 0: the best guess
        is_best = ~(predicted > chance).any(1)
        scores = (rank == 0, rank < 3, -chance.squeeze(1).double().log(), is_best / equal.sum(1), rank >= 0)
        self._batches[-1] += torch.stack([score.double().sum() for score in scores])

    def score(self) -> Score:
        """Means over all rows; rows of an episode depend on each other, so intervals compare batches of episodes."""
        batches = torch.stack(self._batches)
        total = batches.sum(0)
        means = (batches[:, :4] / batches[:, 4:].clamp_min(1)).numpy()
        _, low, high = mean_interval(means)
        top1, top3, cross_entropy, split = (total[:4] / total[4]).tolist()
        return Score(top1, top3, cross_entropy, split, int(total[4]), tuple(((high - low) / 2).tolist()))


def ceilings(game: Game, episodes: int, rngs: Rngs) -> Ceilings:
    """Measure the ceilings of a stag hunt (on the CPU) on `episodes` fresh episodes."""
    known, mixture, bayes, uniform = _Tally(), _Tally(), _Tally(), _Tally()
    belief_sum = torch.zeros(game.config.final_time, 2, dtype=torch.float64)  # sum and rows at each time
    stays = 0
    players = RulePlayers(game, [parse_role("MIX(0.5)")] * game.players)
    for size in _sizes(episodes):
        for tally in (known, mixture, bayes):
            tally.new_batch()
        generator = rngs.torch("ceilings")
        memory = players.begin(size, generator)
        true = (memory["type"] == Kind.NH).long()  # [B, n] index of GOALS
        belief = torch.full((size, game.players, len(GOALS)), 1.0 / len(GOALS))
        for t, moment in enumerate(moments(game, players, game.reset(size, generator), memory, generator)):
            rows = moment.running.unsqueeze(1) & moment.view.state.alive  # [B, n]
            by_goal = rule_probabilities(players, moment.view, GOALS)  # [B, n, 2, A]
            action = moment.outcome.executed
            taken = action.clamp_max(game.actions - 1)  # rows of absent players are not counted
            mine = by_goal.gather(2, true.view(*true.shape, 1, 1).expand(-1, -1, 1, game.actions)).squeeze(2)
            known.add(mine[rows], action[rows])
            mixture.add(by_goal.mean(2)[rows], action[rows])
            bayes.add((by_goal * belief.unsqueeze(3)).sum(2)[rows], action[rows])
            stays += int((action[rows] == STAY).sum())
            now = belief.gather(2, true.unsqueeze(2)).squeeze(2)[rows]
            belief_sum[t] += torch.tensor([now.double().sum(), now.numel()], dtype=torch.float64)
            likelihood = by_goal.gather(3, taken.view(*taken.shape, 1, 1).expand(-1, -1, len(GOALS), 1)).squeeze(3)
            belief = _updated(belief, likelihood, rows)
    _random_rows(game, episodes, rngs, uniform)
    reached = belief_sum[belief_sum[:, 1] > 0]
    row_count = known.score().rows
    return Ceilings(
        known.score(),
        mixture.score(),
        bayes.score(),
        stays / row_count,
        uniform.score(),
        tuple((reached[:, 0] / reached[:, 1]).tolist()),
    )


def _updated(belief: Tensor, likelihood: Tensor, rows: Tensor) -> Tensor:
    """Bayes' rule [B, n, goals]; an observation that every goal excludes changes nothing."""
    joint = belief * likelihood
    total = joint.sum(2, keepdim=True)
    usable = (total > 0) & rows.unsqueeze(2)
    return torch.where(usable, joint / total.clamp_min(1e-30), belief)


def _random_rows(game: Game, episodes: int, rngs: Rngs, uniform: _Tally) -> None:
    players = RulePlayers(game, [Kind.RAND] * game.players)
    generator = rngs.torch("random rows")
    for size in _sizes(max(1, episodes // 4)):  # RAND episodes have seven times the rows of the others
        uniform.new_batch()
        for moment in moments(game, players, game.reset(size, generator), players.begin(size, generator), generator):
            rows = moment.running.unsqueeze(1) & moment.view.state.alive
            predicted = players.probabilities(moment.view, moment.memory)
            uniform.add(predicted[rows], moment.outcome.executed[rows])


def _sizes(episodes: int) -> list[int]:
    whole, rest = divmod(episodes, EPISODES_AT_ONCE)
    return [EPISODES_AT_ONCE] * whole + ([rest] if rest else [])
