"""Agents that misbehave, for tests of recorder and collection: they are found as module:Class by other processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from scml.std import SyncRandomStdAgent

MARK = "MARLAB_TEST_MARK"
"""Environment variable with the path of a file that tells an agent what it did in an earlier attempt."""


class HangingAgent(SyncRandomStdAgent):
    """Never answers on the second day."""

    def before_step(self) -> None:
        super().before_step()
        if self.awi.current_step == 1:
            time.sleep(3600)


class BrokenAgent(SyncRandomStdAgent):
    """Cannot even be made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("my model is missing")


class StumblingAgent(SyncRandomStdAgent):
    """Raises in the middle of negotiations."""

    def counter_all(self, offers: Any, states: Any) -> Any:
        if self.awi.current_step >= 2:  # on four days, so that every seat has occasion to, whatever the hash seed
            raise ValueError("I did not expect that")
        return super().counter_all(offers, states)


class DyingAgent(SyncRandomStdAgent):
    """Takes its process with it, once."""

    def before_step(self) -> None:
        super().before_step()
        mark = Path(os.environ[MARK])
        if not mark.exists():
            mark.write_text("died here")
            os.kill(os.getpid(), signal.SIGKILL)


class SlowAgent(SyncRandomStdAgent):
    """Thinks long enough for the draw that negmas makes once a second."""

    def first_proposals(self) -> Any:
        if self.awi.current_step == 1 and os.environ.get(MARK) == "slow":
            time.sleep(1.2)
        return super().first_proposals()


class Counting(SyncRandomStdAgent):
    """Asks itself before it answers, as some entrants do."""

    def counter_all(self, offers: Any, states: Any) -> Any:
        for partner in offers:
            self.propose(partner, states[partner])
        return super().counter_all(offers, states)
