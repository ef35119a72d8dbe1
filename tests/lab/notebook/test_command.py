from __future__ import annotations

from pathlib import Path

import pytest

from marlab.cli import main
from tests.lab.report.cases import make_run


def test_pages_of_all_runs_and_the_addresses_of_those_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path)
    make_run(tmp_path, "fish/b")
    assert main(["report", "fish/a", "--root", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "2 of 2 pages were made" in said
    assert str(tmp_path / "fish" / "a" / "report" / "index.html") in said


def test_one_file_goes_where_it_is_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(tmp_path / "runs")
    words = ["report", "a", "--single-file", "--output-dir", str(tmp_path / "out"), "--root", str(tmp_path / "runs")]
    assert main(words) == 0
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["fish-a.html"]
    assert capsys.readouterr().out.strip().endswith("fish-a.html")


@pytest.mark.parametrize(("words", "told"), [
    (["--single-file"], "--single-file needs the runs"),
    (["--output-dir", "x"], "--output-dir belongs to --single-file"),
    (["a", "--serve"], "--serve serves all runs"),
    (["--port", "70000"], "port is 70000"),
    (["--root", "/nowhere"], "There is no folder /nowhere"),
    (["a", "--root", "/nowhere"], "There is no"),
])  # fmt: skip
def test_wrong_words_are_refused_in_one_sentence(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *words]) == 2
    assert told in capsys.readouterr().err
