"""The sea's settings: wedges of headings, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest
import torch

from marlab.fish.sea.config import COMPAT_SWITCHES, SeaConfig, check_switches, decided, originals, switches
from marlab.fish.sea.reset import sample_predators, seeded_reset
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class Rules:
    count: int = 3
    mode: Literal["fast", "slow"] = "fast"
    end: Literal["cut", "death"] | None = None
    queue: Literal["cyclic", "fifo"] | None = "fifo"


def test_only_open_fields_are_decided() -> None:
    assert switches(Rules) == {"end": ("cut", "death"), "queue": ("cyclic", "fifo")}
    assert originals(Rules) == {"end": "death", "queue": "fifo"}
    assert decided(Rules(), compat=False) == Rules(end="cut") and decided(Rules(), compat=True) == Rules(end="death")


def test_neither_choice_is_refused() -> None:
    check_switches(Rules())
    with pytest.raises(UserError, match="end is 'x'; it must be cut or death"):
        check_switches(Rules(end="x"))  # type: ignore[arg-type]


def test_the_seas_switches() -> None:
    assert COMPAT_SWITCHES == {
        "episode_end": "terminated", "vision_reward": "cliff", "heading_wrap": "lost",
        "override_preroll": "rerandomised",
    }  # fmt: skip
    assert decided(SeaConfig(), compat=True) == SeaConfig(**COMPAT_SWITCHES)


def heading_deg(predator: object) -> torch.Tensor:
    return torch.rad2deg(torch.atan2(predator.vy, predator.vx)) % 360  # type: ignore[attr-defined]


def test_a_wedge_up_to_360_keeps_its_headings() -> None:
    cfg = SeaConfig(predator_heading_bias="330-360:1", predator_pre_roll_steps=0)
    headings = heading_deg(sample_predators(2000, cfg, torch.Generator().manual_seed(0)))
    assert bool(((headings >= 330) & (headings < 360)).all())
    _, records = seeded_reset(list(range(50)), cfg, 1)
    assert all(330 <= record["initial_heading_deg"] < 360 for record in records)


def test_a_wedge_across_360_is_split_and_compat_loses_the_part_that_ends_there() -> None:
    kept = SeaConfig(predator_heading_bias="350-20:3,90-100:1")
    assert kept.heading_wedges == ((350, 360, 1), (0, 20, 2), (90, 100, 1))
    lost = SeaConfig(predator_heading_bias="350-20:3,90-100:1", heading_wrap="lost")
    assert lost.heading_wedges == ((0, 20, 2), (90, 100, 1))
    assert len(SeaConfig().heading_wedges) == 8 and len(SeaConfig(**COMPAT_SWITCHES).heading_wedges) == 7


@pytest.mark.parametrize(
    "values",
    [
        {"predator_heading_bias": "0-60"},
        {"predator_heading_bias": "0-60:x"},
        {"predator_heading_bias": "0-60:-1"},
        {"predator_heading_bias": "60-60:1"},
        {"predator_heading_bias": "0-400:1"},
        {"predator_heading_bias": "330-360:1", "heading_wrap": "lost"},
        {"predator_pre_roll_speed_bias": "2-1:1"},
        {"predator_pre_roll_speed_bias": "0-1:nan"},
        {"neighbor_radius": 0.0},
        {"neighbor_average_count": 0},
        {"escape_boost_speed": 1.2},
        {"density_target": -0.1},
        {"predator_pre_roll_steps": -1},
        {"num_fish": 0},
        {"episode_end": "never"},
    ],
)
def test_bad_settings_are_one_sentence(values: dict) -> None:
    with pytest.raises(UserError) as refusal:
        SeaConfig(**values)
    assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value)
