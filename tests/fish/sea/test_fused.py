"""The step in Triton kernels beside the eager one: same worlds, same lots, every number within rounding."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.seas import SEAS
from marlab.fish.sea.world import FishWorld, fusable
from marlab.lab.errors import UserError
from tests.fish.sea import numpy_triton

ROUNDING = 2e-6
FISH, ARENAS = 7, 4
CROWDED: dict[str, Any] = {"num_fish": FISH, "neighbor_radius": 6.0, "density_penalty_coef": 0.04}


@pytest.fixture(autouse=True)
def triton() -> Iterator[None]:
    with numpy_triton.installed():
        yield


def pair(cfg: SeaConfig, arenas: int = ARENAS, **options: Any) -> tuple[FishWorld, FishWorld]:
    options = {"seed": 1, "bank": 8 * arenas, **options}
    return FishWorld(cfg, arenas, **options), FishWorld(cfg, arenas, fused=True, **options)


def far(eager: FishWorld, fused: FishWorld, cfg: SeaConfig, steps: int, seed: int = 0) -> dict[str, float]:
    """The largest difference of each tensor over some steps with random actions, each from the eager world's state."""
    generator, worst = torch.Generator().manual_seed(seed), {}
    for _ in range(steps):
        actions = torch.randint(0, 5, (eager.arenas, cfg.num_fish), generator=generator)
        a, b = eager.step(actions)._asdict(), fused.step(actions)._asdict()
        for name, mine in (eager._tensors() | a).items():
            theirs = (fused._tensors() | b)[name]
            assert torch.equal(mine.isnan(), theirs.isnan())
            gap = (mine.double() - theirs.double()).abs().nan_to_num()
            worst[name] = max(worst.get(name, 0.0), float(gap.max()) if gap.numel() else 0.0)
        fused.load_state_dict(eager.state_dict())
    return {name: gap for name, gap in worst.items() if gap > 0}


@pytest.mark.parametrize("name", SEAS)
def test_every_sea_steps_as_the_eager_one_does(name: str) -> None:
    cfg = replace(SEAS[name], **CROWDED, divergence_reward_coef=0.3)
    eager, fused = pair(cfg, force_reset_steps=5)
    for world in (eager, fused):  # fish around the predator, so that some are eaten
        state = world.get_state()
        state.x.copy_(state.predator_x[:, None] + 0.25 * state.x)
        state.y.copy_(state.predator_y[:, None] + 0.25 * state.y)
        world.set_state(state)
    assert max(far(eager, fused, cfg, 8).values()) < ROUNDING
    counted = fused.pop_stats()
    assert counted["episodes"] == ARENAS and counted["step_one_deaths"] > 0
    assert counted["first_death_sample_size"] > 0 and counted["override_episodes"] >= ARENAS


def test_eleven_inputs_few_fish_and_the_originals_rules() -> None:
    cfg = replace(SEAS["v32"], num_fish=FISH, include_neighbor_features=False, episode_end="terminated",
                  vision_reward="cliff")  # fmt: skip
    eager, fused = pair(cfg)
    for world in (eager, fused):
        world.set_fish_count(3)
        world.reset()
        world.state.t.fill_(497)
    assert max(far(eager, fused, cfg, 5).values()) < ROUNDING
    assert int(fused.state.exists.sum()) == 3 * ARENAS and fused.pop_stats()["survival_at_500"] is not None


def test_hard_starts_reach_the_arenas_they_are_for() -> None:
    from types import SimpleNamespace

    cfg = replace(SEAS["v32"], **CROWDED)
    eager, fused = pair(cfg, force_reset_steps=2)
    generator = torch.Generator().manual_seed(3)
    position = torch.randn(2, ARENAS, 2, generator=generator)
    position[0, :2] = float("nan")
    starts = SimpleNamespace(
        active=torch.tensor([[True, True, True, False], [True, False, True, True]]), position=position,
        velocity=torch.randn(2, ARENAS, 2, generator=generator), stage=torch.randint(0, 5, (2, ARENAS)),
    )  # fmt: skip
    for world in (eager, fused):
        world.feed(starts)
    assert max(far(eager, fused, cfg, 10).values()) < ROUNDING
    counted = fused.pop_stats()
    assert counted["override_hits"] == 6 and sum(counted["step_one_fish_by_stage"][1:]) > 0


@pytest.mark.parametrize("count", [1, 3, 8])
def test_equal_distances_count_as_one_step_to_the_nearest(count: int) -> None:
    cfg = replace(SEAS["v32"], num_fish=9, neighbor_average_count=count)
    eager, fused = pair(cfg, arenas=1)
    for world in (eager, fused):  # on a lattice nearly every distance comes twice
        state, place = world.get_state(), torch.arange(9.0)
        state.x.copy_((place % 3)[None])
        state.y.copy_((place // 3)[None])
        world.set_state(state._replace(vx=0 * state.vx, vy=0 * state.vy, predator_x=state.predator_x - 8))
    assert max(far(eager, fused, cfg, 1).values(), default=0.0) < ROUNDING


def test_more_fish_than_a_warp_holds() -> None:
    cfg = replace(SEAS["pursuit"], num_fish=40)
    eager, fused = pair(cfg, arenas=1)
    assert max(far(eager, fused, cfg, 1).values()) < ROUNDING


@pytest.mark.parametrize(
    ("settings", "word"),
    [({"neighbor_view": "rays"}, "rays"), ({"neighbor_average_count": 9}, "at most 8")],
)
def test_what_the_kernels_do_not_know_is_refused(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(UserError, match=word):
        FishWorld(SeaConfig(**settings), 2, fused=True)


def test_a_predator_of_ones_own_is_refused() -> None:
    with pytest.raises(UserError, match="scripted"):
        FishWorld(SeaConfig(), 2, fused=True, hunter=lambda state: state)


def test_without_triton_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in numpy_triton.OURS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(UserError, match="needs the package triton"):
        FishWorld(SeaConfig(), 2, fused=True)
    assert not fusable(SeaConfig())


def test_what_the_kernels_do_not_know_is_played_without_them() -> None:
    assert all(fusable(cfg) for cfg in SEAS.values())
    assert not fusable(SeaConfig(include_neighbor_features=True, neighbor_view="nearest"))
