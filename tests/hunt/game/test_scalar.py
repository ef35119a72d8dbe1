"""The scalar rules against the batched game: random games of all presets and of all switches, step by step."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from marlab.hunt.game.build import batched, batched_outcome
from marlab.hunt.game.config import GameConfig, game_config, game_names
from marlab.hunt.game.scalar import Rules
from marlab.hunt.game.views import View
from marlab.hunt.players.glance import PlainObserver
from marlab.lab.errors import UserError

SWITCHES = {
    "prosocial": {"prosocial": True},
    "time": {"time_reward": -0.25},
    "dynamic": {"dynamic_final_time": True, "final_time_after_first_hunt": 2},
    "strength": {"player_strength": (1.0, 2.0, 0.0, 4.0)},
    "legacy": {"legacy_global_prev_actions": True},
    "narrow": {"height": 3, "width": 3, "hares": 5, "players": 5},
    "snow": {"rules": "snowdrift", "drifts": 5, "final_time": 12, "prosocial": True, "time_reward": 0.5},
}
CONFIGS = {name: game_config(name) for name in game_names()} | {k: GameConfig(**v) for k, v in SWITCHES.items()}  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CONFIGS, ids=list(CONFIGS))
def test_every_step_and_every_view_is_that_of_the_batched_game(name: str) -> None:
    config = CONFIGS[name]
    rules, glance, rng = Rules(config), PlainObserver(config), random.Random(name)
    agents = [str(seat) for seat in range(config.players)]
    seat = {agent: i for i, agent in enumerate(agents)}
    captures = 0
    for _ in range(2):
        s = rules.start(rng)
        game, state = batched(config, s)
        while True:
            view = View(game, state)
            legal = [rules.legal(s, player) for player in range(config.players)]
            assert legal == view.mask[0].tolist()
            seen = glance.all(rules, s, agents, seat)
            assert np.array_equal(glance.planes(rules, s), view.board[0].numpy())
            for i, agent in enumerate(agents):
                assert np.array_equal(seen[agent]["observation"], view.grid[0, i].numpy())
                assert np.array_equal(seen[agent]["actions"], view.actions[0, i].numpy())
                assert seen[agent]["alive"].tolist() == view.alive[0, i].tolist()
                assert seen[agent]["action_mask"].tolist() == legal[i] and seen[agent]["t"].tolist() == [s.t]
            # mostly what is possible, hunting first; sometimes what is not
            actions = [
                rng.randrange(9) if rng.random() < 0.1 else _sensible(mask, rng) for mask in legal
            ]  # 7 and 8 are no actions
            step = rules.step(s, actions)
            after, outcome = game.step(state, torch.tensor([actions]))
            for one, other in zip(batched(config, step.after)[1], after):
                assert torch.equal(one, other)
            told = batched_outcome(step)
            assert torch.allclose(told.reward, outcome.reward)
            for field in ("done", "over", "executed", "hunters", "captured"):
                assert torch.equal(getattr(told, field), getattr(outcome, field)), field
            captures += sum(step.captured)
            s, state = step.after, after
            if step.over:
                break
    assert captures > 0


def _sensible(mask: list[bool], rng: random.Random) -> int:
    possible = [action for action, legal in enumerate(mask) if legal] or [4]
    return possible[-1] if possible[-1] > 4 and rng.random() < 0.8 else rng.choice(possible)


def test_starts_are_drawn_by_the_rule() -> None:
    """Distinct cells, no obstacle under anybody, free cells that hang together; every cell is used."""
    config = game_config("msh_8x8_b5")
    rules, rng, used, sizes = Rules(config), random.Random(0), set(), set()
    for _ in range(200):
        s = rules.start(rng)
        taken = s.prey_cell + s.cell
        assert len(set(taken)) == len(taken) == 9 and not any(s.blocks >> cell & 1 for cell in taken)
        assert rules.connected(s.blocks)
        used |= set(taken)
        sizes.add(s.blocks.bit_count())
    assert len(used) == 64 and min(sizes) < 14 and max(sizes) == 19
    assert not rules.connected(0b10 | 1 << 8)  # the corner is cut off


def test_far_starts_are_those_of_the_layout() -> None:
    config = game_config("msh_far")
    rules, rng = Rules(config), random.Random(0)
    for _ in range(50):
        s = rules.start(rng)
        columns, away = [cell % config.width for cell in s.prey_cell], config.hares // 2
        assert len(set(s.prey_cell + s.cell)) == config.prey + config.players
        assert set(columns[: config.stags]) == {config.width - 1} and set(columns[-away:]) == {0}
        assert set(columns[config.stags : -away]) <= {config.width - 2, config.width - 1}
        assert {cell % config.width for cell in s.cell} == {config.width // 2}


def test_loose_starts_have_the_prey_of_the_layout_and_players_anywhere_in_half_of_the_games() -> None:
    config = game_config("msh_far_loose")
    rules, rng = Rules(config), random.Random(0)
    starts = [rules.start(rng) for _ in range(200)]
    middle = [{cell % config.width for cell in s.cell} == {config.width // 2} for s in starts]
    assert 70 < sum(middle) < 130
    assert all(s.prey_cell[0] % config.width == config.width - 1 for s in starts)
    assert all(len(set(s.prey_cell + s.cell)) == config.prey + config.players for s in starts)


def test_a_grid_without_a_valid_layout_is_told_in_a_sentence() -> None:
    rules = Rules(game_config("msh_8x8_b5"))
    rules._placements = [[0b10 | 1 << 8]] * 4  # every component cuts off the corner
    with pytest.raises(UserError, match="No valid layout was found in 1000 restarts"):
        rules.start(random.Random(0))
