"""Agents whose worlds are recorded; a tournament imports them by name in processes of its own."""

from __future__ import annotations

import os
import tempfile

from scml.std import SyncRandomStdAgent

from marlab.market import record

FOLDER = os.environ.get("MARLAB_TEST_LOGS") or tempfile.mkdtemp(prefix="marlab-test-logs-")


@record.recorded(FOLDER)
class RecordedSync(SyncRandomStdAgent):
    """A built-in agent that leaves logs behind."""
