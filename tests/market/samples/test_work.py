"""What one worker does with a few log files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json
from marlab.market.samples.dataset import load_part
from marlab.market.samples.goals import Backfill
from marlab.market.samples.options import SampleOptions
from marlab.market.samples.work import Reading, make_part, refuse_many
from tests.market.sample_tools import TINY

PENGUINS = frozenset({"PenguinAgent"})


def test_a_part_holds_its_samples_and_says_what_it_read(tmp_path: Path) -> None:
    out = str(tmp_path / "part")
    summary = make_part([str(TINY)], sorted(PENGUINS), to_dict(SampleOptions()), Backfill("v2"), out)
    samples = load_part(tmp_path / "part.npz")
    assert summary == read_json(tmp_path / "part.json", ValueError)
    assert summary["files"] == 1 and summary["micro"] == samples.rows("micro") > 0 and not summary["bad"]
    assert {log.agent_type for log in samples.logs} == PENGUINS and (samples.macro["goal"] != 0).any()


def test_a_damaged_file_is_noted_and_left_out_as_a_whole(tmp_path: Path) -> None:
    bad = tmp_path / "bad.parquet"
    shutil.copy(TINY, bad)
    bad.write_bytes(bad.read_bytes()[:2000])
    reading = Reading()
    both = reading.samples([str(TINY), str(bad)], PENGUINS, SampleOptions())
    assert both.rows("micro") == Reading().samples([str(TINY)], PENGUINS, SampleOptions()).rows("micro")
    assert list(reading.bad) == [str(bad)]
    assert Reading().samples([str(bad)], PENGUINS, SampleOptions()).rows("macro") == 0


def test_a_few_bad_files_are_forgiven_and_many_are_not() -> None:
    refuse_many({"a": "why"}, 20)
    with pytest.raises(UserError, match="2 of 20 log files cannot be used; the first: why"):
        refuse_many({"a": "why", "b": "too"}, 20)
