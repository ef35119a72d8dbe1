"""Files that are written whole or not at all."""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.lab.runs.files import (
    LEFTOVER,
    append,
    end_broken_line,
    plain_json,
    read_bytes,
    read_gzip,
    read_json,
    read_table,
    replacing,
    tidy,
    trusting,
    write_json,
    write_text,
)


def test_a_failure_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_text("half of the n")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["a.txt"]


def test_nothing_of_a_run_is_written_through_a_link(tmp_path: Path) -> None:
    elsewhere, kept = tmp_path / "elsewhere", tmp_path / "kept"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "deep" / "a.txt").write_text("precious")
    (tmp_path / "large_disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "large_disk")  # a run itself may lie elsewhere
    write_text(tmp_path / "run" / "run.json", "{}")
    (tmp_path / "run" / "report").symlink_to(elsewhere)
    for inside in ("report/new.txt", "report/deep/a.txt", "report/new/a.txt"):
        with pytest.raises(UserError, match=r"report is a link to another folder"):
            write_text(tmp_path / "run" / inside, "x")
    assert sorted(path.name for path in elsewhere.rglob("*")) == ["a.txt", "deep"]
    assert (elsewhere / "deep" / "a.txt").read_text() == "precious"
    kept.write_text("precious")
    (tmp_path / "run" / "a.txt").symlink_to(kept)
    write_text(tmp_path / "run" / "a.txt", "ours")
    assert (kept.read_text(), (tmp_path / "large_disk" / "a.txt").read_text()) == ("precious", "ours")


def test_readers_see_the_old_content_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old" and temporary.parent == path.parent
    assert path.read_text() == "new"


def test_files_are_as_readable_as_others(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_text(tmp_path / "ours", "x")
    assert os.stat(tmp_path / "ours").st_mode == os.stat(tmp_path / "usual").st_mode


def test_json_there_and_back(tmp_path: Path) -> None:
    data = {"ä": [1, 2.5, None, True], "b": {"c": "d"}}
    write_json(tmp_path / "a.json", data)
    assert read_json(tmp_path / "a.json", UserError) == data
    assert "ä" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_values_of_numpy_and_torch_are_written_as_numbers(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"a": np.float32(0.5), "b": np.int64(3), "c": torch.tensor(True)})
    assert read_json(tmp_path / "a.json", UserError) == {"a": 0.5, "b": 3, "c": True}
    with pytest.raises(TypeError, match="object is no JSON value"):
        write_json(tmp_path / "a.json", {"a": object()})


def test_numbers_that_json_does_not_know_become_null() -> None:
    assert plain_json({"a": (math.nan, [math.inf, 1.5]), "b": "nan"}) == {"a": [None, [None, 1.5]], "b": "nan"}


@pytest.mark.parametrize("content", [b"{", b"", b"\xff\xfe{}"])
def test_what_cannot_be_read_is_said_with_its_path(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.json is not valid JSON"):
        read_json(tmp_path / "a.json", UserError)
    with pytest.raises(UserError, match=r"b\.json does not exist"):
        read_json(tmp_path / "b.json", UserError)


def test_a_table_is_no_list_and_no_text(tmp_path: Path) -> None:
    for text, right in (('{"a": 1}', True), ("[]", False), ('"x"', False), ("null", False)):
        (tmp_path / "a.json").write_text(text)
        if right:
            assert read_table(tmp_path / "a.json", UserError) == {"a": 1}
        else:
            with pytest.raises(UserError, match="not a table"):
                read_table(tmp_path / "a.json", UserError)


def test_what_a_strangers_file_makes_us_stumble_over_is_one_sentence() -> None:
    for stumble in (lambda: {}["a"], lambda: int("x"), lambda: [][1], lambda: None + 1, lambda: None.a):  # type: ignore
        with pytest.raises(UserError, match=r"^The file x is wrong: .+\.$"), trusting("The file x is wrong"):
            stumble()
    with pytest.raises(UserError, match=r"^as it was$"), trusting("The file x is wrong"):
        raise UserError("as it was")
    with pytest.raises(OSError, match="full"), trusting("The file x is wrong"):
        raise OSError("full")


def test_what_killed_writers_left_is_removed_but_not_of_runs_inside(tmp_path: Path) -> None:
    inner = tmp_path / "trials" / "a"
    inner.mkdir(parents=True)
    (inner / "run.json").write_text("{}")
    ours = [tmp_path / "data" / ".rows.parquet.a1b2c3d4.tmp", tmp_path / ".multi_fish_eval.mp4.0_bcdefg.tmp"]
    others = [inner / ".run.json.a1b2c3d4.tmp", tmp_path / ".notes.tmp", tmp_path / "rows.parquet.a1b2c3d4.tmp"]
    for path in (*ours, *others):
        path.parent.mkdir(exist_ok=True)
        path.write_text("half")
    tidy(tmp_path)
    assert not any(path.exists() for path in ours) and all(path.exists() for path in others)
    with pytest.raises(RuntimeError), replacing(tmp_path / "data" / "rows.parquet") as temporary:
        assert LEFTOVER.fullmatch(temporary.name)
        raise RuntimeError


def test_links_and_pipes_in_a_run_are_not_written_through(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    for number, place in enumerate(("log.txt", "data/train/macro.day.npy", "tb")):
        run = tmp_path / f"run{number}"
        (run / place).parent.mkdir(parents=True)
        (run / place).symlink_to(elsewhere)
        with pytest.raises(UserError, match=rf"{place} is a link or a pipe"):
            tidy(run)
        (run / place).unlink()
        os.mkfifo(run / place)
        with pytest.raises(UserError, match=rf"{place} is a link or a pipe"):
            tidy(run)
    (tmp_path / "linked").symlink_to(tmp_path / "run0")  # a run may itself be a link
    (tmp_path / "run0" / "log.txt").unlink()
    tidy(tmp_path / "linked")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="Not a regular file"):
            read_bytes(path)
        with pytest.raises(UserError, match="cannot be read"):
            read_json(path, UserError)
    with pytest.raises(IsADirectoryError):
        read_bytes(tmp_path)


def test_a_packed_file_is_read_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"0" * 5000))
    assert read_gzip(path) == b"0" * 5000 and read_gzip(path, 10) == b"0" * 10
    monkeypatch.setattr("marlab.lab.runs.files.MOST_UNPACKED", 4999)
    with pytest.raises(OSError, match="unpacks to more than"):
        read_gzip(path)
    path.write_bytes(b"plain")
    assert read_gzip(path) == b"plain" and read_gzip(path, 2) == b"pl"
    path.write_bytes(gzip.compress(b"0" * 5000)[:-12])
    with pytest.raises(OSError, match="end-of-stream"):
        read_gzip(path)


def test_what_a_living_writer_has_begun_stays(tmp_path: Path) -> None:
    dead = tmp_path / "a.txt"
    left = tmp_path / ".a.txt.abcd1234.tmp"
    left.write_text("half")
    with replacing(dead) as temporary:  # the first write of a process into a folder looks for leftovers there
        assert not left.exists()
        temporary.write_text("new")
        tidy(tmp_path)
        assert temporary.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_appended_pieces_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "rows.jsonl", os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, bytes(data)[:3]))  # as on a nearly full disk
    append(path, b"first line\n")
    append(path, b"cut")
    end_broken_line(path)
    append(path, b"last\n")
    assert path.read_bytes() == b"first line\ncut\nlast\n"
