"""Verdicts: keys and numbers in the record, words from tables, three sentences at most, strangers' records."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.lab.report.note import write_note
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import is_stored, say, side, stored, template, texts

TABLE = {
    "en": {
        "helped": "It helped: {value:.2f} {interval:.2f}, {gain:+.1%} against {other}.",
        "next": "Next: `marlab look {run}`.",
    },
    "xx": {"helped": "{other} <- {value:.1f}"},
}


@pytest.fixture(autouse=True)
def pond(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("marlab.pond.verdicts")
    module.SENTENCES = TABLE  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "marlab.pond", ModuleType("marlab.pond"))
    monkeypatch.setitem(sys.modules, "marlab.pond.verdicts", module)


HELPED = say("pond.helped", value=np.float32(0.5), interval=(np.float64(0.25), 0.75), gain=-0.125, other="a `rule`")


def test_a_template_is_filled_and_pairs_are_intervals() -> None:
    assert texts([HELPED, say("pond.next")], "runs/pond/a") == [
        "It helped: 0.50 [0.25, 0.75], \u221212.5 % against a 'rule'.", "Next: `marlab look runs/pond/a`.",
    ]  # fmt: skip
    assert texts([HELPED], "", language="xx") == ["a 'rule' <- 0.5"]
    assert texts([say("pond.next")], "a", language="xx") == [
        "Next: `marlab look a`."
    ]  # English where a word is missing


def test_what_no_table_knows_is_shown_as_it_is() -> None:
    assert texts([say("pond.other", a=1, b=(1.0, math.nan))], "r") == ["pond.other: a 1, b [1, unknown]"]
    assert texts([say("nowhere.x", a=0.12345)], "r") == ["nowhere.x: a 0.1235"]
    assert texts([say("pond.helped", value="much")], "r") == ["pond.helped: value much"]


def test_only_plain_values_are_kept() -> None:
    assert json.loads(json.dumps(stored([HELPED])))[0]["numbers"]["value"] == 0.5
    assert say("pond.helped", value=math.inf).numbers == {"value": None}
    with pytest.raises(ValueError, match="3 sentences at most"):
        stored([HELPED] * 4)
    with pytest.raises(ValueError, match="no key"):
        say("../../os.system")


@pytest.mark.parametrize(
    ("interval", "where"),
    [((0.1, 0.2), "above"), ((-0.2, -0.1), "below"), ((-0.1, 0.1), "unclear"), (None, "unclear"),
     ((None, 1), "unclear"), ((0.0, 1.0), "unclear")],
)  # fmt: skip
def test_side(interval: tuple[float, float] | None, where: str) -> None:
    assert side(interval) == where


@dataclass(frozen=True)
class Config:
    seed: int = 0


def test_record_note_and_reader_have_the_verdict(tmp_path: Path) -> None:
    with Run.open("pond", Config(), RunOptions(name="a"), root=tmp_path) as run:
        run.set_verdict(HELPED, say("pond.next"))
    assert run.verdict[0].startswith("It helped: 0.50 [0.25, 0.75]")
    info = read_run(run.path)
    assert [entry["key"] for entry in info.verdict] == ["pond.helped", "pond.next"]
    lines = write_note(run.path).splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("# "))
    assert lines[head + 2].startswith("**Verdict.** It helped: 0.50") and f"`marlab look {run.path}`" in lines[head + 2]


@pytest.mark.parametrize(
    "bad",
    [{}, [1], [{"key": "pond.x"}], [{"key": "x", "numbers": {}}], [{"key": "os.path/x", "numbers": {}}],
     [{"key": "pond.x", "numbers": {}}] * 4],
)  # fmt: skip
def test_a_damaged_verdict_is_a_sentence(tmp_path: Path, bad: object) -> None:
    with Run.open("pond", Config(), RunOptions(name="a"), root=tmp_path) as run:
        pass
    assert is_stored(json.loads((run.path / "run.json").read_text())["verdict"])
    record = json.loads((run.path / "run.json").read_text()) | {"verdict": bad}
    (run.path / "run.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match="expected at most three sentences"):
        read_run(run.path)


def test_a_stranger_cannot_name_what_is_imported(tmp_path: Path) -> None:
    assert template("os.path") is None and template("marlab.cli.main") is None
