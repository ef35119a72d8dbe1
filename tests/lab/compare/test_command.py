"""`marlab compare`, from its words to its files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.cli import main
from marlab.lab.compare.command import CompareConfig, compare
from tests.lab.compare.cases import two_groups


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two_groups(tmp_path / "runs", [1.0, 2.0, 3.0], [2.1, 3.0, 3.9])
    words = ["slow=toy/a0", "slow=toy/a1", "slow=a2", "fast=b0", "fast=b1", "fast=b2"]
    out = tmp_path / "out"
    assert main(["compare", *words, "--root", str(tmp_path / "runs"), "--output-dir", str(out), "--all"]) == 0
    said = capsys.readouterr().out
    assert "fast is better than slow" in said and "speed" in said and str(out) in said
    assert sorted(file.name for file in out.iterdir()) == [f"comparison.{end}" for end in ("json", "md", "png", "svg")]
    assert json.loads((out / "comparison.json").read_text())["rows"][1]["outcome"] == "better"
    assert "fast is better than slow" in (out / "comparison.md").read_text()


def test_nothing_is_written_without_a_folder_and_never_into_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = two_groups(tmp_path, [1.0, 2.0], [2.0, 3.1])
    before = sorted(tmp_path.rglob("*"))
    found = compare(CompareConfig(tuple(runs)))
    assert found.best == "rate=0.3" and sorted(tmp_path.rglob("*")) == before
    assert main(["compare", *runs, "--output-dir", runs[0]]) == 2
    assert "is a run; choose another folder" in capsys.readouterr().err and sorted(tmp_path.rglob("*")) == before
