"""Plans of collections: counts, fairness, shapes and refusals."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pytest.importorskip("scml")
from marlab.lab.config import from_dict, load_preset
from marlab.lab.errors import UserError
from marlab.market.collect.command import PRESETS, CollectCommand
from marlab.market.collect.plan import CollectionPlan, MarketCollectConfig
from marlab.market.simulator.experts import have_entrants
from marlab.market.simulator.worlds import WorldSpec

FOUR = ("GreedyStdAgent", "RandomStdAgent", "SyncRandomStdAgent", "StdDoNothingAgent")


@pytest.fixture(autouse=True)
def _do_nothing_may_play(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fourth built-in agent, under a name of its own, so that plans need no entrants."""
    from marlab.market.collect import plan

    found = plan.full_name
    monkeypatch.setattr(plan, "full_name", lambda name: f"elsewhere:{name}" if name == FOUR[3] else found(name))


def made(**changes: Any) -> CollectionPlan:
    return CollectionPlan(MarketCollectConfig(**{"experts": FOUR, "configs": 3, "runs": 2, "days": (6, 9)} | changes))


def competitors(spec: WorldSpec) -> list[str]:
    return [name.rpartition(":")[2] for name, tracked in zip(spec.agents, spec.tracked) if tracked]


@pytest.mark.parametrize(
    ("changes", "worlds"),
    [
        ({}, 3 * 2 * 4),  # all four in every world, four rotations
        ({"n_competitors_per_world": 2}, 3 * 2 * 6 * 2),  # six pairs, two rotations
        ({"n_competitors_per_world": 2, "round_robin": False}, 3 * 2 * 2 * 2),  # two pairs
        ({"n_competitors_per_world": 3, "round_robin": False}, 3 * 2 * 2 * 3),  # the second set is completed
        ({"max_worlds_per_config": 11}, 3 * 2 * 8),  # whole rotations only
        ({"n_competitors_per_world": 2, "target_worlds": 100}, 3 * 2 * 6 * 4),  # ceil(100/36) = 3, so two rotations
    ],
)
def test_number_of_worlds(changes: dict[str, Any], worlds: int) -> None:
    plan = made(**changes)
    specs = list(plan)
    assert len(specs) == len(plan) == worlds
    assert len({spec.world_id for spec in specs}) == worlds
    assert plan.total_days == sum(spec.n_steps for spec in specs)
    assert plan.factory_days == sum(spec.n_steps * len(spec.agents) for spec in specs)


def test_every_competitor_sits_everywhere_equally_often() -> None:
    for seats in (1, 2):
        plan = made(seats=seats, configs=2, runs=1, max_worlds_per_config=8)
        places: Counter[tuple[int, int, str]] = Counter()
        for spec in plan:
            assert Counter(competitors(spec)) == dict.fromkeys(FOUR, seats)
            market = int(spec.world_id[1:4])
            places.update((market, i, spec.agents[i]) for i, tracked in enumerate(spec.tracked) if tracked)
        assert set(places.values()) == {2}  # eight worlds, four competitors


def test_worlds_have_the_official_shape_and_share_their_market_within_a_config() -> None:
    plan = made(configs=12, runs=1)
    seen = set()
    markets: dict[str, set[tuple[Any, ...]]] = {}
    for spec in plan:
        seen.add(spec.n_processes)
        assert 6 <= spec.n_steps <= 9
        assert min(Counter(spec.processes).values()) >= 4
        fillers = [name for name, tracked in zip(spec.agents, spec.tracked) if not tracked]
        assert set(fillers) <= {
            f"scml.std.agents.{m}" for m in ("greedy:GreedyStdAgent", "rand:RandomStdAgent", "rand:SyncRandomStdAgent")
        }
        markets.setdefault(spec.world_id[:4], set()).add((spec.market_seed, spec.n_steps, spec.processes))
    assert seen == {2, 3, 4}
    assert all(len(found) == 1 for found in markets.values()) and len(markets) == 12


def test_a_plan_depends_on_its_seed_alone() -> None:
    assert list(made()) == list(made())
    assert not {spec.world_id for spec in made()} & {spec.world_id for spec in made(seed=1)}


@pytest.mark.skipif(not have_entrants(), reason="scml-agents is not installed")
def test_track_only_penguin_puts_it_into_every_world() -> None:
    for round_robin in (True, False):
        plan = made(track_only_penguin=True, n_competitors_per_world=2, round_robin=round_robin)
        for spec in plan:
            assert competitors(spec) == ["PenguinAgent"]
        assert len(list(plan)) == len(plan)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"max_worlds_per_config": 3}, "Cannot guarantee fair assignment.*at least 4"),
        ({"target_worlds": 10}, "needs n_competitors_per_world"),
        ({"n_competitors_per_world": 2, "target_worlds": 10, "max_worlds_per_config": 4}, "same thing"),
        ({"n_competitors_per_world": 5}, "only 4 competitors"),
        ({"steps": 3}, "too short for 4 levels"),
        ({"days": (9, 6)}, "smaller number first"),
        ({"processes": (1, 2)}, "expected 2 or more"),
        ({"configs": 0}, "configs is 0"),
        ({"max_top_2024": 6}, "expected 0 to 5"),
        ({"world_timeout": 0.0}, "above 0"),
        ({"fillers": ()}, "fillers is empty"),
    ],
)
def test_refusals(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        made(**changes)


def test_presets_are_valid() -> None:
    for file in PRESETS.glob("*.toml"):
        preset = load_preset(file.stem, PRESETS)
        from_dict(CollectCommand, preset.values, f"preset {file.stem}")
    if have_entrants():
        smoke = CollectionPlan(from_dict(MarketCollectConfig, load_preset("smoke", PRESETS).values, "smoke"))
        assert smoke.assignments == smoke.k == len(smoke) == 10
        official = CollectionPlan(from_dict(MarketCollectConfig, load_preset("official", PRESETS).values, "official"))
        assert len(official) == 40 * len(official.experts)


def test_parameters_of_experts_are_kept() -> None:
    plan = CollectionPlan(
        MarketCollectConfig(experts=("GreedyStdAgent(name=a)", "RandomStdAgent"), configs=1, days=(6, 9))
    )
    assert any("GreedyStdAgent(name=a)" in agent for spec in plan for agent in spec.agents)


@pytest.mark.parametrize(
    "wrong", [{"seats": 10**9}, {"configs": 10**9}, {"runs": 10**9}, {"steps": 10**6}, {"days": (5, 10**6)}]
)
def test_numbers_that_cannot_be_meant_are_refused_before_anything_is_drawn(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"{next(iter(wrong))} is .*expected at most"):
        MarketCollectConfig(**wrong)
