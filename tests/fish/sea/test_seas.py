"""The named seas: frozen, found by name, and each with the preset of its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from marlab.fish.measure.config import SeaName
from marlab.fish.sea.config import SeaConfig, decided
from marlab.fish.sea.constants import VISION_RADIUS
from marlab.fish.sea.seas import SEAS, name_of, named_sea, scene
from marlab.fish.training import assemble
from marlab.fish.training.config import PRESETS, FishTrainConfig
from marlab.lab.config import from_dict, load_preset
from marlab.lab.errors import UserError

FROZEN = {  # mode, pull, speed, factor, turn rate, predators, confusion
    "v32": ("ballistic", "north", 2.4, 1.0, 2.0, 1, 0.0),
    "pull": ("ballistic", "random", 2.4, 3.0, 2.0, 1, 0.0),
    "pursuit": ("pursuit", "north", 2.4, 1.0, 2.0, 1, 0.0),
    "intercept": ("intercept", "north", 2.4, 1.0, 2.0, 1, 0.0),
    "burst": ("burst", "north", 2.0, 1.0, 1.5, 1, 0.0),
    "pack": ("pack", "north", 2.2, 1.0, 1.2, 2, 0.0),
    "shoal": ("intercept", "north", 2.6, 1.0, 2.0, 1, 0.5),
}


def numbers(cfg: SeaConfig) -> tuple[object, ...]:
    fields = "mode", "pull", "speed", "speed_factor", "turn_rate", "count", "confusion"
    return tuple(getattr(cfg, f"predator_{field}") for field in fields)


def test_seas_do_not_change() -> None:
    assert {name: numbers(cfg) for name, cfg in SEAS.items()} == FROZEN
    assert {cfg.num_fish for name, cfg in SEAS.items() if name != "v32"} == {32}
    assert {name: cfg.vision_radius for name, cfg in SEAS.items() if cfg.vision_radius != VISION_RADIUS} == {
        "pull": 1.5
    }
    assert set(SeaName.__args__) == {"trained", *SEAS}  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in SEAS if name != "v32"])
def test_the_preset_of_a_sea_trains_in_it(name: str) -> None:
    config = from_dict(FishTrainConfig, load_preset(name, PRESETS).values, f"preset {name}")
    trained = assemble.sea_config(config)
    decided = {field: getattr(trained, field) for field in ("episode_end", "vision_reward", "heading_wrap")}
    sea = replace(named_sea(name, trained), **decided, override_preroll=trained.override_preroll)
    assert trained == sea
    assert name_of(trained) == name


def test_a_sea_is_seen_with_the_eyes_of_the_policy() -> None:
    eyes = SeaConfig(include_neighbor_features=False, neighbor_radius=2.0, num_fish=7)
    sea = named_sea("pack", eyes)
    assert (sea.include_neighbor_features, sea.neighbor_radius, sea.num_fish) == (False, 2.0, 32)
    assert named_sea("v32") == SeaConfig()
    assert name_of(SeaConfig(predator_speed_factor=1.5)) is None
    with pytest.raises(UserError, match="no sea called 'lake'"):
        named_sea("lake")


def test_a_scene_is_the_same_for_all_eyes_and_rewards_and_for_nothing_else() -> None:
    here = scene(SEAS["pursuit"])
    assert here.startswith("pursuit-")
    blind = replace(SEAS["pursuit"], include_neighbor_features=False, density_penalty_coef=0.1, num_fish=9)
    assert scene(blind) == here == scene(decided(blind, False))  # as trained policies have it, no switch open
    assert scene(decided(blind, True)) != here
    for other in (SEAS["intercept"], replace(SEAS["pursuit"], escape_boost_speed=0.5)):
        assert scene(other) != here
    assert scene(replace(SEAS["pursuit"], predator_speed=1.0)).startswith("own-")
