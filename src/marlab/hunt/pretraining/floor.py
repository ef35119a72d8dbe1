"""What rule-based players really do at stored rows: the floor, and the best predictions anybody could make.

Letters: R rows, K kinds of players, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.hunt.data.dataset import Part, Rows
from marlab.hunt.game.build import restore
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import GOAL_KINDS, observed
from marlab.hunt.others.config import BeliefConfig
from marlab.hunt.others.history import sequences_of
from marlab.hunt.players.rules import RulePlayers, rule_probabilities
from marlab.hunt.players.seats import Kind
from marlab.lab.errors import UserError

NO_FORGETTING = BeliefConfig(floor=0.0, mixing=0.0)


def rule_rows(config: GameConfig, rows: Rows, kinds: Sequence[Kind], chunk: int = 16384) -> Tensor:
    """[R, K, A] what each row's player would do there if it were of each of the memoryless `kinds`."""
    parts = []
    for start in range(0, rows.size, chunk):
        part = slice(start, start + chunk)
        # A player's own view is a game in which it has the first seat, and the rules know no seats.
        game, state = restore(config, rows.obs[part], rows.t[part], rows.first_hunt[part])
        players = RulePlayers(game, [Kind.RAND] * config.players)
        parts.append(rule_probabilities(players, View(game, state), kinds)[:, 0])
    return torch.cat(parts)


class ExactPredictions(NamedTuple):
    """Exact predictions for rows of NS, NH and RAND players."""

    known: Tensor  # [R, A] the player's own distribution
    bayes: Tensor  # [R, A] predicted with exact beliefs from the actions of the episode so far
    mixture: Tensor  # [R, A] half NS, half NH
    belief: Tensor  # [R, 2] exact belief in (stag, hare) before the row's action


def truth_of(config: GameConfig, part: Part) -> ExactPredictions:
    """Exact predictions for whole sequences, from their observations and executed actions."""
    rows = part.rows
    kinds = (*GOAL_KINDS, Kind.RAND)
    strange = set(rows.type.unique().tolist()) - {int(kind) for kind in kinds}
    if strange:
        names = ", ".join(Kind(number).name for number in sorted(strange))
        raise UserError(f"The data holds {names} players; exact predictions are known for NS, NH and RAND only.")
    by_kind = rule_rows(config, rows, kinds)  # [R, 3, A]
    index = torch.full((max(kinds) + 1,), -1)
    index[list(kinds)] = torch.arange(len(kinds))
    known = by_kind[torch.arange(rows.size), index[rows.type]]
    by_goal = by_kind[:, : len(GOAL_KINDS)]
    belief = bayes_beliefs(by_goal, rows.a, part.offsets)
    return ExactPredictions(known, (by_goal * belief.unsqueeze(2)).sum(1), by_goal.mean(1), belief)


def bayes_beliefs(by_goal: Tensor, actions: Tensor, offsets: Tensor, config: BeliefConfig = NO_FORGETTING) -> Tensor:
    """[R, G] belief before each row's action [R], from the likelihoods [R, G, A] of the rows before it.

    offsets: sequence s owns rows offsets[s] to offsets[s + 1].
    """
    likelihood = by_goal.gather(2, actions.view(-1, 1, 1).expand(-1, by_goal.shape[1], 1)).squeeze(2)
    order = sequences_of(offsets, torch.arange(len(offsets) - 1))
    steps, real = likelihood[order.table], order.real  # [S, T, G], [S, T]
    prior = torch.full_like(steps[:, 0], 1.0 / steps.shape[2])
    belief, before = prior, []
    for t in range(steps.shape[1]):
        before.append(belief)
        belief = observed(belief, steps[:, t], prior, real[:, t], config)
    return torch.stack(before, 1)[real]
