"""The sea's configuration; units and letters are those of `sea/constants.py`.

A switch is a rule that the original got wrong, a field with two readings: `Literal["continuous", "cliff"] | None`. The
first is ours, the last the original's. None leaves it open: it is ours, unless a training with `compat` decides it.
"""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

from marlab.fish.sea.constants import VISION_RADIUS
from marlab.lab.checks import at_least, positive, share
from marlab.lab.errors import UserError

C = TypeVar("C")


def switches(cls: type[Any]) -> dict[str, tuple[str, ...]]:
    """The switches of a config class and their choices."""
    options = {name: typing.get_args(hint) for name, hint in typing.get_type_hints(cls).items()}
    return {
        name: typing.get_args(args[0])
        for name, args in options.items()
        if len(args) == 2 and args[1] is type(None) and typing.get_origin(args[0]) is Literal
    }


def originals(cls: type[Any]) -> dict[str, Any]:
    """The original's side of every switch of a config class."""
    return {name: choices[-1] for name, choices in switches(cls).items()}


def decided(config: C, compat: bool) -> C:
    """The config with every open switch set: as the original read it with `compat`, else as we do."""
    values = {name: choices[-1 if compat else 0] for name, choices in switches(type(config)).items()}
    chosen = {name: value for name, value in values.items() if getattr(config, name) is None}
    return replace(config, **chosen)  # type: ignore[type-var]


def check_switches(config: Any) -> None:
    """Refuse a switch that is set to neither of its choices."""
    for name, choices in switches(type(config)).items():
        if getattr(config, name) not in (None, *choices):
            raise UserError(f"{name} is {getattr(config, name)!r}; it must be {' or '.join(choices)}.")


OWN_INPUTS = 11
"""What a fish sees of itself and the predator comes first, whatever it sees of its neighbours."""
NEIGHBOUR_INPUTS, RAYS = 5, 16
"""Numbers per neighbour in the view `nearest`, and sectors in the view `rays`."""
V32_HEADING_BIAS = "0-60:1.1,60-90:0.8,90-120:0.08,120-150:0.05,150-210:0.9,210-270:1.3,270-330:1.2,330-360:0.95"
V32_SPEED_BIAS = "0-1.0:1.6,1.0-1.6:1.3,1.6-2.0:0.7,2.0-2.4:0.35,2.4-3.0:0.2"


class Bin(NamedTuple):
    """One weighted interval of a bias: degrees for headings, m/s for speeds."""

    start: float
    end: float
    weight: float


