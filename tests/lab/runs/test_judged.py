"""What a run is judged by, through its record and back, and its single cases."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from marlab.lab.errors import UserError
from marlab.lab.runs.judged import Judged, is_stored, judged, read_cases, write_cases
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions

SCORE = Judged(("final score", "score"), "train/score", "lower")


@dataclass(frozen=True)
class Config:
    judged_by: ClassVar = SCORE
    width: int = 3


def test_a_record_says_what_its_run_is_judged_by(tmp_path: Path) -> None:
    with Run.open("toy", Config(), RunOptions(output_dir=tmp_path / "a")) as run:
        run.add_results({"score": 3.0, "other": 1.0})
    info = read_run(tmp_path / "a")
    assert info.judged == SCORE and info.judged.key(info.results) == "score"
    assert judged(None) == Judged() and Judged().key(info.results) is None
    with Run.open("toy", Config(), RunOptions(output_dir=tmp_path / "b")) as run:
        run.judge_by(Judged(("other",)))
        run.add_results({"other": 1.0})
    assert read_run(tmp_path / "b").judged == Judged(("other",))


@pytest.mark.parametrize(
    "value", [[], {"results": "a"}, {"results": [1], "better": "higher"}, {"results": [], "better": "more"},
              {"results": [], "metric": 3, "better": "higher"}],
)  # fmt: skip
def test_odd_records_are_refused(tmp_path: Path, value: Any) -> None:
    assert not is_stored(value)
    with Run.open("toy", Config(), RunOptions(output_dir=tmp_path / "a")):
        pass
    record = json.loads((tmp_path / "a/run.json").read_text())
    (tmp_path / "a/run.json").write_text(json.dumps({**record, "judged_by": value}))
    with pytest.raises(UserError, match="'judged_by' is"):
        read_run(tmp_path / "a")


def test_cases_are_kept_by_measure_seed_and_case(tmp_path: Path) -> None:
    write_cases(tmp_path, "survival", {0: {"arena 1": 0.5, "arena 2": math.nan}, 1: {"arena 1": 1}})
    write_cases(tmp_path, "reward", {"": {"x": 2.0}})
    assert read_cases(tmp_path) == {
        "survival": {"0": {"arena 1": 0.5}, "1": {"arena 1": 1.0}},
        "reward": {"": {"x": 2.0}},
    }
    write_cases(tmp_path, "survival", {0: {}})
    assert read_cases(tmp_path)["survival"] == {"0": {}} and read_cases(tmp_path / "none") == {}


@pytest.mark.parametrize(
    "text", ["[]", '{"a": 3}', '{"a": {"0": 3}}', '{"a": {"0": {"c": "x"}}}', '{"a": {"0": {"c": NaN}}}', "{"]
)
def test_cases_of_a_stranger_get_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "cases.json").write_text(text)
    with pytest.raises(UserError, match="cases"):
        read_cases(tmp_path)
