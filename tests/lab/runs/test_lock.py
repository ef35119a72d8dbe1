"""One process per run: a lock is respected, also that of another host."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.runs.lock import Lock, Owner


def test_a_lock_of_another_host_is_respected(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")
    lock.path.write_text(json.dumps(vars(Owner(1, "elsewhere", "5"))))
    with pytest.raises(UserError, match=r"on elsewhere is working .* delete"):
        lock.acquire()
    lock.path.write_text("not json")
    lock.acquire()
    assert lock.is_held()
    lock.release()
    assert not lock.is_held() and list(tmp_path.iterdir()) == []


def test_what_a_process_left_that_died_while_it_took_the_lock_is_removed(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")
    living, dead = (tmp_path / f".lock.{digit * 32}" for digit in "0f")
    living.write_text(json.dumps(asdict(Owner.this_process())))
    dead.write_text(json.dumps(asdict(replace(Owner.this_process(), born="1"))))
    lock.acquire()
    assert living.exists() and not dead.exists()
    lock.release()
