"""The learner in a world of the simulator: what it chose, and that its rewards are what it earned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.market.agent.learning import Experience, LearningAgent, played_by
from marlab.market.networks import around as files
from marlab.market.rules import around, worth
from marlab.market.simulator.worlds import WorldSpec, playing

DAYS = 6


def lived(path: Path, seed: int = 3) -> list[tuple[LearningAgent, Experience, float]]:
    """The learners of a small world, what they lived through, and their final balances."""
    files.save(path, files.untrained(1.0))
    learner = f'marlab.market.agent.learning:LearningAgent(weights="{path}", seed={seed})'
    agents = (learner, learner, "SyncRandomStdAgent", "RandomStdAgent")
    spec = WorldSpec("learning", 1, 2, DAYS, (0, 0, 1, 1), agents, (False,) * 4)
    with playing(spec) as world:
        world.run()
        balances = {name: float(world.current_balance(name)) for name in world.agents}
        return [(a, a.experience(balances[n], DAYS), balances[n]) for n, a in played_by(world.agents).items()]


def test_rewards_sum_to_what_was_earned_and_choices_were_open(tmp_path: Path) -> None:
    found = lived(tmp_path / "a.npz")
    assert len(found) == 2
    for agent, game, balance in found:
        assert agent.counts["exceptions"] == 0 and len(game.day) > 20 and len(game.buyers) == 2
        opening = float(agent._mornings[0][0].initial_balance)
        sunk = sum(float(worth.sunk(state)) for state, _ in agent._mornings)
        total = game.sale[:, 3].sum() + game.evening.sum()
        assert total == pytest.approx((balance - opening) / opening + sunk, abs=1e-9)
        assert len(game.sale) == sum(float(row[3]) != 0 for row in game.sale)
        rows = np.arange(len(game.day))
        starts = np.cumsum((0, *around.HEADS[:-1]))
        assert all(game.mask[rows, start + game.choices[:, head]].all() for head, start in enumerate(starts))
        assert game.x.shape == (len(rows), around.INPUTS) and (game.choices > 0).any()
        moments = list(zip(game.day, game.round, game.partner))
        assert len(set(moments)) == len(moments) and max(game.round) < 20
        acted = set(moments)
        assert np.mean([(d, r, p) in acted for d, r, p, _ in game.sale.tolist()]) > 0.5


def test_the_same_seed_plays_the_same_and_another_one_does_not(tmp_path: Path) -> None:
    first, again, other = (lived(tmp_path / "a.npz", seed) for seed in (3, 3, 4))
    assert np.array_equal(first[0][1].choices, again[0][1].choices) and first[0][2] == again[0][2]
    assert first[0][2] != other[0][2]
