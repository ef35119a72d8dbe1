"""The networks of planning agents together with their use."""

from __future__ import annotations

import torch

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.views import View
from marlab.hunt.others.codes import Goals
from marlab.hunt.planner.config import MindConfig
from marlab.hunt.planner.mind import PlannerModels
from tests.hunt.helpers import seeded, small_game
from tests.hunt.hop_cases import TINY, even, small_mind

FOUR = GameConfig()


def test_predictions_are_distributions_over_what_is_legal() -> None:
    game = small_game(FOUR)
    state = game.reset(4, seeded(0))
    state = state._replace(alive=torch.tensor([[True, True, False, True]] * 4))
    view = View(game, state)
    for variant in ("hop", "direct-om", "mcts-self", "mcts-random"):
        mind = small_mind(variant, seeds=(0, 1), game=FOUR)
        found = mind.predict(view, even(4, 4, mind.count))
        total = found.sum(-1)
        assert torch.allclose(total[:, 0], torch.tensor([1.0, 0.0, 1.0]))  # player 3 has left
        legal = game.legal(state)[:, [1, 2, 3]]
        assert float((found[:, 0] * ~legal).sum()) == 0.0


def test_a_mind_cut_down_to_one_seed_plans_alike() -> None:
    game = small_game(TINY)
    mind = PlannerModels(TINY, MindConfig(variant="hop", hidden=8), Goals.hunt(), (4, 9))
    with torch.no_grad():
        for weights in mind.parameters():
            weights.normal_(generator=seeded(1))
    state = game.reset(6, seeded(2))
    view = View(game, state)
    belief = even(6, 2)
    alone = mind.some([9]).predict(View(game, state.select(slice(3, 6))), belief[3:])
    torch.testing.assert_close(mind.predict(view, belief)[3:], alone)
