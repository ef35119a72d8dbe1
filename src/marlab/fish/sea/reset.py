"""How an episode begins.

Two sources of the same distribution: `seeded_reset` draws each arena from NumPy's PCG64 in the original's order, for
golden values and probes; `sample_starts` draws thousands of starts at once from a torch generator, for training.

An *override* is a hard start: a predator velocity, with or without its position. Rule `preserved`: the fish meet
exactly that predator (a velocity alone gets the position of an ordinary pre-roll). Rule `rerandomised` (the
original): the velocity only begins the pre-roll, which then blurs it; a position is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import Bin, SeaConfig
from marlab.fish.sea.dynamics import Predator, SeaState, ballistic_step, plane
from marlab.fish.sea.predators import company, faster, first_memory, turned

MIN_SPEED_SCALE = 0.05
CENTRE_EPSILON = 1e-5
STILL = 1e-9


class Override(NamedTuple):
    """A hard start for one arena: predator velocity (m/s) and, where known, position (m) as the fish meet it."""

    velocity: tuple[float, float]
    position: tuple[float, float] | None = None


class Starts(NamedTuple):
    """N beginnings of an episode: fish planes [N, F], predator planes [N]."""

    x: Tensor
    y: Tensor
    vx: Tensor
    vy: Tensor
    predator_x: Tensor
    predator_y: Tensor
    predator_vx: Tensor
    predator_vy: Tensor
    pack: Tensor  # [N, 4 (P - 1)]
    memory: Tensor  # [N, M]


def begin(starts: Starts, exists: Tensor) -> SeaState:
    """The state at step 0; slots outside `exists` [N, F] hold no fish and lie at rest in the centre."""
    x, y, vx, vy = (torch.where(exists, value, 0.0) for value in starts[:4])
    return SeaState(
        x=x, y=y, vx=vx, vy=vy, exists=exists, alive=exists.clone(),
        death_step=torch.full_like(exists, -1, dtype=torch.int32), predator_x=starts.predator_x,
        predator_y=starts.predator_y, predator_vx=starts.predator_vx, predator_vy=starts.predator_vy,
        t=torch.zeros_like(starts.predator_x, dtype=torch.int32), pack=starts.pack, memory=starts.memory,
    )  # fmt: skip


# ---------------------------------------------------------------- the pre-roll, common to both sources


class PreRoll(NamedTuple):
    """The draws of a pre-roll for N predators, one row per step; None where the rule is off."""

    turn: Tensor | None  # [S, N] rad
    scale: Tensor | None  # [S, N] factor on the speed
    target: Tensor | None  # [S, N] m/s the speed is set to


def pre_roll(predator: Predator, draws: PreRoll, steps: int) -> Predator:
    """Play the predator for `steps` disturbed steps while the fish wait."""
    x, y, vx, vy = predator
    for s in range(steps):
        if draws.turn is not None:
            c, sn = torch.cos(draws.turn[s]), torch.sin(draws.turn[s])
            vx, vy = c * vx - sn * vy, sn * vx + c * vy
        if draws.scale is not None:
            vx, vy = vx * draws.scale[s], vy * draws.scale[s]
        if draws.target is not None:
            speed = torch.sqrt(vx * vx + vy * vy)
            still = speed <= STILL
            factor = draws.target[s] / torch.where(still, 1.0, speed)
            vx, vy = torch.where(still, draws.target[s], vx * factor), torch.where(still, 0.0, vy * factor)
        x, y, vx, vy = ballistic_step(Predator(x, y, vx, vy))
    return Predator(x, y, vx, vy)


# ---------------------------------------------------------------- seeded, for golden values and probes


def seeded_reset(
    seeds: Sequence[int | np.random.Generator],
    cfg: SeaConfig,
    fish: int | None = None,
    overrides: Sequence[Override | None] | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> tuple[SeaState, list[dict[str, Any]]]:
    """One arena per seed with `fish` fish (default `cfg.num_fish`), and each arena's `pre_roll_stats`.

    A generator in place of a seed is drawn from where it stands, so that one generator can serve many episodes.
    """
    fish = cfg.num_fish if fish is None else fish
    given = [None] * len(seeds) if overrides is None else list(overrides)
    shoals, draws = [], []
    for seed, override in zip(seeds, given, strict=True):
        rng = np.random.default_rng(seed)
        shoals.append(_draw_shoal(rng, fish, cfg))
        draws.append(_draw_predator(rng, cfg, override))
        if cfg.predator_pull == "random":
            draws[-1].turned = rng.uniform(0.0, 2 * math.pi)
    predator = _seeded_predators(draws, cfg)
    stats = [_record(draw, velocity) for draw, velocity in zip(draws, torch.stack(predator[2:], 1).tolist())]
    planes = (
        plane(len(seeds), fish, dtype, device).copy_(torch.from_numpy(values)) for values in np.stack(shoals, axis=1)
    )
    beside = (
        company(predator, cfg),
        first_memory(predator, cfg, _turns(draws) if cfg.predator_pull == "random" else None),
    )
    starts = Starts(*planes, *(values.to(device, dtype) for values in (*predator, *beside)))
    return begin(starts, torch.ones_like(starts.x, dtype=torch.bool)), stats


def _draw_shoal(rng: np.random.Generator, fish: int, cfg: SeaConfig) -> np.ndarray:
    """x, y, vx, vy as [4, F]."""
    draws = rng.random((fish, 4))  # the same stream as four uniform() calls per fish
    angle, radius = draws[:, 0] * 2 * math.pi, draws[:, 1] * sea.SPAWN_RADIUS
    heading, speed = draws[:, 2] * 2 * math.pi, draws[:, 3] * sea.SPAWN_MAX_SPEED
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    if cfg.initial_escape_boost:
        speed = np.full(fish, sea.FISH_MAX_SPEED * cfg.escape_boost_speed)
        for i in range(fish):
            outward = (x[i], y[i]) if radius[i] >= CENTRE_EPSILON else rng.normal(size=2)
            heading[i] = math.atan2(outward[1], outward[0]) + rng.normal(0.0, cfg.escape_jitter_std)
    return np.stack((x, y, speed * np.cos(heading), speed * np.sin(heading)))


@dataclass
class _PredatorDraws:
    """What one arena's generator gave its predator, in the order of the draws."""

    override: Override | None
    spawn_radius: float = 0.0
    spawn_angle: float = 0.0
    heading_deg: float | None = None
    velocity: tuple[float, float] = (sea.PREDATOR_SPEED, 0.0)
    turn: list[float] = field(default_factory=list)
    scale: list[float] = field(default_factory=list)
    target: list[float] = field(default_factory=list)
    steps: int = 0
    turned: float = 0.0  # rad: the whole start turned around the centre, the pull with it


