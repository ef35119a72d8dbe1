"""Pages about the hunt hold what was recorded, scored and diagnosed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from marlab.hunt.watch import pages
from marlab.hunt.watch.record import SCHEMA, Episode
from marlab.lab.errors import UserError
from marlab.lab.runs.records import RunInfo


def run_at(folder: Path) -> RunInfo:
    return cast(RunInfo, SimpleNamespace(path=folder))


def put(file: Path, value: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value))
    return file


def test_a_watched_episode_is_a_replay_on_the_page_of_its_run(planned: Episode, tmp_path: Path) -> None:
    assert pages.EPISODE_SCHEMA == SCHEMA
    put(tmp_path / "media" / "episode.json", planned.to_dict())
    (panel,) = pages.trained(run_at(tmp_path)).panels
    assert panel.kind == "hunt.board" and len(panel.data["frames"]) == len(planned.moments)
    thought = planned.moments[0].thoughts[1]
    assert thought is not None and thought.visits is not None
    shown = panel.data["frames"][0]["thoughts"][1]
    assert shown["visits"] == pytest.approx(thought.visits) and shown["opinions"][0]["stag"] == pytest.approx(
        thought.opinions[0].stag, abs=1e-5
    )


def test_watched_and_played_games_share_a_page(planned: Episode, tmp_path: Path) -> None:
    assert pages.watched(tmp_path) is None
    put(tmp_path / "hunt" / "watch" / "episode.json", planned.to_dict())
    put(tmp_path / "hunt" / "human" / "0123456789ab.json", {"episodes": [planned.to_dict()]})
    page = pages.watched(tmp_path)
    assert page is not None and [panel.title for panel in page.panels] == ["hunt.board.title", "hunt.board.human"]
    put(tmp_path / "hunt" / "watch" / "episode.json", {"schema": 99})
    put(tmp_path / "hunt" / "human" / "ba9876543210.json", {"episodes": [5]})
    (tmp_path / "hunt" / "human" / "aaaaaaaaaaaa.json").write_text("{")
    page = pages.watched(tmp_path)  # what is damaged hides nothing else
    assert page is not None and [panel.title for panel in page.panels] == ["hunt.board.human"]


def test_a_damaged_episode_of_a_run_is_one_sentence(tmp_path: Path) -> None:
    put(tmp_path / "media" / "episode.json", {"schema": 99})
    with pytest.raises(UserError, match="does not hold an episode"):
        pages.trained(run_at(tmp_path))


def a_score(mean: float, **more: Any) -> dict[str, Any]:
    return {"agent": "NS", "score": mean, "low": mean - 0.1, "high": mean + 0.1, **more}


CARD = {
    "agents": [{"name": "hop"}, {"name": "NS"}],
    "blocks": [{"title": "Scenarios", "scenarios": [{
        "name": "visit_pair", "description": "a pair", "random": a_score(0.5), "reference": a_score(2.0),
        "agents": {"hop": a_score(1.7, share={"value": 0.8, "low": 0.7, "high": 0.9}), "NS": a_score(1.0, share=None)},
    }]}],
    "cross_play": {a: {b: a_score(1.0 + (a == b)) for b in ("hop", "NS")} for a in ("hop", "NS")},
    "self_play": {"hop": {"over_seeds": {
        "seeds": 2, "length": 9.5, "reward": {"value": 2.5, "low": None, "high": None},
        "outcomes": {"none": 0.1, "hare": 0.2, "stag_2": 0.3, "stag_4": 0.4},
    }}},
}  # fmt: skip


def test_the_score_card_in_panels(tmp_path: Path) -> None:
    assert pages.evaluated(run_at(tmp_path)).panels == ()
    put(tmp_path / pages.CARD, CARD)
    shares, table, rewards, cross, alone = pages.evaluated(run_at(tmp_path)).panels
    assert shares.data["rows"] == [{"name": "visit_pair", "value": 0.8, "low": 0.7, "high": 0.9, "note": "a pair"}]
    assert table.data["rows"][0][1] == {"value": 0.8, "low": 0.7, "high": 0.9} and table.data["rows"][0][2] is None
    assert rewards.data["rows"] == [["visit_pair", 1.7, 1.0, 0.5, 2.0, "NS"]]
    assert cross.data["z"] == [[2.0, 1.0], [1.0, 2.0]] and cross.data["x"] == ["hop", "NS"]
    assert alone.data["rows"][0][:3] == ["hop", {"value": 2.5, "low": None, "high": None}, 0.7]


def test_a_diagnosis_is_a_page_with_the_verdict_per_module_first(tmp_path: Path) -> None:
    verdict = {
        "module": "data", "run": "<b>r</b>", "status": "fail", "decided_by": "replay equality", "value": 0.9,
        "gate": 1.0, "sense": "at least", "original": None, "because": ["labels"],
    }  # fmt: skip
    section = {
        "title": "Data",
        "remarks": ["odd"],
        "tables": [{"title": "Rows", "header": ["field", "share"], "rows": [["x", 1.0]]}],
        "pictures": [{"file": "a.png", "caption": "A"}],
    }
    put(tmp_path / "diagnose" / "report.json", {"verdicts": [verdict], "sections": [section]})
    (page,) = pages.trained(run_at(tmp_path)).pages
    first, rows, picture = page.panels
    assert first.data["rows"][0] == [
        "data", "hunt.diagnosis.fail", "replay equality", 0.9, "at least 1", None, "labels", "<b>r</b>",
    ]  # fmt: skip
    assert rows.data["rows"] == [["x", 1.0]] and picture.kind == "figure" and page.name == "diagnosis"
