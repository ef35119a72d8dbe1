"""How fast and how surely beliefs find out what players want: in play, against rule-based players.

Letters: B games, n players, *P whom beliefs are about, G goals of the belief; the report is always about the two
goals stag and hare, to which a codebook's prototypes are translated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from marlab.hunt.data.dataset import Dataset
from marlab.hunt.game.build import game_with_blocks, make_game
from marlab.hunt.game.rules import Game
from marlab.hunt.others.at_play import LearnedLikelihoods, pretrained
from marlab.hunt.others.belief import GOAL_KINDS, HARE_GOAL, BeliefTracker, ExactLikelihoods, Likelihoods
from marlab.hunt.others.config import TRAINING_DISCOUNT, BeliefConfig
from marlab.hunt.others.models import LoadedModels
from marlab.hunt.players.policy import Memory
from marlab.hunt.players.rollout import Moment, moments
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role
from marlab.lab.runs.rng import Rngs

ENOUGH_STEPS = 4
"""A belief should turn within this many informative steps after a change of goal."""


@dataclass(frozen=True)
class BeliefSource:
    """Likelihoods, and how a belief over their goals reads as one over stag and hare."""

    likelihoods: Likelihoods
    to_goal: Tensor  # [2, G] probability of stag and hare under each goal
    evidence: Tensor | None = None  # [3, G] probability of each outcome under each goal; None for {stag, hare}
    first: Tensor | None = None  # [G] what is believed of strangers; None: all goals are as probable

    def tracker(self, game: Game, config: BeliefConfig) -> BeliefTracker:
        return BeliefTracker(game, self.likelihoods, config, self.evidence, self.first)

    def read(self, belief: Tensor) -> Tensor:
        """[*S, 2] belief in stag and hare from beliefs [*S, G]."""
        return belief @ self.to_goal.T


def exact_source(game: Game) -> BeliefSource:
    """The rules themselves."""
    return BeliefSource(ExactLikelihoods(game), torch.eye(2, device=game.device))


def within_episode(
    game: Game, source: BeliefSource, config: BeliefConfig, games: int, rngs: Rngs, steps: int
) -> list[float]:
    """Mean belief in the true type at t = 0 ... steps, over players who are still there; NS and NH equally likely."""
    players = RulePlayers(game, [Role(Kind.MIX, 0.5)] * game.players)
    generator = rngs.torch("belief within")
    memory = players.begin(games, generator)
    played = moments(game, players, game.reset(games, generator), memory, generator)
    rows = []
    for moment, beliefs in followed(game, source, config, played, games):
        rows.append(_true_belief(source, beliefs["belief"], memory["type"], _there(moment, source)))
        if len(rows) > steps:
            break
    return rows


def across_episodes(
    game: Game, source: BeliefSource, config: BeliefConfig, games: int, rngs: Rngs, episodes: int
) -> list[float]:
    """Mean belief in the true type at the start of episodes 0 ... `episodes`; players keep their type, NS or NH."""
    players = RulePlayers(game, [Kind.NS] * game.players)
    generator = rngs.torch("belief across")
    coins = torch.rand(games, game.players, generator=generator, device=game.device)
    types = torch.where(coins < 0.5, int(Kind.NS), int(Kind.NH))
    tracker = source.tracker(game, config)
    beliefs = tracker.begin(games)
    everybody = torch.ones(games, dtype=torch.bool, device=game.device)
    all_pairs = everybody.view(-1, *[1] * len(source.likelihoods.about)).expand(-1, *source.likelihoods.about)
    rows = [_true_belief(source, beliefs["belief"], types, all_pairs)]
    for _ in range(episodes):
        start = game.reset(games, generator)
        for moment in moments(game, players, start, players.memory_of(types), generator):
            beliefs = tracker.observe(moment.view, moment.outcome, beliefs)
        beliefs = tracker.reset(beliefs, everybody)
        rows.append(_true_belief(source, beliefs["belief"], types, all_pairs))
    return rows


@dataclass(frozen=True)
class SwitchReport:
    """What beliefs about a player did after it changed from stag to hare."""

    games: int  # in which the player was still there and the belief could be judged
    turned: int  # belief in the new goal passed one half within ENOUGH_STEPS informative steps
    ever: int  # it passed one half at any time
    mean_steps: float  # informative steps it took, where it did
    before: float  # mean belief in the new goal just before the change

    @property
    def share(self) -> float:
        return self.turned / self.games if self.games else float("nan")


def after_switch(
    game: Game, source: BeliefSource, config: BeliefConfig, games: int, rngs: Rngs, at: int = 6
) -> SwitchReport:
    """Follow player 1, who goes for the stag before time `at` and for hares from then on, among NH players.

    A step is informative where the exact rules of the two goals give the action different probabilities. A game is
    judged once the belief turned, or once it had enough informative steps; and only if the steps before the change
    had ruled the new goal out, which is what a belief must recover from.
    """
    roles = [Role(Kind.SWITCH, float(at)), *[Role(Kind.NH)] * (game.players - 1)]
    players = RulePlayers(game, roles)
    generator = rngs.torch("belief switch")
    memory = players.begin(games, generator)
    played = moments(game, players, game.reset(games, generator), memory, generator)
    exact = ExactLikelihoods(game, GOAL_KINDS)
    about_first = (source.likelihoods.players == 0).flatten()
    zeros = torch.zeros(games, dtype=torch.int64, device=game.device)
    informative, needed, excluded = zeros, zeros - 1, zeros.bool()
    before = torch.zeros(games, device=game.device)
    for moment, beliefs in followed(game, source, config, played, games):
        hare = source.read(beliefs["belief"])[..., HARE_GOAL].flatten(1)[:, about_first].mean(1)  # [B]
        t = moment.view.state.t
        counts = moment.running & moment.view.state.alive[:, 0]  # a capture reveals the goal, which is not inference
        crossed = counts & (t > at) & (hare > 0.5) & (needed < 0)
        needed = torch.where(crossed, informative, needed)
        before = torch.where(moment.running & (t == at), hare, before)
        chances = exact(moment.view, moment.outcome.executed, {})[:, 0]  # [B, 2] of player 1's action
        excluded = excluded | (counts & (t < at) & (chances[:, HARE_GOAL] == 0))
        informative = informative + (counts & (t >= at) & (chances[:, 0] != chances[:, 1]))
    judged = excluded & ((needed >= 0) | (informative >= ENOUGH_STEPS))
    turned = judged & (needed >= 0) & (needed <= ENOUGH_STEPS)
    ever = judged & (needed >= 0)
    steps = float(needed[ever].double().mean()) if bool(ever.any()) else float("nan")
    start = float(before[judged].mean()) if bool(judged.any()) else float("nan")
    return SwitchReport(int(judged.sum()), int(turned.sum()), int(ever.sum()), steps, start)


def measure_beliefs(game: Game, source: BeliefSource, games: int, rngs: Rngs) -> dict[str, Any]:
    """All figures of a belief: by step, by episode with both discounts, and after a change of goal."""
    usual = BeliefConfig()
    slow = BeliefConfig(discount=TRAINING_DISCOUNT)
    switch = after_switch(game, source, usual, games, rngs)
    return {
        "games": games,
        "true_type_by_step": within_episode(game, source, usual, games, rngs, steps=10),
        "prior_by_episode": across_episodes(game, source, usual, max(1, games // 4), rngs, episodes=10),
        "prior_by_episode_slow": across_episodes(game, source, slow, max(1, games // 4), rngs, episodes=10),
        "switch": {**vars(switch), "share": switch.share},
    }


def followed(
    game: Game, source: BeliefSource, config: BeliefConfig, played: Iterator[Moment], games: int
) -> Iterator[tuple[Moment, Memory]]:
    """Every step together with the beliefs held before it."""
    tracker = source.tracker(game, config)
    beliefs = tracker.begin(games)
    for moment in played:
        yield moment, beliefs
        beliefs = tracker.observe(moment.view, moment.outcome, beliefs)


def _there(moment: Moment, source: BeliefSource) -> Tensor:
    """[B, *P] players who take part in this step."""
    there = moment.running.unsqueeze(1) & moment.view.state.alive
    return there[:, source.likelihoods.players]


def _true_belief(source: BeliefSource, belief: Tensor, types: Tensor, count: Tensor) -> float:
    """Mean belief in the players' true types [B, n] where `count` [B, *P]."""
    goal = (types == Kind.NH).long()[:, source.likelihoods.players]  # [B, *P] index of GOAL_KINDS
    true = source.read(belief).gather(-1, goal.unsqueeze(-1)).squeeze(-1)
    return float(true[count].mean()) if bool(count.any()) else float("nan")


