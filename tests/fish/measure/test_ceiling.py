"""The ceiling: exhaustive search against brute force, plans that hold, bounds that meet."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch

import marlab.fish.measure.ceiling as measure_ceiling
from marlab.fish.measure.ceiling import _branch, _furthest, _search, ceiling, doomed_mask, doomed_share
from marlab.fish.measure.policies import play, sidestep
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState, advance, ballistic
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
    if k == 1:
        assert doomed_mask(state)[0].tolist() == expected != doomed_mask(state, 2)[0].tolist()


def test_a_fish_that_only_a_change_of_action_saves_is_not_doomed() -> None:
    """It lives for two steps by turning in between; what comes after them is not asked."""
    place, speed = (1.084811, 0.129427), (0.840787, 0.335850)
    state = sea_of([place], [speed], predator=(0.0, 0.0), predator_velocity=(3.0, 1.5))
    loop = reference_of(state, with_neighbours=False)
    assert not any(survives(loop, (action, action)) for action in range(5))
    assert any(survives(loop, actions) for actions in itertools.product(range(5), repeat=2))
    assert doomed_mask(state, 2).tolist() == [[False]]


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


def test_the_report_counts_the_fish_that_were_alive_at_the_start() -> None:
    """Two arenas of three slots: one slot is empty, one fish is under the predator's jaws, the others are far away."""
    state = sea_of([(0.1, 0.0), (8.0, 0.0), (-8.0, 0.0)], predator=(0.0, 0.0), predator_velocity=(0.0, 0.0))
    state = SeaState(*(torch.cat([values, values]) for values in state))
    state.exists[1, 2] = state.alive[1, 2] = False
    report = ceiling(state, k=2)
    assert report.doomed.tolist() == [[True, False, False], [True, False, False]]
    assert report.saved.tolist() == [[False, True, True], [False, True, False]]
    assert (report.upper, report.lower, report.gap) == (1 - 2 / 5, 3 / 5, 0.0)
    assert report.plan.shape == (500, 2, 3)


def test_a_search_that_grows_too_large_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    state = sea_of([(0.1, 0.0)], predator=(0.0, 0.0))
    assert doomed_mask(state, 1).tolist() == [[True]]
    monkeypatch.setattr(measure_ceiling, "FRONTIER", 5)
    assert doomed_mask(state, 1).tolist() == [[True]]  # five branches are still followed
    monkeypatch.setattr(measure_ceiling, "FRONTIER", 4)
    assert doomed_mask(state, 1).tolist() == [[False]]


def test_the_furthest_branches_of_every_fish_are_kept() -> None:
    places = [(1.0, 0.0), (3.0, 0.0), (2.0, 0.0), (0.0, 5.0), (0.0, -4.5), (0.5, 0.0)]

    def around(predator: tuple[float, float]) -> SeaState:
        return SeaState(*(torch.cat(parts) for parts in zip(*(sea_of([p], predator=predator) for p in places))))

    rows = around((0.0, 0.0))
    owner = torch.tensor([0, 0, 0, 1, 1, 0])
    assert sorted(_furthest(rows, owner, 1).tolist()) == [1, 3]
    assert sorted(_furthest(rows, owner, 2).tolist()) == [1, 2, 3, 4]
    assert sorted(_furthest(rows, owner, 9).tolist()) == [0, 1, 2, 3, 4, 5]
    assert sorted(_furthest(around((4.0, 1.0)), owner, 1).tolist()) == [4, 5]


def test_branches_know_their_parents_and_actions() -> None:
    two = SeaState(*(torch.cat(parts) for parts in zip(*(sea_of([p], [(1.0, 0.0)]) for p in ((5.0, 0.0), (0.0, 5.0))))))
    after, parent, action = _branch(two, ballistic)
    assert parent.tolist() == [0] * 5 + [1] * 5 and action.tolist() == [0, 1, 2, 3, 4] * 2
    for row in (0, 1):
        for taken in range(5):
            alone = advance(two.select(torch.tensor([row])), torch.tensor([[taken]]))
            assert torch.equal(alone.x[0], after.x[5 * row + taken]) and torch.equal(
                alone.vy[0], after.vy[5 * row + taken]
            )


def test_plans_begin_with_the_free_actions_of_the_branch_that_lived() -> None:
    """Fish for which side-stepping alone is not enough: their plan is found by a search and holds when it is played."""
    state, _ = seeded_reset(list(range(40)), CFG, fish=96)
    open_ = state.alive & ~doomed_mask(state, 2)
    plan = torch.full((500, *state.x.shape), 4, dtype=torch.uint8)
    _search(state, open_, plan, 0, SeaConfig())
    left = int(open_.sum())
    assert left > 0, "choose other seeds: side-stepping saves everybody"
    before = open_.clone()
    _search(state, open_, plan, 6, SeaConfig())
    found = before & ~open_
    assert found.any()
    final = state
    for actions in plan:
        final = advance(final, actions)
    assert bool(final.alive[found].all())


def test_a_fish_alone_and_far_away_gets_its_plan_at_once() -> None:
    state = sea_of([(-8.0, -3.0)], predator=(5.0, 5.0))
    open_, plan = state.alive.clone(), torch.full((500, 1, 1), 4, dtype=torch.uint8)
    _search(state, open_, plan, 0, SeaConfig())
    assert not open_.any()
