"""Verdicts: who is blamed for a missed gate."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from marlab.hunt.data.dataset import Part, Rows, load_dataset
from marlab.hunt.data.legacy import with_rows_after_exit
from marlab.hunt.diagnose.checks import Check, Verdict, number, verdicts
from marlab.hunt.diagnose.world import channel_match, mismatches
from marlab.hunt.players.published import CONFUSION, TOP1, WORLD_CHANNELS, WORLD_OBS_MSE
from marlab.hunt.pretraining.metrics import class_table
from tests.hunt.diagnose_cases import judged, missed, shuffle_labels, spoilt, statuses, swap_channels


def told(found: list[Verdict]) -> dict[str, str]:
    return {verdict.module: verdict.status for verdict in found}


def test_a_gate_is_met_at_its_edge_and_never_without_a_number() -> None:
    assert Check("MOA", "top-1", 0.62, 0.62, "at least").met
    assert Check("data", "rows after exit", 0.0, 0.0, "at most").met
    assert not Check("data", "rows after exit", 1e-9, 0.0, "at most").met
    assert not Check("MOA", "top-1", None, 0.62, "at least").met
    assert not Check("MOA", "top-1", math.nan, 0.62, "at most").met


def test_who_builds_on_a_fault_is_blocked_not_blamed() -> None:
    data = Check("data", "replay", 0.9, 1.0, "at least", run="d")
    moa = Check("MOA", "top-1", 0.3, 0.62, "at least", needs=("data",), run="a")
    belief = Check("belief", "learned", 0.5, 0.9, "at least", needs=("MOA",), run="a")
    sound = Check("data", "replay", 1.0, 1.0, "at least", run="d")
    assert told(verdicts([data, moa, belief])) == {"data": "fail", "MOA": "blocked", "belief": "blocked"}
    assert told(verdicts([sound, moa, belief])) == {"data": "pass", "MOA": "fail", "belief": "blocked"}
    assert verdicts([data, moa])[1].because == ("data/replay",)


def test_a_missed_check_of_another_run_excuses_nobody() -> None:
    other = Check("MOA", "top-1", 0.3, 0.62, "at least", run="other")
    belief = Check("belief", "learned", 0.5, 0.9, "at least", needs=("MOA",), run="mine")
    assert told(verdicts([other, belief])) == {"MOA": "fail", "belief": "fail"}


def test_one_blamed_check_is_enough_and_decides() -> None:
    first = Check("MOA", "top-1", 0.3, 0.62, "at least", needs=("goal VAE",), run="a")
    second = Check("MOA", "by heart", 1.2, 0.01, "at most", run="a")
    code = Check("goal VAE", "probe", 0.0, 0.1, "at least", needs=("MOA/by heart",), run="a")
    vae, moa = verdicts([first, second, code])
    assert (vae.status, moa.status) == ("blocked", "fail")
    assert moa.decided_by is second


def test_an_empty_plane_or_a_pale_prediction_is_no_mismatch() -> None:
    true = torch.zeros(3, 4, 4, 2, dtype=torch.uint8)
    assert mismatches(channel_match(true.float(), true)) == []
    true[:, 1, 2, 0] = 1
    assert mismatches(channel_match(0.05 * true.float(), true)) == []


def test_the_notes_figures_agree_with_each_other() -> None:
    table = class_table(CONFUSION)
    assert table.rows == 107_010
    assert table.accuracy == pytest.approx(TOP1[-1], abs=5e-5)
    assert sum(WORLD_CHANNELS) / 7 == pytest.approx(WORLD_OBS_MSE, abs=1e-6)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (math.nan, "-"), (0.0, "0"), (4.7e-8, "4.70e-08"), (3, "3"), ("a", "a")]
)
def test_numbers_in_tables(value: object, text: str) -> None:
    assert number(value) == text


# --- the data -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "found_by"),
    [
        (shuffle_labels, "data/true labels"),
        (swap_channels, "data/replay equality"),
        (with_rows_after_exit, "data/rows after exit"),
    ],
)
def test_faults_in_the_files_fail_the_data(
    change: Callable[[Part, int], Part], found_by: str, rule_data: Path, tmp_path: Path
) -> None:
    report = judged(spoilt(rule_data, tmp_path / "data", change))
    assert statuses(report) == {"data": "fail"}
    assert found_by in missed(report)


def test_the_spoilt_copy_is_faithful_otherwise(rule_data: Path, tmp_path: Path) -> None:
    same = load_dataset(spoilt(rule_data, tmp_path / "data", lambda part, players: part))
    original = load_dataset(rule_data)
    for name in Rows._fields:
        assert torch.equal(getattr(same.rows, name), getattr(original.rows, name)), name
    assert torch.equal(same.offsets, original.offsets) and torch.equal(same.split_of, original.split_of)