# --- with learned models ------------------------------------------------------------------------------------------


def learned_source(loaded: LoadedModels, game: Game) -> BeliefSource:
    """The models as the source of beliefs: over stag and hare, or over the codebook's prototypes."""
    goals = loaded.goals().to(game.device)
    to_goal = torch.stack([goals.stag, 1 - goals.stag])
    return BeliefSource(LearnedLikelihoods(game, pretrained(loaded)), to_goal, goals.evidence)


def game_of(dataset: Dataset, device: torch.device | str = "cpu") -> Game:
    """The game of the data, on its own obstacle maps."""
    if not dataset.game.max_block_comp:
        return make_game(dataset.game, device=device)
    blocks = torch.unique(dataset.rows.obs[..., dataset.game.players].flatten(1).bool(), dim=0)
    return game_with_blocks(dataset.game, blocks, device)


def belief_figures(loaded: LoadedModels, dataset: Dataset, games: int, seed: int) -> dict[str, Any]:
    """Beliefs with exact and with learned likelihoods on the same games."""
    device = next(loaded.models.parameters()).device
    game = game_of(dataset, device)
    sources = {"exact": exact_source(game), "learned": learned_source(loaded, game)}
    return {name: measure_beliefs(game, source, games, Rngs(seed, device)) for name, source in sources.items()}
