from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from marlab.lab.notebook import story
from marlab.lab.report.note import write_note
from marlab.lab.runs.records import read_run
from tests.lab.report.cases import PNG, make_run


def test_a_verdict_is_said_in_every_language(tmp_path: Path) -> None:
    sentence = {"key": "lab.compare.equal", "numbers": {"name": "a", "other": "b", "what": "score", "value": 1.0}}
    [said] = story.verdict(read_run(make_run(tmp_path, verdict=[sentence])))
    assert said["en"] == "a and b are equal: score 1."
    assert set(said) == {"en", "zh"}


def test_the_result_that_counts_comes_first(tmp_path: Path) -> None:
    judged = {"results": ["score"], "metric": None, "better": "higher"}
    info = read_run(make_run(tmp_path, results={"time": 3, "score": {"value": 0.5, "low": 0.4}}, judged_by=judged))
    assert [(row.name, row.key, row.value.number) for row in story.results(info)] == [
        ("score", True, 0.5),
        ("time", False, 3),
    ]


def test_a_drawing_stands_for_its_pixels_and_captions_leave_out_the_run(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    (path / "figures" / "a_death_map.png").write_bytes(PNG)
    (path / "figures" / "survival.svg").write_text("<svg/>")
    found = story.figures(read_run(path))
    assert [(p.path.name, p.caption["en"]) for p in found] == [
        ("a_death_map.png", "death map"),
        ("survival.svg", "survival"),
    ]
    assert [p.path.name for p in story.films(read_run(path))] == ["tail 1.mp4"]


def test_settings_that_differ_come_first(tmp_path: Path) -> None:
    kind = "marlab.fish.training.config:FishTrainConfig"
    rows = story.parameters(read_run(make_run(tmp_path, "fish/a", {"seed": 0, "num_fish": 99}, config_type=kind)))
    assert not isinstance(rows, str)
    assert [(row.key, row.changed) for row in rows] == [("num_fish", True), ("seed", False)]
    (tmp_path / "fish" / "a" / "config.json").write_text("[1]")
    assert "not a table" in str(story.parameters(read_run(tmp_path / "fish" / "a")))


def test_weights_have_hashes_that_are_computed_once(tmp_path: Path, monkeypatch: Any) -> None:
    info, known = read_run(make_run(tmp_path)), dict[str, Any]()
    digest = hashlib.sha256(PNG).hexdigest()
    assert [(w.path.name, w.sha256) for w in story.weights(info, known)] == [
        ("model_iter_2.pt", digest), ("model_iter_10.pt", digest),
    ]  # fmt: skip
    monkeypatch.setattr(hashlib, "file_digest", None)  # would raise if it were asked again
    assert [w.sha256 for w in story.weights(info, known)] == [digest, digest]


def test_only_what_a_person_wrote_is_repeated(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    note = write_note(path)
    assert story.own_words(read_run(path)) == ""
    (path / "note.md").write_text(note.replace("## Insights\n", "## Insights\n\nFish fear **corners**.\n"))
    assert story.own_words(read_run(path)) == "## Insights\n\nFish fear **corners**."


def test_of_a_log_the_last_lines_are_shown(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    assert story.end_of_log(read_run(path)) == ""
    (path / "log.txt").write_text("first\n" + "x" * 10_000 + "\nlast\n")
    assert story.end_of_log(read_run(path)) == "last\n"
