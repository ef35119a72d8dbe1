"""`kill -9` at random moments: every resumed training ends as if it had never been interrupted."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest

from marlab.lab.runs.checkpoint import CheckpointStore
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.testing import assert_same
from tests.lab.tiny import TinyConfig, train

KILLS = 30
CONFIG = TinyConfig(total=400)


@pytest.mark.long
def test_thirty_kills_change_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.lab.tiny", "torch.utils.tensorboard"])  # imported once, not thirty times
    store = CheckpointStore(tmp_path / "killed" / "checkpoints", "tiny")
    rng, kills, attempts = random.Random(7), 0, 0
    while kills < KILLS:
        process = context.Process(target=train, args=(CONFIG, tmp_path / "killed", attempts > 0))
        process.start()
        attempts += 1
        before = store.steps()[-1] if store.steps() else 0
        deadline = time.monotonic() + 240
        while not (store.steps() and store.steps()[-1] > before) and time.monotonic() < deadline:
            time.sleep(0.001)  # a kill that comes too early tests nothing and would never end
        time.sleep(rng.random() * 0.05)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        assert process.exitcode == -signal.SIGKILL, "the training ended before it was killed: make it longer"
        kills += 1
        assert read_run(tmp_path / "killed").status == "interrupted"
    train(CONFIG, tmp_path / "killed", resume=True)
    train(CONFIG, tmp_path / "smooth", resume=False)

    assert_same(
        store.load_latest()[0].state,  # type: ignore[union-attr]
        CheckpointStore(tmp_path / "smooth" / "checkpoints", "tiny").load_latest()[0].state,  # type: ignore[union-attr]
    )
    rows = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("killed", "smooth")]
    for row in (*rows[0], *rows[1]):
        row.pop("time")
    assert_same(*rows)
    assert len(read_run(tmp_path / "killed").attempts) == KILLS + 1
