"""The one loop: what is logged and saved when, early ends, safe points, several trainings in one run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.metrics import MetricsWriter, read_metrics
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive, loop, unit_line
from tests.lab.test_command import CountConfig


class Counter:
    """Counts; scores every third unit; has enough after `enough`."""

    def __init__(self, total: int = 5, enough: int = 100) -> None:
        self.step, self.total, self.enough = 0, total, enough

    @property
    def stopped(self) -> bool:
        return self.step >= self.enough

    def iterate(self) -> Mapping[str, Any]:
        self.step += 1
        return {"count": float(self.step), **({"score": 1.0} if self.step % 3 == 0 else {})}

    def state_dict(self) -> dict[str, Any]:
        return {"step": torch.tensor(self.step)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = int(state["step"])


def test_what_is_saved_when() -> None:
    saved: list[tuple[int, float | None]] = []
    logged: list[float] = []
    trainer = Counter(5)
    whole = loop(
        trainer, log=lambda v: logged.append(v["count"]), save=lambda s: saved.append((trainer.step, s)), save_every=2
    )
    assert whole and logged == [1, 2, 3, 4, 5]
    assert saved == [(2, None), (3, 1.0), (4, None), (5, None)]  # every second, every score, the last


def test_a_training_that_has_enough_ends_early() -> None:
    trainer = Counter(5, enough=2)
    assert loop(trainer, log=lambda v: None) and trainer.step == 2


def test_a_stop_saves_the_last_unit_first() -> None:
    saved: list[int] = []
    trainer = Counter(5)
    whole = loop(
        trainer, log=lambda v: None, should_stop=lambda: trainer.step == 2, save=lambda s: saved.append(trainer.step),
        save_every=100,
    )  # fmt: skip
    assert not whole and saved == [2]


def test_several_trainings_in_one_run(tmp_path: Path) -> None:
    with Run.open("toy", CountConfig(), RunOptions(output_dir=tmp_path / "r")) as run:
        metrics, written = run.metrics(), []
        for number, first in ((1, 0), (2, 5)):
            store = CheckpointStore(run.checkpoints, "toy", f"phase{number}_{{step}}.pt", Keep(last=1))
            drive(
                Counter(5), run, store, save_every=5, unit="units", quiet=True, metrics=metrics, first_step=first,
                on_save=lambda: written.append(len(written)),
            )  # fmt: skip
    rows = read_metrics(tmp_path / "r" / "metrics.jsonl")
    assert [(row["step"], row["count"]) for row in rows] == [(s, (s - 1) % 5 + 1.0) for s in range(1, 11)]
    assert len(written) == 4  # the scored unit and the last one of each
    log = (tmp_path / "r" / "log.txt").read_text().splitlines()
    assert [line.partition("] ")[2] for line in log][2:4] == [
        "r | unit 3/5 | count 3 | score 1",
        "r | unit 4/5 | count 4",
    ]
    assert len(log) == 10


def test_a_line_of_the_log_begins_with_what_is_shown() -> None:
    values = {"time/a": 1.0, "L2/val/mse": 0.123456, "text": "x", "L2/train/loss": 2.0}
    line = unit_line("L2", "epochs", Counter(5), values, ("L2/train/loss", "missing"))
    assert line == "L2 | epoch 0/5 | train/loss 2 | val/mse 0.1235"


def test_leaving_marks_the_run_and_resuming_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def once(resume: bool) -> Run:
        with Run.open("toy", CountConfig(), RunOptions(output_dir=tmp_path / "r", resume=resume)) as run:
            store = CheckpointStore(run.checkpoints, "toy", "unit_{step}.pt", Keep(last=2))
            drive(Counter(5), run, store, save_every=1, unit="units", quiet=True)
        return run

    monkeypatch.setattr(Run, "should_stop", lambda run: True)
    assert once(resume=False).status == "interrupted"
    monkeypatch.setattr(Run, "should_stop", lambda run: False)
    assert once(resume=True).status == "finished"
    assert [row["count"] for row in read_metrics(tmp_path / "r" / "metrics.jsonl")] == [1, 2, 3, 4, 5]


def test_what_follows_from_a_checkpoint_is_done_again_by_whoever_goes_on_from_it(tmp_path: Path) -> None:
    written: list[int] = []

    def train(total: int, resume: bool) -> CheckpointStore:
        with Run.open("toy", CountConfig(), RunOptions(output_dir=tmp_path / "r", resume=resume)) as run:
            store, trainer = CheckpointStore(run.checkpoints, "toy", keep=Keep(last=1)), Counter(total)
            drive(
                trainer, run, store, save_every=1, unit="units", quiet=True,
                on_save=lambda: written.append(trainer.step),
            )  # fmt: skip
        return store

    store = train(3, resume=False)
    (store.folder / "best.json").unlink()  # as if it had been killed between the checkpoint and this
    store.path(2).write_bytes(store.path(3).read_bytes())
    written.clear()
    train(4, resume=True)
    assert store.best() == (3, 1.0) and store.steps() == [3, 4]
    assert written == [3, 4]


def test_metrics_are_on_the_disk_before_the_checkpoint_that_implies_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    monkeypatch.setattr(MetricsWriter, "flush", lambda writer: order.append("metrics"))
    monkeypatch.setattr("marlab.lab.runs.checkpoint.torch.save", lambda *parts: order.append("checkpoint"))
    with Run.open("toy", CountConfig(), RunOptions(output_dir=tmp_path / "r")) as run:
        order.clear()
        store = CheckpointStore(run.checkpoints, "toy")
        drive(Counter(1), run, store, save_every=1, unit="units", quiet=True)
    assert order.index("metrics") < order.index("checkpoint")