@dataclass(frozen=True)
class SeaConfig:
    """Everything that defines the world; the defaults are the v32 trainer's, with the fixed rules."""

    num_fish: int = 25
    """Fish per arena; a training takes it where the curriculum is empty."""
    include_neighbor_features: bool = True
    """Give each fish seven numbers about its neighbours: 18 inputs instead of 11."""
    neighbor_view: Literal["summary", "nearest", "rays"] = "summary"
    """How neighbours are seen: seven summary numbers, each of the nearest by itself (read by attention), or 16 rays."""
    neighbor_radius: float = 3.0
    """A living fish this near (m) is a neighbour."""
    neighbor_average_count: int = 6
    """How many nearest neighbours the mean offset is taken over, and the unit of crowding."""
    initial_escape_boost: bool = True
    """Start every fish swimming outwards instead of in a random direction."""
    escape_boost_speed: float = 0.75
    """Speed of that start as a fraction of the fish's top speed, where a phase names none."""
    escape_jitter_std: float = 0.35
    """Standard deviation of that start's direction (rad)."""
    divergence_reward_coef: float = 0.0
    """Weight of the reward for neighbours that move away."""
    density_penalty_coef: float = 0.0
    """Weight of the penalty for crowding; in a training that of the time before the first phase."""
    density_target: float = 0.4
    """Crowding (neighbours / neighbor_average_count) that is still free of penalty."""
    predator_spawn_jitter_radius: float = 1.6
    """The predator starts within this distance (m) of the centre; 0 starts it at the centre."""
    predator_pre_roll_steps: int = 16
    """Predator steps played before the fish may move."""
    predator_pre_roll_angle_jitter: float = 0.3
    """Largest random turn (rad) before each pre-roll step."""
    predator_pre_roll_speed_jitter: float = 0.2
    """Largest random relative change of speed before each pre-roll step."""
    predator_heading_bias: str = V32_HEADING_BIAS
    """Weighted wedges of the predator's first heading, `start-end:weight,...` in degrees; empty: always +x."""
    predator_pre_roll_speed_bias: str = V32_SPEED_BIAS
    """Weighted bins of the speed set before each pre-roll step, `low-high:weight,...` in m/s; empty: none."""
    predator_mode: Literal["ballistic", "pursuit", "intercept", "burst", "pack", "learned"] = "ballistic"
    """How the predator moves once the fish may: a ball that falls north, or a hunter (see docs/guides/fish.md)."""
    predator_pull: Literal["north", "random"] = "north"
    """Where the ballistic predator falls to: north, or a side that every episode draws."""
    predator_speed: float = 2.4
    """Top speed of a hunting predator (m/s)."""
    predator_speed_factor: float = 1.0
    """Factor on the predator's speed: a ballistic one takes its path so much faster, a hunter's top speed grows."""
    predator_turn_rate: float = 2.0
    """How fast a hunting predator can turn (rad/s)."""
    predator_vision: float = 6.0
    """A hunting predator sees fish within this distance (m)."""
    predator_policy: str = ""
    """File of a predator that learned (`marlab fish selfplay` writes them), for predator_mode=learned."""
    predator_count: int = 1
    """Predators per arena; more than one in a pack."""
    predator_confusion: float = 0.0
    """Every further fish within 1 m of the hunted one divides the hunter's turn rate: by 1 + this for each; 0: off."""
    vision_radius: float = VISION_RADIUS
    """How far (m) fish see the predator."""
    episode_end: Literal["truncated", "terminated"] | None = None
    """Step 500 cuts an episode off, or (compat) counts as the death of all who live."""
    vision_reward: Literal["continuous", "cliff"] | None = None
    """Reward far from the predator: no less than near it, or (compat) half of it."""
    heading_wrap: Literal["kept", "lost"] | None = None
    """Heading wedges that end at 360 degrees are kept, or (compat) lost."""
    override_preroll: Literal["preserved", "rerandomised"] | None = None
    """A hard start is met as written, or (compat) blurred by the pre-roll."""

    def __post_init__(self) -> None:
        at_least(self, 1, "num_fish", "neighbor_average_count")
        at_least(self, 1e-3, "neighbor_radius")
        share(self, "escape_boost_speed", "density_target")
        at_least(self, 0, "escape_jitter_std", "predator_spawn_jitter_radius", "predator_pre_roll_steps")
        at_least(self, 0, "predator_pre_roll_angle_jitter", "predator_pre_roll_speed_jitter")
        if self.neighbor_view not in ("summary", "nearest", "rays"):
            raise UserError(f"neighbor_view is {self.neighbor_view!r}; it must be summary, nearest or rays.")
        at_least(self, 0, "predator_confusion")
        positive(
            self, "predator_speed", "predator_speed_factor", "predator_turn_rate", "predator_vision", "vision_radius"
        )
        self._check_predators()
        check_switches(self)
        _ = self.heading_wedges, self.speed_bins  # a malformed bias is refused now, not at the first reset

    def _check_predators(self) -> None:
        modes = typing.get_args(typing.get_type_hints(SeaConfig)["predator_mode"])
        if self.predator_mode not in modes:
            raise UserError(f"predator_mode is {self.predator_mode!r}; it must be one of {', '.join(modes)}.")
        if self.predator_pull not in ("north", "random"):
            raise UserError(f"predator_pull is {self.predator_pull!r}; it must be north or random.")
        if self.predator_pull == "random" and self.predator_mode != "ballistic":
            raise UserError(f"predator_pull is random, but a predator in the mode {self.predator_mode} is not pulled.")
        if (self.predator_mode == "learned") != bool(self.predator_policy):
            raise UserError("predator_mode=learned and predator_policy=FILE belong together: give both or neither.")
        if (self.predator_mode == "pack") != (self.predator_count > 1) or self.predator_count < 1:
            raise UserError(
                f"predator_count is {self.predator_count} with predator_mode={self.predator_mode}; a pack has at least "
                "2 predators, every other mode 1."
            )

    @property
    def hunted(self) -> bool:
        """Whether the predator minds the fish. Where it does not, what is possible at best can be computed."""
        return self.predator_mode != "ballistic"

    @property
    def predator_memory(self) -> int:
        """Numbers that the predator carries beside place and velocity (`sea/predators.py`)."""
        return 2 if self.predator_mode == "burst" or self.predator_pull == "random" else 0

    @cached_property
    def heading_wedges(self) -> tuple[Bin, ...]:
        """The predator's first-heading wedges in degrees; a wedge across 360 is split in two."""
        return _parse_headings(self.predator_heading_bias, keep_360=self.heading_wrap != "lost")

    @cached_property
    def speed_bins(self) -> tuple[Bin, ...]:
        """The pre-roll speed bins in m/s."""
        bins = _parse_bins("predator_pre_roll_speed_bias", self.predator_pre_roll_speed_bias)
        for low, high, _ in bins:
            if low < 0 or high <= low:
                raise UserError(
                    f"predator_pre_roll_speed_bias has the bin {low:g}-{high:g}; a bin needs 0 <= low < high."
                )
        return bins

    @property
    def observation_size(self) -> int:
        if not self.include_neighbor_features:
            return OWN_INPUTS
        more = {"summary": 7, "nearest": NEIGHBOUR_INPUTS * self.neighbor_average_count, "rays": 3 * RAYS}
        return OWN_INPUTS + more[self.neighbor_view]

    @property
    def attends(self) -> bool:
        """Whether a network sees neighbours one by one."""
        return self.include_neighbor_features and self.neighbor_view == "nearest"


