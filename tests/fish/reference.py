"""The rules of the sea once more, as a plain loop over fish: one arena, Python floats, no tensors, no shared code.

The batched core is tested against it step by step, and the speed benchmark measures it as the baseline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

RADIUS = 10.0
VISION = 10.0 / 3.0
TOP_SPEED = 2.0
COS30, SIN30 = math.cos(math.pi / 6), math.sin(math.pi / 6)


@dataclass
class ReferenceFish:
    x: float
    y: float
    vx: float
    vy: float
    alive: bool = True
    death_step: int = -1


@dataclass
class ReferenceSea:
    """One arena, advanced by `step`; the switches are those that change step, reward or observation."""

    fish: list[ReferenceFish]
    px: float
    py: float
    pvx: float
    pvy: float
    with_neighbours: bool = True
    neighbour_radius: float = 3.0
    neighbour_count: int = 6
    density_coef: float = 0.0
    density_target: float = 0.4
    divergence_coef: float = 0.0
    cliff: bool = False
    t: int = field(default=0)

    def step(self, actions: list[int]) -> tuple[list[float], list[list[float] | None]]:
        """Rewards of all fish and observations (None for the dead) after the actions of all fish."""
        self.t += 1
        was_alive = [f.alive for f in self.fish]
        for one, action in zip(self.fish, actions):
            if one.alive:
                self._move(one, action)
        self._move_predator()
        for one in self.fish:
            if one.alive and math.hypot(one.x - self.px, one.y - self.py) < 0.7:
                one.alive = False
                one.death_step = self.t
        rewards = [self._reward(i, was_alive[i]) for i in range(len(self.fish))]
        return rewards, self.observations()

    def observations(self) -> list[list[float] | None]:
        return [self._observation(i) if one.alive else None for i, one in enumerate(self.fish)]

    def _move(self, f: ReferenceFish, action: int) -> None:
        speed = math.hypot(f.vx, f.vy)
        dx, dy = (f.vx / speed, f.vy / speed) if speed > 0.01 else (1.0, 0.0)
        if action == 0:
            f.vx, f.vy = f.vx + 0.1 * dx, f.vy + 0.1 * dy
        elif action == 1:
            f.vx, f.vy = speed * (COS30 * dx - SIN30 * dy), speed * (SIN30 * dx + COS30 * dy)
        elif action == 2:
            f.vx, f.vy = speed * (COS30 * dx + SIN30 * dy), speed * (-SIN30 * dx + COS30 * dy)
        elif action == 3:
            f.vx, f.vy = 0.9 * f.vx, 0.9 * f.vy
        speed = math.hypot(f.vx, f.vy)
        if speed > TOP_SPEED:
            f.vx, f.vy = f.vx * TOP_SPEED / speed, f.vy * TOP_SPEED / speed
        f.x, f.y = f.x + 0.1 * f.vx, f.y + 0.1 * f.vy
        f.x, f.y, f.vx, f.vy = _wall(f.x, f.y, f.vx, f.vy, 0.5)

    def _move_predator(self) -> None:
        self.pvy += 0.05
        x, y = self.px + 0.1 * self.pvx, self.py + 0.1 * self.pvy
        self.px, self.py, self.pvx, self.pvy = _wall(x, y, self.pvx, self.pvy, 0.85)

    def _reward(self, i: int, was_alive: bool) -> float:
        f = self.fish[i]
        if not f.alive:
            return -50.0 if was_alive else 0.0
        d = math.hypot(f.x - self.px, f.y - self.py)
        outside = 5.0 if self.cliff else 10.0
        total = 2.0 + (10.0 * d / VISION if d < VISION else outside)
        wall = RADIUS - math.hypot(f.x, f.y)
        if wall < 1.0:
            total -= 2.0 * (1.0 - wall)
        if self.with_neighbours:
            others = self._neighbours(i)
            if others:
                crowd = len(others) / self.neighbour_count
                total -= self.density_coef * max(crowd - self.density_target, 0.0)
                away = sum((g.vx * dx + g.vy * dy) / d / TOP_SPEED for d, dx, dy, g in others)
                total += self.divergence_coef * away / len(others)
        return 0.1 * total

    def _neighbours(self, i: int) -> list[tuple[float, float, float, ReferenceFish]]:
        me = self.fish[i]
        found = []
        for j, other in enumerate(self.fish):
            if j == i or not other.alive:
                continue
            dx, dy = other.x - me.x, other.y - me.y
            d = math.sqrt(dx * dx + dy * dy)
            if d <= self.neighbour_radius:
                found.append((d, dx, dy, other))
        return found

    def _observation(self, i: int) -> list[float]:
        f = self.fish[i]
        d = math.hypot(self.px - f.x, self.py - f.y)
        row = [f.x / RADIUS, f.y / RADIUS, f.vx / TOP_SPEED, f.vy / TOP_SPEED]
        row.append((RADIUS - math.hypot(f.x, f.y)) / RADIUS)
        if d < VISION:
            row += [1.0, (self.px - f.x) / VISION, (self.py - f.y) / VISION]
            row += [self.pvx / TOP_SPEED, self.pvy / TOP_SPEED, d / VISION]
        else:
            row += [0.0] * 6
        if self.with_neighbours:
            row += self._neighbour_features(i)
        return row

    def _neighbour_features(self, i: int) -> list[float]:
        others = self._neighbours(i)
        if not others:
            return [0.0] * 7
        n = len(others)
        nearest = sorted(others, key=lambda item: item[0])[: self.neighbour_count]
        speeds = [math.sqrt(g.vx * g.vx + g.vy * g.vy) / TOP_SPEED for _, _, _, g in others]
        mean = sum(speeds) / n
        return [
            min(n / self.neighbour_count, 1.0),
            sum(dx for _, dx, _, _ in nearest) / len(nearest) / self.neighbour_radius,
            sum(dy for _, _, dy, _ in nearest) / len(nearest) / self.neighbour_radius,
            nearest[0][0] / self.neighbour_radius,
            mean,
            math.sqrt(sum((s - mean) ** 2 for s in speeds) / n),
            sum((g.vx * dx + g.vy * dy) / d / TOP_SPEED for d, dx, dy, g in others) / n,
        ]


def _wall(x: float, y: float, vx: float, vy: float, restitution: float) -> tuple[float, float, float, float]:
    r = math.hypot(x, y)
    if r <= RADIUS:
        return x, y, vx, vy
    nx, ny = x / r, y / r
    normal = vx * nx + vy * ny
    tx, ty = vx - normal * nx, vy - normal * ny
    return RADIUS * nx, RADIUS * ny, tx - restitution * normal * nx, ty - restitution * normal * ny
