"""The world split: sizes of the records, determinism, reuse."""

import json
import random

import pytest

from marlab.lab.errors import UserError
from marlab.market.samples.split import SplitOptions, read_or_make_split, side_of, split_worlds


def test_sizes_of_the_training_record():
    splits = split_worlds(f"world-{i}" for i in range(94_248))
    assert [len(splits[name]) for name in ("train", "val", "test")] == [80_112, 9_424, 4_712]


def test_order_and_repetition_of_the_worlds_do_not_matter_but_the_seed_does():
    worlds = [f"w{i}" for i in range(50)]
    shuffled = worlds * 2
    random.Random(1).shuffle(shuffled)
    assert split_worlds(worlds) == split_worlds(shuffled)
    assert split_worlds(worlds) != split_worlds(worlds, SplitOptions(split_seed=43))


def test_no_world_is_on_two_sides():
    splits = split_worlds(f"w{i}" for i in range(33))
    assert len(side_of(splits)) == 33 == sum(map(len, splits.values()))


@pytest.mark.parametrize(
    ("n", "sizes"), [(0, (0, 0, 0)), (1, (1, 0, 0)), (2, (2, 0, 0)), (3, (1, 1, 1)), (40, (34, 4, 2))]
)
def test_few_worlds_have_one_on_each_side_as_soon_as_there_are_three(n, sizes):
    splits = split_worlds(f"w{i}" for i in range(n))
    assert tuple(len(splits[name]) for name in ("train", "val", "test")) == sizes


def test_worlds_of_a_group_stay_together():
    group_of = {f"w{i:02d}-r{run}": f"w{i:02d}" for i in range(40) for run in range(3)}
    splits = split_worlds(group_of)
    assert [len(splits[name]) for name in ("train", "val", "test")] == [34 * 3, 4 * 3, 2 * 3]
    side = side_of(splits)
    assert all(side[f"w{i:02d}-r0"] == side[f"w{i:02d}-r1"] == side[f"w{i:02d}-r2"] for i in range(40))


def test_ratios_zero_are_no_split():
    splits = split_worlds(["a", "b", "c"], SplitOptions(0.0, 0.0))
    assert splits == {"train": ["a", "b", "c"], "val": [], "test": []}


def test_impossible_ratios_are_refused():
    with pytest.raises(UserError, match=r"val_ratio is 0\.6 and test_ratio is 0\.4"):
        SplitOptions(0.6, 0.4)


def test_a_stored_split_is_used_again(tmp_path):
    path = tmp_path / "world_split.json"
    worlds = [f"w{i}" for i in range(20)]
    made = read_or_make_split(path, "data", worlds)
    stored = json.loads(path.read_text())
    assert stored["splits"] == made and stored["tournament_dir"] == "data"
    stored["splits"]["train"], stored["splits"]["val"] = made["val"], made["train"]
    path.write_text(json.dumps(stored))
    assert read_or_make_split(path, "data", worlds)["val"] == made["train"]
    assert read_or_make_split(path, "elsewhere", ["x", "y", "z"])["train"] != made["train"]


def test_a_shared_split_is_never_replaced(tmp_path):
    path = tmp_path / "world_split.json"
    made = read_or_make_split(path, "data", [f"w{i}" for i in range(9)])
    before = path.read_text()
    assert read_or_make_split(path, "./data/", ["w1", "w2"], shared=True) == made
    with pytest.raises(UserError, match="does not know 1 of the worlds"):
        read_or_make_split(path, "elsewhere", ["x"], shared=True)
    assert path.read_text() == before


def test_new_worlds_and_other_ratios_need_a_new_split(tmp_path):
    path = tmp_path / "world_split.json"
    read_or_make_split(path, "data", ["a", "b", "c"])
    with pytest.raises(UserError, match=r"does not know 1 of the worlds found now \(such as d\)"):
        read_or_make_split(path, "data", ["a", "b", "d"])
    with pytest.raises(UserError, match=r"made with val_ratio 0\.1, asked is 0\.2"):
        read_or_make_split(path, "data", ["a", "b"], SplitOptions(val_ratio=0.2))
    path.write_text("{}")
    with pytest.raises(UserError, match=r"not a world split"):
        read_or_make_split(path, "data", ["a"])
