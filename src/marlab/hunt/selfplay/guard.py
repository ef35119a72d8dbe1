"""Watching a training: alarms on what went wrong before others noticed, and the way back to the best weights.

The original rose, fell, and nobody was told: its players had become random long before its models of others were
blamed. So behaviour entropy, the spread of Q, and the excess of the models of others over what is predictable at all
are looked at in every iteration, and a seed whose reward falls goes back to its best weights.
"""

from __future__ import annotations

import math
from typing import Any

from marlab.hunt.selfplay.config import GuardConfig
from marlab.hunt.selfplay.learn import BestWeights


class Guard:
    """The smoothed reward of every seed, its best, and what was done about it."""

    def __init__(self, config: GuardConfig, seeds: int, best: BestWeights) -> None:
        self.config, self.best_weights = config, best
        self.smooth = [math.nan] * seeds
        self.best = [-math.inf] * seeds
        self.since = [0] * seeds
        self.rollbacks = [0] * seeds

    def follow(self, rewards: list[float | None]) -> list[int]:
        """Take in each seed's mean reward of an iteration (None without an episode); returns seeds sent back."""
        returned = []
        for place, reward in enumerate(rewards):
            self.since[place] += 1
            if reward is None:
                continue
            past, keep = self.smooth[place], self.config.smoothing
            self.smooth[place] = reward if math.isnan(past) else keep * past + (1 - keep) * reward
            if self.smooth[place] >= self.best[place]:
                self.best[place] = self.smooth[place]
                self.best_weights.keep(place)
            elif self._fell(place):
                self.best_weights.restore(place)
                self.smooth[place], self.since[place] = self.best[place], 0
                self.rollbacks[place] += 1
                returned.append(place)
        return returned

    def _fell(self, place: int) -> bool:
        c = self.config
        return c.drop > 0 and self.since[place] >= c.wait and self.smooth[place] < (1 - c.drop) * self.best[place]

    def alarms(self, progress: float, entropy: float, spread: float, excess: float | None) -> dict[str, bool]:
        """Which alarms ring, by name. `spread` is beta times the normalised spread of Q."""
        if progress < self.config.patience:
            return {"entropy": False, "q_spread": False, "moa_excess": False}
        return {
            "entropy": entropy > self.config.entropy,
            "q_spread": spread < self.config.spread,
            "moa_excess": excess is not None and excess > self.config.excess,
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "smooth": self.smooth, "best": self.best, "since": self.since, "rollbacks": self.rollbacks,
            "weights": self.best_weights.state_dict(),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.smooth, self.best = list(state["smooth"]), list(state["best"])
        self.since, self.rollbacks = list(state["since"]), list(state["rollbacks"])
        self.best_weights.load_state_dict(state["weights"])
