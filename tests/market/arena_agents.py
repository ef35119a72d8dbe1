"""Agents for tests of the arena: they are found as module:Class by other processes."""

from __future__ import annotations

from typing import Any

from scml.std import SyncRandomStdAgent


class ReportingAgent(SyncRandomStdAgent):
    """Has a parameter and reports what it did, as LitaAgentHRL does."""

    def __init__(self, *args: Any, share: float = 0.5, word: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if word != "heuristic":
            raise ValueError(f"the word is {word!r}")
        self.counts = {"decisions": 0, "unsafe": 0, "exceptions": 0}
        self.seconds: list[float] = []
        self.share = share

    def counter_all(self, offers: Any, states: Any) -> Any:
        self.counts["decisions"] += 4
        self.counts["unsafe"] += round(4 * self.share)
        self.seconds.append(0.002)
        return super().counter_all(offers, states)


class LateAgent(SyncRandomStdAgent):
    """Ends its world on a morning, but not in the tiny world of a trial."""

    def before_step(self) -> None:
        super().before_step()
        if self.awi.n_steps > 5 and self.awi.current_step == 1:
            raise SystemExit("I have had enough")


class SleepyAgent(SyncRandomStdAgent):
    """Cannot begin."""

    def init(self) -> None:
        raise RuntimeError("my weights are missing")
