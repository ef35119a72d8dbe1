from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlab.fish.starts.files import (
    SECTORS,
    SHIPPED,
    HardStartConfig,
    StageSpec,
    StartSet,
    describe_starts,
    find_start_file,
    in_sector,
    load_stages,
    load_starts,
    parse_stage_spec,
    sector_range,
    speed_range,
)
from marlab.lab.errors import UserError


def write(path: Path, **content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def cluster(*velocity: float) -> dict[str, Any]:
    return {"count": 1, "sample": {"predator_velocity": list(velocity)}}


# --- files --------------------------------------------------------------------------------------------------


def test_velocities_come_before_cluster_samples(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", velocities=[[1, 2], [3, 4]], summary={"clusters": [cluster(0.5, -1)]})
    starts = load_starts(path)
    assert starts.velocity.tolist() == [[1, 2], [3, 4], [0.5, -1]]
    assert np.isnan(starts.position).all()


def test_full_states_replace_their_older_form(tmp_path: Path) -> None:
    states = [{"position": [1, -2], "velocity": [0, 1.5], "arena_seed": 7}, {"velocity": [1, 0]}]
    starts = load_starts(write(tmp_path / "a.json", states=states, velocities=[[9, 9]], type="n"))
    assert starts.velocity.tolist() == [[0, 1.5], [1, 0]]
    assert starts.position[0].tolist() == [1, -2]
    assert np.isnan(starts.position[1]).all()
    assert starts.declared_type == "n"


BAD_FILES: list[tuple[Any, str]] = [
    ([1, 2], "a list"),
    ({}, "no usable entry"),
    ({"velocities": []}, "no usable entry"),
    ({"velocities": 3}, "not a list"),
    ({"velocities": [[1, 2], [1]]}, r"velocities\[1\]"),
    ({"velocities": [["a", 2]]}, r"velocities\[0\]"),
    ({"velocities": [[True, 2]]}, r"velocities\[0\]"),
    ({"summary": {"clusters": [{"sample": {}}]}}, r"clusters\[0\]"),
    ({"states": [[1, 2]]}, r"states\[0\]"),
    ({"states": [{"position": [0, 0]}]}, r"states\[0\]"),
    ({"states": [{"velocity": [1, 2], "position": [8, 8]}]}, "outside the arena"),
    ({"states": [{"velocity": [60, 2]}]}, "m/s"),
    ({"velocities": [[1, 2]], "type": 3}, "type"),
]


@pytest.mark.parametrize(("content", "word"), BAD_FILES)
def test_a_bad_file_is_one_sentence(tmp_path: Path, content: Any, word: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UserError, match=word) as error:
        load_starts(path)
    assert "bad.json" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_json_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{oops", encoding="utf-8")
    with pytest.raises(UserError, match="not valid JSON"):
        load_starts(tmp_path / "x.json")
    with pytest.raises(UserError, match="does not exist"):
        load_starts(tmp_path / "y.json")


def test_not_a_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"velocities": [[NaN, 1]]}', encoding="utf-8")
    with pytest.raises(UserError, match=r"velocities\[0\]"):
        load_starts(tmp_path / "x.json")


def test_lenient_reading_skips_what_is_malformed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", velocities=[[1, 2], [1], "x", [3, 4]], summary={"clusters": [None, {}, 5]})
    assert load_starts(path, lenient=True).velocity.tolist() == [[1, 2], [3, 4]]
    path = write(tmp_path / "b.json", states=[{"velocity": [1, 1]}, {"velocity": None}])
    assert load_starts(path, lenient=True).velocity.tolist() == [[1, 1]]


# --- what a file contains -----------------------------------------------------------------------------------


def test_report_sees_through_repetition_and_labels() -> None:
    starts = load_starts(SHIPPED / "tail_seed_mix_v32_stage2.json")
    many = StartSet("many", np.tile(starts.position, (800, 1)), np.tile(starts.velocity, (800, 1)))
    report = describe_starts(many, declared="sw")
    assert (report.entries, report.distinct, report.with_position) == (4000, 5, 0)
    assert report.heading_counts == (0, 0, 3200, 800, 0, 0, 0, 0, 0, 0, 0, 0)  # 67 to 106 degrees: north
    assert report.declared_share == 0.0 and not report.label_fits
    assert "DOES NOT FIT" in report.text()
    assert describe_starts(many, declared="ne").label_fits
    assert "names no sector" in describe_starts(many, declared="main").text()


def test_speed_histogram_counts_every_entry() -> None:
    starts = StartSet("x", np.full((4, 2), np.nan), np.array([[0.1, 0], [0.4, 0], [1.19, 0], [1.2, 0]]))
    assert describe_starts(starts).speed_counts == (1, 1, 1, 1)
    assert describe_starts(starts).speed_range == pytest.approx((0.1, 1.2))


@given(st.floats(0, 359.99))
def test_the_four_quarters_share_the_compass(heading: float) -> None:
    for quarters in (("n", "e", "s", "w"), ("ne", "nw", "sw", "se")):
        assert sum(bool(in_sector(np.array([heading]), SECTORS[q])[0]) for q in quarters) == 1


def test_ranges_by_name_and_by_number() -> None:
    assert sector_range("sw", "x") == (180, 270)
    assert sector_range("200-260", "x") == (200, 260)
    assert speed_range("slow", "x") == (0.2, 1.2)
    assert speed_range("0.5-1.5", "x") == (0.5, 1.5)
    for text in ("up", "260-200", "-5", "1-", "1-x"):
        with pytest.raises(UserError):
            sector_range(text, "x")


# --- stages -------------------------------------------------------------------------------------------------


def test_stage_spec_with_and_without_options() -> None:
    assert parse_stage_spec("16:a.json|type=ne|label=early; 8:b/c.json") == (
        StageSpec(16, "a.json", "ne", "early"),
        StageSpec(8, "b/c.json", "main", "stage2"),
    )
    assert parse_stage_spec("") == ()


@pytest.mark.parametrize("text", ["x:a", "0:a", "16", "16:", "-2:a", "16:a|kind=ne", "16:a|type", "16:a|label="])
def test_a_wrong_stage_spec_is_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match="tail_seed_stage_spec"):
        parse_stage_spec(text)


def test_a_missing_file_stops_the_run_and_in_compat_only_warns(tmp_path: Path) -> None:
    good = write(tmp_path / "good.json", velocities=[[0, 1]])
    specs = parse_stage_spec(f"4:{tmp_path / 'gone.json'};4:{good}")
    with pytest.raises(UserError, match=r"gone\.json does not exist"):
        load_stages(specs)
    stages, warnings = load_stages(specs, lenient=True)
    assert [s.starts.name for s in stages] == ["good.json"]
    assert len(warnings) == 1 and "gone.json" in warnings[0]


def test_a_wrong_label_stops_the_run_and_in_compat_only_warns(tmp_path: Path) -> None:
    north = write(tmp_path / "north.json", velocities=[[0, 1]])
    for specs in (
        parse_stage_spec(f"4:{north}|type=sw"),
        [StageSpec(4, str(write(north, velocities=[[0, 1]], type="sw")))],
    ):
        with pytest.raises(UserError, match="is declared 'sw'"):
            load_stages(specs)
        stages, warnings = load_stages(specs, lenient=True)
        assert len(stages) == 1 and len(warnings) == 1


def test_old_commands_find_the_shipped_files(tmp_path: Path) -> None:
    old = "experiments/v32/artifacts/checkpoints/tail_seed_mix_v32_stage1.json"
    assert find_start_file(old) == SHIPPED / "tail_seed_mix_v32_stage1.json"
    mine = write(tmp_path / "tail_seed_mix_v32_stage1.json", velocities=[[0, 1]])
    assert find_start_file(str(mine)) == mine  # a file that exists wins
    assert find_start_file("nowhere.json") == Path("nowhere.json")


def test_a_missing_file_that_is_replaced_by_a_shipped_one_is_said() -> None:
    name = "tail_seed_mix_v32_stage1.json"
    stages, warnings = load_stages(parse_stage_spec(f"1:somewhere/{name};1:{name}"))
    assert len(stages) == 2 and len(warnings) == 1 and f"somewhere/{name} is not there" in warnings[0]


def test_shipped_files_are_what_they_say() -> None:
    names = sorted(p.name for p in SHIPPED.glob("*.json"))
    assert len(names) >= 7
    reports = {name: describe_starts(load_starts(SHIPPED / name)) for name in names}
    assert all(r.label_fits and r.distinct == r.entries for r in reports.values())
    assert reports["planB_sw_slow.json"].declared_share == 1.0
    assert reports["best_ne.json"].with_position == reports["best_ne.json"].entries


def test_stages_of_both_spellings() -> None:
    assert HardStartConfig().stages == ()
    two = HardStartConfig(seed_stage_spec="3:a.json|type=ne;2:b.json").stages
    assert [(s.iterations, s.path, s.type, s.label) for s in two] == [
        (3, "a.json", "ne", "stage1"), (2, "b.json", "main", "stage2"),
    ]  # fmt: skip
    [one] = HardStartConfig(seed_replay_path="c.json", seed_prewarm_iterations=4).stages
    assert (one.iterations, one.path) == (4, "c.json")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"override_probability": 1.5}, "tail_override_probability is 1.5"),
        ({"stage_warn_patience": 0}, "tail_stage_warn_patience"),
        ({"seed_replay_path": "a.json"}, "tail_seed_prewarm_iterations"),
        ({"seed_stage_spec": "a.json"}, "tail_seed_stage_spec"),
    ],
)
def test_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        HardStartConfig(**change)


def test_the_home_of_nobody_is_a_name_like_any_other() -> None:
    assert find_start_file("~nobody-is-called-so/starts.json") == Path("~nobody-is-called-so/starts.json")
