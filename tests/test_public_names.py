"""What `import marlab.WORLD` offers: the list itself, that every name works, and that importing it costs nothing."""

from __future__ import annotations

import importlib
import subprocess
import sys

import gymnasium
import pytest

import marlab.fish as fish
import marlab.hunt as hunt
from marlab.lab.errors import UserError

NAMES = {
    "fish": ["FishTrainConfig", "FishWorld", "SeaConfig", "evaluate", "load", "make_env", "train"],
    "hunt": ["GameConfig", "RulePlayers", "diagnose", "evaluate", "load", "make_game", "parallel_env", "train"],
    "market": [
        "AgentSettings", "DayState", "LitaAgentHRL", "clone", "collect", "make_samples", "open_dataset", "play",
        "record", "train",
    ],
}  # fmt: skip
"""A name enters this list together with what makes it work; one that leaves it breaks somebody's program."""


@pytest.mark.parametrize("world", NAMES)
def test_the_list_is_as_promised_and_every_name_is_there(world: str) -> None:
    module = importlib.import_module(f"marlab.{world}")
    assert sorted(module.__all__) == NAMES[world]
    for name in NAMES[world]:
        if name in ("LitaAgentHRL", "record"):
            pytest.importorskip("scml")
        offered = getattr(module, name)
        assert callable(offered.attach if name == "record" else offered), name
        assert name in dir(module)
    with pytest.raises(AttributeError, match="has no attribute 'tain'"):
        _ = module.tain


def test_a_world_is_imported_without_what_only_its_use_needs() -> None:
    heavy = ("torch", "scml", "negmas", "matplotlib", "shtab", "pettingzoo", "scipy")
    code = f"import sys, marlab.fish, marlab.hunt, marlab.market; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_world_is_imported_where_gymnasium_is_missing() -> None:
    code = "import sys; sys.modules['gymnasium'] = None; import marlab.fish; marlab.fish.SeaConfig()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("order", ["import marlab.fish, gymnasium", "import gymnasium"])
def test_gymnasium_knows_the_sea(order: str) -> None:
    name = "FishEscape-v0" if "marlab" in order else "marlab.fish:FishEscape-v0"
    subprocess.run([sys.executable, "-c", f"{order}; gymnasium.make('{name}', num_fish=3).reset(seed=0)"], check=True)


def test_a_room_with_the_name_of_a_function_can_be_called() -> None:
    from marlab.market import collect  # noqa: F401

    with pytest.raises(UserError, match="Name an agent"):
        hunt.evaluate()
    with pytest.raises(UserError, match="Say which run"):
        hunt.diagnose()


def test_an_unknown_name_is_answered_with_the_shipped_ones() -> None:
    with pytest.raises(UserError, match="one of the shipped best"):
        fish.load("bets")
    with pytest.raises(UserError, match="Shipped agents: hop_4x4, hop_8x8_b5"):
        hunt.load("hop_44")


def test_gymnasium_ids_stay() -> None:
    assert {"FishEscape-v0", "FishEscapeSingle-v0"} <= set(gymnasium.registry)
