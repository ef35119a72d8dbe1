"""The ceiling: exhaustive search against brute force, plans that hold, bounds that meet."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch

from marlab.fish.measure.ceiling import ceiling, doomed_mask, doomed_share
from marlab.fish.measure.policies import play, sidestep
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.reset import seeded_reset
from tests.fish.build import reference_of, sea_of

CFG = SeaConfig(include_neighbor_features=False)


@pytest.mark.parametrize("k", [1, 3])
def test_doomed_equals_every_sequence_in_the_plain_loop(k: int) -> None:
    """Fish around a fast predator: some die whatever they do, some only if they are careless."""
    generator = torch.Generator().manual_seed(0)
    offsets = torch.rand(40, 2, generator=generator) * 3 - 1.0
    speeds = torch.rand(40, 2, generator=generator) * 2 - 1
    state = sea_of(offsets.tolist(), speeds.tolist(), predator=(0.0, 0.0), predator_velocity=(3.0, 1.5))
    expected = []
    for i in range(40):
        loop = reference_of(state, with_neighbours=False)
        loop.fish = [loop.fish[i]]
        expected.append(not any(survives(loop, actions) for actions in itertools.product(range(5), repeat=k)))
    assert doomed_mask(state, k)[0].tolist() == expected
    assert 0 < sum(expected) < 40


def survives(loop, actions) -> bool:
    loop = copy.deepcopy(loop)
    for action in actions:
        loop.step([action])
    return loop.fish[0].alive


def test_longer_search_only_adds_doomed_and_the_dead_are_not_counted() -> None:
    state, _ = seeded_reset(list(range(30)), CFG, fish=60)
    one, four = doomed_mask(state, 1), doomed_mask(state, 4)
    assert bool((one <= four).all()) and one.any()
    state.alive[:] = False
    assert not doomed_mask(state, 2).any()


def test_bounds_meet_and_the_plan_holds() -> None:
    state, _ = seeded_reset(list(range(12)), CFG, fish=96)
    report = ceiling(state)
    assert report.gap <= 0.001
    assert report.lower <= report.upper <= 1 - float(doomed_mask(state, 1).float().mean())
    assert not (report.saved & report.doomed).any()
    steps = iter(report.plan)
    replayed = play(state, lambda obs: next(steps).long(), CFG)
    assert torch.equal(replayed.final.alive, report.saved)
    script = play(state, sidestep, CFG).survival.mean()
    assert report.lower >= float(script)


def test_doomed_share_is_the_known_floor() -> None:
    assert doomed_share(SeaConfig(num_fish=96), arenas=400) == pytest.approx(0.0163, abs=0.0035)