def _draw_predator(rng: np.random.Generator, cfg: SeaConfig, override: Override | None) -> _PredatorDraws:
    draws = _PredatorDraws(override)
    if cfg.predator_spawn_jitter_radius > 0:
        draws.spawn_radius = rng.uniform(0.0, min(cfg.predator_spawn_jitter_radius, sea.SPAWN_RADIUS))
        draws.spawn_angle = rng.uniform(0.0, 2 * math.pi)
    preserved = cfg.override_preroll != "rerandomised"
    if override is not None and (override.position is not None or not preserved):
        draws.velocity = override.velocity
        if preserved:
            return draws  # a full state needs no pre-roll
    elif cfg.heading_wedges:
        draws.heading_deg = _draw_bin(rng, cfg.heading_wedges)
        heading = math.radians(draws.heading_deg)
        draws.velocity = sea.PREDATOR_SPEED * math.cos(heading), sea.PREDATOR_SPEED * math.sin(heading)
    draws.steps = cfg.predator_pre_roll_steps
    for _ in range(draws.steps):
        if (turn := cfg.predator_pre_roll_angle_jitter) > 0:
            draws.turn.append(rng.uniform(-turn, turn))
        if (change := cfg.predator_pre_roll_speed_jitter) > 0:
            draws.scale.append(max(MIN_SPEED_SCALE, 1.0 + rng.uniform(-change, change)))
        if cfg.speed_bins:
            draws.target.append(_draw_bin(rng, cfg.speed_bins))
    return draws


