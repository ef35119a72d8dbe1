"""One process per run: a lock is respected, also that of another host."""

from __future__ import annotations

import json
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
