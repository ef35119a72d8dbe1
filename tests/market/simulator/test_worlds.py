"""Worlds repeat: the same spec gives the same contracts and scores, whatever the clock does."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("scml")
from marlab.lab.errors import UserError
from marlab.market.simulator.worlds import WorldSpec, hash_seed, play
from tests.market import rogue_agents

BUILT_IN = ("SyncRandomStdAgent", "GreedyStdAgent", "RandomStdAgent")


def small_world(agents: tuple[str, ...] = BUILT_IN, *, levels: int = 2, per_level: int = 3, **more: Any) -> WorldSpec:
    """A world of a few factories and days."""
    count = levels * per_level
    seated = tuple(agents[i % len(agents)] for i in range(count))
    told = {"world_id": "w", "market_seed": 7, "seed": 11, "n_steps": 6, "tracked": (True,) * count} | more
    return WorldSpec(processes=tuple(i // per_level for i in range(count)), agents=seated, **told)


def contracts(world: Any) -> list[tuple[Any, ...]]:
    """What was signed, without ids that are drawn from the clock."""
    words = ("signed_at", "seller_name", "buyer_name", "quantity", "delivery_time", "unit_price")
    return sorted(tuple(c[word] for word in words) for c in world.saved_contracts)


def test_same_spec_gives_the_same_world() -> None:
    first, second = play(small_world()), play(small_world())
    assert len(contracts(first)) > 20
    assert contracts(first) == contracts(second)
    assert first.scores() == second.scores()


def test_other_seeds_give_other_worlds() -> None:
    here = play(small_world())
    other_play, other_market = play(small_world(seed=12)), play(small_world(market_seed=8))
    assert contracts(here) != contracts(other_play)
    assert here.catalog_prices.tolist() == other_play.catalog_prices.tolist()  # the market is the same
    assert here.initial_balances != other_market.initial_balances


def test_fast_mode_and_default_settings_play_the_same_game() -> None:
    assert contracts(play(small_world())) == contracts(play(small_world(), settings="default"))


def test_a_pause_of_more_than_a_second_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = f"{rogue_agents.__name__}:SlowAgent"
    spec = small_world((slow, "RandomStdAgent"), per_level=2, n_steps=4)
    monkeypatch.setenv(rogue_agents.MARK, "quick")
    quick = play(spec)
    monkeypatch.setenv(rogue_agents.MARK, "slow")
    assert contracts(quick) == contracts(play(spec))


def test_spec_survives_json() -> None:
    spec = small_world()
    assert WorldSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_steps": 2}, "2 days"),
        ({"tracked": (True,)}, "equally long"),
        ({"processes": (1, 1, 1, 0, 0, 0)}, "in order"),
        ({"processes": (0,) * 6}, "one process"),
    ],
)
def test_wrong_specs_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        WorldSpec.from_dict(small_world().to_dict() | change)


def test_hash_seed_is_what_the_process_was_started_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "random")
    assert hash_seed() in (None, 0)
