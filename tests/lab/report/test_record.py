"""The record of all runs: every run in its place, and what a person adds is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.report.facts import read_all
from marlab.lab.report.record import write_all, write_record


def test_record_has_every_run_in_its_place(root: Path) -> None:
    path, problems = write_all(root)
    text = path.read_text()
    assert path == root / "RECORD.md" and problems == []
    places = [
        "# Training record", "| fish | 2 | 2 | 0 | 0 |", "| hunt | 0 | 1 | 1 | 1 |", "4 directories cannot be read.",
        "## Done", "### survive (sweep)", "[fish/base](fish/base/note.md): finished, 2026-03-01 13:00 UTC, 1 h 2 min",
        "survival 0.9 share", "`marlab fish train --name base`", "[fish/best](fish/best/note.md)",
        "survival 0.98; speed 5",
        "## Unfinished", "### survive", "[fish/dead](fish/dead/note.md): interrupted (the process died)",
        "### No goal given", "[fish/cut](fish/cut/note.md): interrupted (time limit)",
        "[hunt/failed](hunt/failed/note.md): failed (ValueError: nan)",
        "## Planned", "[hunt/later](hunt/later/note.md): planned (needs the cluster)",
        "## Abandoned", "[hunt/old](hunt/old/note.md): abandoned (starts | were exhausted)",
        "## Unreadable", "| `fish/foreign` |", "| `fish/headless` | there is no run.json |", "| `fish/odd` |",
        "| `fish/torn` |",
    ]  # fmt: skip
    position = 0
    for place in places:
        assert place in text, place
        assert text.index(place, position) >= position, place
        position = text.index(place, position)
    assert "fish/empty" not in text
    assert all((info.path / "note.md").exists() for info in read_all(root)[0])
    assert write_all(root)[0].read_text() == text  # the same runs, the same record


def test_record_keeps_what_a_person_adds_and_links_only_to_notes_that_exist(root: Path) -> None:
    path = write_record(root)
    assert "note.md" not in path.read_text() and "- fish/best: finished" in path.read_text()
    path.write_text("My preface\n\n" + path.read_text() + "\nMy epilogue\n")
    text = write_record(root).read_text()
    assert text.startswith("My preface\n\n") and text.endswith("\nMy epilogue\n")


def test_record_of_nothing(tmp_path: Path) -> None:
    assert "There are no runs yet." in write_record(tmp_path).read_text()
    with pytest.raises(UserError, match="not a folder of runs"):
        write_record(tmp_path / "nowhere")


def test_one_note_that_cannot_be_written_does_not_stop_the_others(root: Path) -> None:
    (root / "fish" / "base" / "note.md").mkdir()
    _, problems = write_all(root)
    assert len(problems) == 1 and "fish/base" in problems[0]
    assert (root / "fish" / "best" / "note.md").exists()