COMPAT_SWITCHES = originals(SeaConfig)
"""The original's side of every switch of the sea: `SeaConfig(**COMPAT_SWITCHES)`."""


def _parse_bins(name: str, text: str) -> tuple[Bin, ...]:
    bins = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        interval, _, weight_text = part.partition(":")
        start_text, _, end_text = interval.partition("-")
        try:
            start, end, weight = float(start_text), float(end_text), float(weight_text)
        except ValueError:
            raise UserError(f"{name} has the entry {part!r}; write start-end:weight, such as 0-60:1.1.") from None
        if not (math.isfinite(start) and math.isfinite(end) and math.isfinite(weight) and weight > 0):
            raise UserError(f"{name} has the entry {part!r}; its numbers must be finite and its weight above 0.")
        bins.append(Bin(start, end, weight))
    return tuple(bins)


def _parse_headings(text: str, keep_360: bool) -> tuple[Bin, ...]:
    wedges: list[Bin] = []
    for start, end, weight in _parse_bins("predator_heading_bias", text):
        if not (0 <= start <= 360 and 0 <= end <= 360) or start == end:
            raise UserError(
                f"predator_heading_bias has the wedge {start:g}-{end:g}; both ends must lie in 0-360 and differ."
            )
        if end > start:
            wedges.append(Bin(start, end, weight))
        else:  # across 360: each side keeps its part of the weight
            span = 360 - start + end
            sides = (Bin(start, 360.0, weight * (360 - start) / span), Bin(0.0, end, weight * end / span))
            wedges.extend(side for side in sides if side.end > side.start)
    if not keep_360:
        wedges = [wedge for wedge in wedges if wedge.end < 360]
        if text.strip() and not wedges:
            raise UserError(
                "predator_heading_bias has only wedges that end at 360, which heading_wrap=lost drops; use kept."
            )
    return tuple(wedges)
