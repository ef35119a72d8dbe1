"""Watching a training: alarms on what went wrong before others noticed, and the way back to the best weights.

The original rose, fell, and nobody was told: its players had become random long before its models of others were
blamed. So behaviour entropy, the spread of Q, and the excess of the models of others over what is predictable at all
are looked at in every iteration, and a seed whose reward falls goes back to its best weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from marlab.hunt.selfplay.learn import BestWeights
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class GuardConfig:
    """When to raise an alarm, and when to go back."""

    patience: float = 0.1
    """Share of the training that passes before alarms count."""
    entropy: float = 1.2
    """Alarm above this behaviour entropy in nats; random players have about 1.45."""
    spread: float = 1.0
    """Alarm below this beta times normalised spread of Q: then the plan is as good as uniform."""
    excess: float = 0.5
    """Alarm above this excess of the models of others over the floor, in nats. Plans differ from search to search,
    which the floor does not know, so planners never come near 0."""
    smoothing: float = 0.9
    """Weight of the past in the smoothed reward that rollbacks go by."""
    drop: float = 0.1
    """Go back to the best weights when the smoothed reward falls by this share of its best; 0 never does."""
    wait: int = 10
    """Iterations after a start or a rollback before the next rollback."""

    def __post_init__(self) -> None:
        if not (0 <= self.smoothing < 1 and 0 <= self.drop < 1 and 0 <= self.patience <= 1) or self.wait < 1:
            raise UserError("guard smoothing, drop and patience are shares below 1, wait is 1 or more.")


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
