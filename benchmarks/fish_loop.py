"""The sea as a plain loop in the original's manner: one object per fish, NumPy pairs for positions and velocities.

It stands in for the original in speed comparisons. `tests/fish/reference.py` is the same loop on bare floats, about ten
times faster than this one and the original; the benchmark measures both and checks that their rewards agree.
"""

from __future__ import annotations

import math

import numpy as np

RADIUS, VISION, TOP_SPEED, DT = 10.0, 10.0 / 3.0, 2.0, 0.1


class Fish:
    def __init__(self, position: np.ndarray, velocity: np.ndarray) -> None:
        self.position = position
        self.velocity = velocity
        self.alive = True

    def act(self, action: int) -> None:
        speed = np.linalg.norm(self.velocity)
        direction = self.velocity / speed if speed > 0.01 else np.array([1.0, 0.0])
        if action == 0:
            self.velocity = self.velocity + direction * 0.1
        elif action in (1, 2):
            angle = math.pi / 6 if action == 1 else -math.pi / 6
            turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            self.velocity = turn @ direction * speed
        elif action == 3:
            self.velocity = self.velocity * 0.9
        speed = np.linalg.norm(self.velocity)
        if speed > TOP_SPEED:
            self.velocity = self.velocity / speed * TOP_SPEED
        self.position = self.position + DT * self.velocity
        self.position, self.velocity = wall(self.position, self.velocity, 0.5)


def wall(position: np.ndarray, velocity: np.ndarray, restitution: float) -> tuple[np.ndarray, np.ndarray]:
    distance = np.linalg.norm(position)
    if distance <= RADIUS:
        return position, velocity
    normal = position / distance
    outward = np.dot(velocity, normal) * normal
    return normal * RADIUS, velocity - outward - restitution * outward


class LoopSea:
    """One arena with 18 inputs (11 without neighbours) and continuous vision reward."""

    def __init__(self, rows: list[list[float]], predator: list[float], neighbours: bool = True) -> None:
        """`rows`: x, y, vx, vy of each fish."""
        self.fish = [Fish(np.array(row[:2]), np.array(row[2:])) for row in rows]
        self.predator_position, self.predator_velocity = np.array(predator[:2]), np.array(predator[2:])
        self.neighbours = neighbours

    def step(self, actions: list[int]) -> tuple[list[float], list[np.ndarray]]:
        was_alive = [fish.alive for fish in self.fish]
        for fish, action in zip(self.fish, actions):
            if fish.alive:
                fish.act(action)
        self.predator_velocity = self.predator_velocity + np.array([0.0, 0.05])
        moved = self.predator_position + DT * self.predator_velocity
        self.predator_position, self.predator_velocity = wall(moved, self.predator_velocity, 0.85)
        for fish in self.fish:
            if fish.alive and np.linalg.norm(fish.position - self.predator_position) < 0.7:
                fish.alive = False
        rewards = [self.reward(fish, before) for fish, before in zip(self.fish, was_alive)]
        return rewards, [self.observation(fish) for fish in self.fish if fish.alive]

    def near(self, me: Fish) -> list[tuple[float, np.ndarray, Fish]]:
        found = []
        for other in self.fish:
            if other is me or not other.alive:
                continue
            offset = other.position - me.position
            distance = float(np.linalg.norm(offset))
            if distance <= 3.0:
                found.append((distance, offset, other))
        return found

    def reward(self, fish: Fish, was_alive: bool) -> float:
        if not fish.alive:
            return -50.0 if was_alive else 0.0
        distance = np.linalg.norm(fish.position - self.predator_position)
        total = 2.0 + (10.0 * distance / VISION if distance < VISION else 10.0)
        margin = RADIUS - np.linalg.norm(fish.position)
        if margin < 1.0:
            total -= 2.0 * (1.0 - margin)
        if self.neighbours and (others := self.near(fish)):
            total -= 0.04 * max(len(others) / 6 - 0.4, 0.0)
        return 0.1 * float(total)

    def observation(self, fish: Fish) -> np.ndarray:
        offset = self.predator_position - fish.position
        distance = np.linalg.norm(offset)
        own = [fish.position / RADIUS, fish.velocity / TOP_SPEED, [(RADIUS - np.linalg.norm(fish.position)) / RADIUS]]
        if distance < VISION:
            own += [[1.0], offset / VISION, self.predator_velocity / TOP_SPEED, [distance / VISION]]
        else:
            own += [np.zeros(6)]
        if self.neighbours:
            own += [self.features(fish)]
        return np.concatenate(own).astype(np.float32)

    def features(self, fish: Fish) -> np.ndarray:
        others = self.near(fish)
        if not others:
            return np.zeros(7)
        others.sort(key=lambda item: item[0])
        mean_offset = np.mean([offset for _, offset, _ in others[:6]], axis=0) / 3.0
        speeds = np.array([np.linalg.norm(other.velocity) for _, _, other in others]) / TOP_SPEED
        leaving = [np.dot(other.velocity, offset / distance) / TOP_SPEED for distance, offset, other in others]
        count = min(len(others) / 6, 1.0)
        return np.array([count, *mean_offset, others[0][0] / 3.0, speeds.mean(), speeds.std(), np.mean(leaving)])
