"""A folder with runs in every state, for the tests of lists, records and commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.report.cases import NOT_STARTED, make_run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Runs in every state, and three directories that are none."""
    root = tmp_path / "runs"
    make_run(root, "fish/best", goal="survive", group="sweep", results={"survival": 0.98, "speed": 5})
    make_run(root, "fish/base", goal="survive", group="sweep", results={"survival": {"value": 0.9, "unit": "share"}},
             ended="2026-03-01T09:00:00-04:00")  # fmt: skip
    make_run(root, "fish/cut", {"lr": 1}, status="interrupted", reason="time limit", results={}, tags=["long"])
    make_run(root, "fish/dead", status="running", goal="survive", results={}, ended=None)
    make_run(root, "hunt/failed", status="failed", reason="ValueError: nan", results={})
    make_run(root, "hunt/later", status="planned", reason="needs the cluster", **NOT_STARTED)
    make_run(root, "hunt/old", status="abandoned", reason="starts | were exhausted", **NOT_STARTED)
    for name, text in (
        ("torn", '{"schema": 1'),
        ("foreign", "[]"),
        ("odd", '{"schema": 1, "created": "x", "stages": {}}'),
    ):
        (root / "fish" / name).mkdir()
        (root / "fish" / name / "run.json").write_text(text)
    (root / "fish" / "headless").mkdir()
    (root / "fish" / "headless" / "metrics.jsonl").touch()
    (root / "fish" / "empty").mkdir()
    (root / "stray.txt").touch()
    return root
