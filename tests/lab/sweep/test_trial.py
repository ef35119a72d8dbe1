"""One training of a sweep: an ordinary run that says by itself how far it is."""

from __future__ import annotations

from pathlib import Path

from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.sweep.trial import is_done, record_of, run_trial
from tests.lab.sweep.cases import TINY

VALUES = {"iterations": "4", "rings": "4", "n_cells": "5", "device": "cpu", "ppo.n_steps": "8", "ppo.batch_size": "16"}


def test_a_trial_goes_from_rung_to_rung_to_its_end(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    assert record_of(folder) is None and not is_done(folder, 2)
    assert run_trial(TINY, VALUES, str(folder), "mine", 2) == "interrupted"
    assert is_done(folder, 2) and is_done(folder, 1) and not is_done(folder, 3) and not is_done(folder, None)
    assert len(read_metrics(folder / "metrics.jsonl")) == 2
    assert run_trial(TINY, VALUES, str(folder), "mine", None) == "finished"
    assert is_done(folder, None) and is_done(folder, 99)
    info = read_run(folder)
    assert (info.group, info.parent, len(info.attempts)) == ("mine", "sweep/mine", 2)
    assert info.command == "marlab tiny train " + " ".join(f"--{k.replace('_', '-')} {v}" for k, v in VALUES.items())


def test_what_cannot_be_read_is_not_done(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{")
    assert record_of(tmp_path) is None and not is_done(tmp_path, None)
