"""A batch behind the interface of stable-baselines3: one object answers for every place."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from gymnasium import spaces

from marlab.lab.sb3 import BatchEnv


class Counting(BatchEnv):
    """Three places that count their steps together."""

    def __init__(self) -> None:
        super().__init__(3, spaces.Box(0, 9, (1,), np.float32), spaces.Discrete(2))
        self.steps = 0

    def reset(self) -> np.ndarray:
        return np.full((3, 1), self.steps, np.float32)

    def step_async(self, actions: np.ndarray) -> None:
        self.steps += 1

    def step_wait(self):  # type: ignore[no-untyped-def]
        return self.reset(), np.zeros(3), np.zeros(3, bool), [{}, {}, {}]

    def times(self, factor: int) -> int:
        return factor * self.steps


def test_attributes_and_methods_are_those_of_the_batch() -> None:
    env = Counting()
    env.step(np.zeros(3))
    assert env.get_attr("steps") == [1, 1, 1] and env.get_attr("steps", 2) == [1]
    env.set_attr("steps", 5, [0, 1])
    assert env.env_method("times", 2, indices=[0, 2]) == [10, 10]
    assert env.env_is_wrapped(Counting) == [False] * 3 and env.get_images() == [None] * 3
    env.close()