def _draw_bin(rng: np.random.Generator, bins: tuple[Bin, ...]) -> float:
    """A bin by weight, then a value inside it."""
    pick = rng.uniform(0.0, sum(b.weight for b in bins))
    reached = 0.0
    for chosen in bins:
        reached += chosen.weight
        if reached >= pick:
            break
    return float(rng.uniform(chosen.start, chosen.end))


def _seeded_predators(draws: list[_PredatorDraws], cfg: SeaConfig) -> Predator:
    """All arenas' predators [B] as the fish will meet them, in double precision."""

    def rows(name: str) -> Tensor | None:  # [S, B]; an arena without a pre-roll is overwritten below
        lists = [getattr(draw, name) or [1.0] * cfg.predator_pre_roll_steps for draw in draws]
        on = any(getattr(draw, name) for draw in draws)
        return torch.tensor(lists, dtype=torch.float64).t() if on else None

    spawn = [(d.spawn_radius * math.cos(d.spawn_angle), d.spawn_radius * math.sin(d.spawn_angle)) for d in draws]
    first = torch.tensor([(*place, *d.velocity) for place, d in zip(spawn, draws)], dtype=torch.float64)
    rolled = pre_roll(
        Predator(*first.unbind(1)), PreRoll(rows("turn"), rows("scale"), rows("target")), cfg.predator_pre_roll_steps
    )
    final = torch.stack(_as_the_sea_wants(rolled, cfg, _turns(draws)), dim=1)  # [B, 4]
    if cfg.override_preroll != "rerandomised":
        for arena, draw in enumerate(draws):
            if draw.override is not None:
                final[arena, 2:] = torch.tensor(draw.override.velocity, dtype=torch.float64)
                if draw.override.position is not None:
                    final[arena, :2] = torch.tensor(draw.override.position, dtype=torch.float64)
    return Predator(*final.unbind(1))


def _turns(draws: list[_PredatorDraws]) -> Tensor:
    """[B] rad"""
    return torch.tensor([draw.turned for draw in draws], dtype=torch.float64)


def _as_the_sea_wants(rolled: Predator, cfg: SeaConfig, angle: Tensor) -> Predator:
    """The predator after its pre-roll, turned to the side that pulls it and at the speed of the settings."""
    if cfg.predator_pull == "random":
        rolled = turned(rolled, angle)
    if not cfg.hunted and cfg.predator_speed_factor != 1:
        rolled = faster(rolled, cfg.predator_speed_factor)
    return rolled


def _record(draws: _PredatorDraws, final_velocity: list[float]) -> dict[str, Any]:
    """The arena's `pre_roll_stats`."""
    record: dict[str, Any] = {
        "spawn_radius": draws.spawn_radius, "spawn_angle_deg": math.degrees(draws.spawn_angle),
        "pre_roll_steps": draws.steps, "angle_jitter_deg": [math.degrees(turn) for turn in draws.turn],
        "speed_scale": draws.scale, "speed_bias_target": draws.target, "heading_bias_angle_deg": draws.heading_deg,
        "prewarm_velocity_override": draws.override is not None,
    }  # fmt: skip
    if draws.override is not None:
        record["prewarm_velocity"] = list(draws.override.velocity)
    for name, (vx, vy) in (("initial", draws.velocity), ("final", final_velocity)):
        record[f"{name}_velocity"] = [vx, vy]
        record[f"{name}_speed"] = math.hypot(vx, vy)
        record[f"{name}_heading_deg"] = math.degrees(math.atan2(vy, vx)) % 360.0
    return record


# ---------------------------------------------------------------- in volume, for training


