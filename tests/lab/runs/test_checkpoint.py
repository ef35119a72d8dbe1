"""Checkpoints: atomic, verified, never unpickled, and kept as the trainer says."""

from __future__ import annotations

import os
import pickle
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import marlab.lab.runs.files as files
from marlab.lab.runs.checkpoint import (
    SCHEMA,
    CheckpointError,
    CheckpointStore,
    Keep,
    check_sizes,
    load_checkpoint,
    save_checkpoint,
)
from marlab.lab.runs.testing import assert_same

STATE: dict[str, Any] = {
    "w": torch.arange(5000.0),
    "big": 2**120 + 1,
    "nested": [1, (2.5, None), {"x": torch.tensor(True)}],
}


def test_round_trip(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", "fish/ppo", 7, STATE)
    checkpoint = load_checkpoint(tmp_path / "a.pt", "fish/ppo")
    assert checkpoint.step == 7 and checkpoint.kind == "fish/ppo"
    assert_same(checkpoint.state, STATE)


def test_tensors_cannot_be_larger_than_their_file(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", "x", 1, {"w": [torch.zeros(1).expand(1 << 40)]})
    with pytest.raises(CheckpointError, match="larger than the file"):
        load_checkpoint(tmp_path / "a.pt")


def test_tensors_that_are_no_plain_arrays_are_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", "fish/ppo", 7, {"w": [torch.eye(3).to_sparse()]})
    with pytest.raises(CheckpointError, match="not a plain array"):
        load_checkpoint(tmp_path / "a.pt")


@pytest.mark.parametrize("field", ["format", "schema", "kind", "step", "state"])
def test_a_tensor_in_place_of_a_word_is_refused(tmp_path: Path, field: str) -> None:
    content = {"format": "marlab-checkpoint", "schema": SCHEMA, "kind": "x", "step": 1, "state": {}}
    torch.save({**content, field: torch.zeros(3)}, tmp_path / "a.pt")
    with pytest.raises(CheckpointError):
        load_checkpoint(tmp_path / "a.pt", "x")


def test_layers_that_the_weights_do_not_have_are_refused(tmp_path: Path) -> None:
    weights = {"a": torch.zeros(3, 5), "b": [torch.zeros(2)]}
    check_sizes(tmp_path, weights, (5, 1))
    for sizes in ((6,), (0,), ("x",), (True,), (1, 1, 1)):
        with pytest.raises(CheckpointError):
            check_sizes(tmp_path, weights, sizes)


def test_truncation_at_any_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    save_checkpoint(path, "k", 1, STATE)
    whole = path.read_bytes()
    rng = random.Random(0)
    for _ in range(40):
        path.write_bytes(whole[: rng.randrange(len(whole))])
        with pytest.raises(CheckpointError, match="damaged"):
            load_checkpoint(path)


def test_flipped_bits_in_the_weights_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    save_checkpoint(path, "k", 1, STATE)
    whole = bytearray(path.read_bytes())
    middle = whole.index(torch.arange(100.0, 110.0).numpy().tobytes())
    whole[middle] ^= 1
    path.write_bytes(bytes(whole))
    with pytest.raises(CheckpointError, match="damaged in its record"):
        load_checkpoint(path)


class Evil:
    """Its pickle writes a file when it is loaded."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.proof),))


def test_malicious_files_are_refused_and_not_run(tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    plain = tmp_path / "plain.pt"
    plain.write_bytes(pickle.dumps({"format": "marlab-checkpoint", "state": Evil(proof)}))
    legacy = tmp_path / "legacy.pt"
    torch.save({"state": Evil(proof)}, legacy, _use_new_zipfile_serialization=False)
    archive = tmp_path / "archive.pt"
    torch.save({"format": "marlab-checkpoint", "schema": SCHEMA, "kind": "k", "step": 1, "state": Evil(proof)}, archive)
    for path in (plain, legacy, archive):
        with pytest.raises(CheckpointError) as caught:
            load_checkpoint(path)
        assert "\n" not in str(caught.value)
        assert not proof.exists()
    torch.load(archive, weights_only=False)  # the files are armed: a careless loader would have run them
    assert proof.exists()


def test_foreign_and_newer_files(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"weights": torch.zeros(3)}, path)
    with pytest.raises(CheckpointError, match="not a marlab checkpoint"):
        load_checkpoint(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(CheckpointError):
        load_checkpoint(path)
    torch.save({"format": "marlab-checkpoint", "schema": SCHEMA + 1, "kind": "k", "step": 1, "state": {}}, path)
    with pytest.raises(CheckpointError, match=f"has schema {SCHEMA + 1}"):
        load_checkpoint(path)
    save_checkpoint(path, "hunt/ppo", 1, {})
    with pytest.raises(CheckpointError, match="written by 'hunt/ppo', expected one by 'fish/ppo'"):
        load_checkpoint(path, "fish/ppo")
    with pytest.raises(CheckpointError, match="does not exist"):
        load_checkpoint(tmp_path / "none.pt")


def test_a_full_disk_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pt"
    save_checkpoint(path, "k", 1, STATE)

    def full(target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_sync", full)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(path, "k", 2, {"w": torch.zeros(3)})
    assert load_checkpoint(path).step == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pt"]  # nothing half-written stays behind


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a tiny disk needs root")
def test_a_really_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=200k tmpfs '{disk}' 2>/dev/null") != 0:
        pytest.skip("mounting is not allowed here")
    try:
        save_checkpoint(disk / "a.pt", "k", 1, {"w": torch.zeros(20_000)})
        with pytest.raises((OSError, RuntimeError)):
            save_checkpoint(disk / "a.pt", "k", 2, {"w": torch.zeros(60_000)})
        assert load_checkpoint(disk / "a.pt").step == 1
        assert sorted(p.name for p in disk.iterdir()) == ["a.pt"]
    finally:
        assert os.system(f"umount '{disk}'") == 0


def test_keep_last_best_and_every(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, "k", "model_iter_{step}.pt", Keep(last=2, every=5))
    for step, score in enumerate([0.1, 0.2, 0.9, 0.3, 0.4, 0.5, 0.1, 0.2], start=1):
        store.save(step, {"x": step}, score)
    assert store.steps() == [3, 5, 7, 8]
    assert store.best() == (3, 0.9)
    assert store.load_best().state == {"x": 3}
    (tmp_path / "model_iter_9.pt.part").write_text("not ours")
    assert store.steps() == [3, 5, 7, 8]


def test_keep_all(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, "k", keep=Keep.all())
    for step in range(6):
        store.save(step, {})
    assert store.steps() == list(range(6))


def test_resuming_uses_the_newest_good_one(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, "k")
    assert store.load_latest() == (None, [])
    for step in (1, 2, 3):
        store.save(step, {"x": step})
    store.path(3).write_bytes(store.path(3).read_bytes()[:100])
    save_checkpoint(store.path(2), "other", 2, {})
    checkpoint, problems = store.load_latest()
    assert checkpoint is not None and checkpoint.state == {"x": 1}
    assert len(problems) == 2 and "damaged" in problems[0] and "'other'" in problems[1]


# --- crafted archives ----------------------------------------------------------------------------------------------


def _rewritten(source: Path, target: Path, **changes: Any) -> Path:
    """The same entries written again, each changed as a stranger might."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            info = zipfile.ZipInfo(entry.filename)
            for name, value in changes.items():
                setattr(info, name, value)
            new.writestr(info, data, compress_type=changes.get("compress_type", zipfile.ZIP_STORED))
    return target


def test_packed_archives_are_refused_before_they_unpack(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", "toy", 1, {"w": torch.zeros(1_000_000)})
    packed = _rewritten(tmp_path / "a.pt", tmp_path / "b.pt", compress_type=zipfile.ZIP_DEFLATED)
    assert packed.stat().st_size < 50_000
    with pytest.raises(CheckpointError, match="damaged in its record"):
        load_checkpoint(packed)
    plain = _rewritten(tmp_path / "a.pt", tmp_path / "c.pt")
    assert load_checkpoint(plain).step == 1  # rewriting alone does no harm


def test_entries_marked_as_folders_are_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "a.pt", "toy", 1, STATE)
    with pytest.raises(CheckpointError, match="damaged in its record"):
        load_checkpoint(_rewritten(tmp_path / "a.pt", tmp_path / "b.pt", external_attr=0x10))


def test_any_flipped_bit_is_noticed_or_harmless(tmp_path: Path) -> None:
    """Every bit of index and heads, one at a time: the state is right, or the file is refused in one sentence."""
    state = {"w": torch.arange(40.0)}
    save_checkpoint(tmp_path / "a.pt", "toy", 1, state)
    whole, target = (tmp_path / "a.pt").read_bytes(), tmp_path / "b.pt"
    rng = random.Random(0)
    index = whole.rindex(b"PK\x01\x02")  # the last entry of the index, and all that follows
    places = [*range(index, len(whole)), *(rng.randrange(index) for _ in range(300))]
    refused = 0
    for place in places:
        bit = rng.randrange(8)
        target.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        try:
            found = load_checkpoint(target, "toy")
        except CheckpointError as error:
            refused += 1
            assert "\n" not in str(error)
        else:
            assert_same(found.state, state)
    assert refused > 100


def test_a_newer_file_that_cannot_be_read_costs_only_itself(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, "toy", keep=Keep.all())
    for step in (1, 2, 3):
        store.save(step, STATE)
    store.path(3).write_bytes(b"")
    _rewritten(store.path(1), store.path(2), compress_type=zipfile.ZIP_DEFLATED)
    checkpoint, problems = store.load_latest()
    assert checkpoint is not None and checkpoint.step == 1 and len(problems) == 2


@pytest.mark.parametrize("text", ["[]", "{}", '{"step": "x", "score": 1}', '{"step": 1, "score": null}', "nonsense"])
def test_a_damaged_mark_of_the_best_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "best.json").write_text(text)
    with pytest.raises(CheckpointError):
        CheckpointStore(tmp_path, "toy").best()


def test_a_state_from_the_middle_of_a_unit_stands_beside_the_checkpoint_before_it(tmp_path: Path) -> None:
    """It is what training goes on from, the best stays as it was scored, and the next checkpoint replaces it."""
    store = CheckpointStore(tmp_path, "toy", "epoch_{step}.pt", keep=Keep(last=2))
    store.save(1, {"x": 1.0}, score=3.0)
    store.save_halfway(1, {"x": 1.5})
    found, _ = store.load_latest()
    assert (
        found is not None and found.state["x"] == 1.5 and store.load_best().state["x"] == 1.0 and store.steps() == [1]
    )
    (tmp_path / "epoch_1_halfway.pt").write_bytes(b"cut short")
    found, problems = store.load_latest()
    assert found is not None and found.state["x"] == 1.0 and len(problems) == 1
    store.save(2, {"x": 2.0}, score=1.0)
    assert sorted(p.name for p in tmp_path.glob("*.pt")) == ["epoch_1.pt", "epoch_2.pt"]
