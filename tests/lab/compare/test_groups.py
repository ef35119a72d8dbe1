"""Runs become groups: by their settings without seeds, by given names, by a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.compare.groups import differing, open_groups
from marlab.lab.errors import UserError
from tests.lab.compare.cases import make_training, two_groups


def test_runs_that_differ_only_in_their_seed_are_one_group(tmp_path: Path) -> None:
    runs = two_groups(tmp_path, [1, 2, 3], [4, 5])
    groups = open_groups([*runs, runs[0]], tmp_path)
    assert [(g.name, [r.name for r in g.runs]) for g in groups] == [
        ("rate=0.1", ["a0", "a1", "a2"]),
        ("rate=0.3", ["b0", "b1"]),
    ]
    assert differing(groups) == {"rate": ["0.1", "0.3"]}


def test_names_join_and_part_runs(tmp_path: Path) -> None:
    runs = two_groups(tmp_path, [1, 2], [4])
    groups = open_groups([f"old={runs[0]}", "new=toy/a1", f"new={runs[2]}"], tmp_path)
    assert [(g.name, len(g.runs)) for g in groups] == [("old", 1), ("new", 2)]
    assert differing(groups) == {"rate": ["0.1", "various"]}


def test_long_names_give_way_to_the_run(tmp_path: Path) -> None:
    runs = [make_training(tmp_path, "x", 1, note="n" * 60), make_training(tmp_path, "y", 1, net={"width": 9})]
    assert [g.name for g in open_groups(runs, tmp_path)] == ["x", "y"]


def test_settings_of_one_last_name_keep_their_tables(tmp_path: Path) -> None:
    tables = ({"net": {"width": 8}, "head": {"width": 8}}, {"net": {"width": 9}, "head": {"width": 7}})
    runs = [make_training(tmp_path, name, 1, **table) for name, table in zip("xy", tables)]
    assert [g.name for g in open_groups(runs, tmp_path)] == ["net.width=8, head.width=8", "net.width=9, head.width=7"]


def test_a_sweep_stands_for_its_runs(tmp_path: Path) -> None:
    sweep = Path(make_training(tmp_path, "sweep", 0))
    for seed in (0, 1):
        make_training(sweep, f"t{seed}", seed, seed, world="trials")
    for file in sweep.glob("trials/*/run.json"):
        file.write_text(file.read_text().replace('"world": "trials"', '"world": "toy"'))
    (group,) = open_groups([str(sweep)], tmp_path)
    assert [info.name for info in group.runs] == ["t0", "t1"]


def test_different_worlds_and_single_runs_are_refused(tmp_path: Path) -> None:
    one, other = make_training(tmp_path, "x", 1), make_training(tmp_path, "y", 1, world="moon")
    with pytest.raises(UserError, match="toy/x and moon/y are runs of different worlds"):
        open_groups([one, other], tmp_path)
    with pytest.raises(UserError, match="needs two runs or more"):
        open_groups([one, one], tmp_path)