def sample_starts(
    count: int, fish: int, cfg: SeaConfig, generator: torch.Generator, dtype: torch.dtype = torch.float32
) -> Starts:
    """`count` ordinary starts of `fish` fish, on the generator's device, in the distribution of `seeded_reset`."""

    def in_layout(draws: Tensor) -> Tensor:
        return plane(count, fish, dtype, generator.device).copy_(draws)

    def uniform(high: float) -> Tensor:
        return in_layout(torch.rand(count, fish, generator=generator, device=generator.device, dtype=dtype)) * high

    angle, radius = uniform(2 * math.pi), uniform(sea.SPAWN_RADIUS)
    if cfg.initial_escape_boost:
        # Outwards is the spawn angle itself; at the very centre that is as random as a random direction.
        jitter = torch.randn(count, fish, generator=generator, device=generator.device, dtype=dtype)
        heading = angle + in_layout(jitter) * cfg.escape_jitter_std
        speed = torch.full_like(heading, sea.FISH_MAX_SPEED * cfg.escape_boost_speed)
    else:
        heading, speed = uniform(2 * math.pi), uniform(sea.SPAWN_MAX_SPEED)
    predator = sample_predators(count, cfg, generator, dtype)
    side = None
    if cfg.predator_pull == "random":
        side = torch.rand(count, generator=generator, device=generator.device, dtype=dtype) * (2 * math.pi)
        predator = turned(predator, side)
    return Starts(
        radius * torch.cos(angle), radius * torch.sin(angle), speed * torch.cos(heading),
        speed * torch.sin(heading), *predator, company(predator, cfg), first_memory(predator, cfg, side),
    )  # fmt: skip


def sample_predators(
    count: int,
    cfg: SeaConfig,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
    velocity: tuple[Tensor, Tensor] | None = None,
) -> Predator:
    """Predators [count] after the pre-roll; `velocity` replaces the first velocity (rule `rerandomised`)."""

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        draws = torch.rand(*shape, generator=generator, device=generator.device, dtype=dtype)
        return draws.mul_(high - low).add_(low)

    def from_bins(bins: tuple[Bin, ...], *shape: int) -> Tensor:
        return _sample_bins(bins, uniform(0.0, 1.0, *shape), uniform(0.0, 1.0, *shape))

    radius = uniform(0.0, min(cfg.predator_spawn_jitter_radius, sea.SPAWN_RADIUS), count)
    angle = uniform(0.0, 2 * math.pi, count)
    if velocity is None:
        heading = torch.zeros_like(radius)
        if cfg.heading_wedges:
            heading = torch.deg2rad(from_bins(cfg.heading_wedges, count))
        velocity = sea.PREDATOR_SPEED * torch.cos(heading), sea.PREDATOR_SPEED * torch.sin(heading)
    steps, turn, change = (
        cfg.predator_pre_roll_steps,
        cfg.predator_pre_roll_angle_jitter,
        cfg.predator_pre_roll_speed_jitter,
    )
    draws = PreRoll(
        uniform(-turn, turn, steps, count) if turn > 0 else None,
        uniform(1 - change, 1 + change, steps, count).clamp_(min=MIN_SPEED_SCALE) if change > 0 else None,
        from_bins(cfg.speed_bins, steps, count) if cfg.speed_bins else None,
    )
    rolled = pre_roll(Predator(radius * torch.cos(angle), radius * torch.sin(angle), *velocity), draws, steps)
    if not cfg.hunted and cfg.predator_speed_factor != 1:
        rolled = faster(rolled, cfg.predator_speed_factor)
    return rolled


def _sample_bins(bins: tuple[Bin, ...], pick: Tensor, inside: Tensor) -> Tensor:
    """Values from weighted bins; `pick` and `inside` are uniform in [0, 1)."""
    start, end, weight = torch.tensor(bins, dtype=pick.dtype, device=pick.device).unbind(1)
    edges = weight.cumsum(0) / weight.sum()
    chosen = torch.searchsorted(edges, pick).clamp(max=len(bins) - 1)
    return start[chosen] + inside * (end - start)[chosen]
