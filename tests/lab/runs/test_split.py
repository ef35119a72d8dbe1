"""Checkpoints in three files: sizes, order, kills, and what is left when one of them is damaged."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from marlab.lab.runs import split
from marlab.lab.runs.checkpoint import Keep, load_checkpoint
from marlab.lab.runs.split import SplitStore


def store_in(folder: Path) -> SplitStore:
    return SplitStore(folder, "toy", "model_iter_{step}.pt", Keep(last=2), weights="agents", memory="replay")


def state(step: int, kind: float = 0.0) -> dict[str, Any]:
    return {
        "step": step, "agents": {"w": torch.full((4,), float(step))}, "replay": torch.full((5000,), step + kind),
        "rngs": {"x": step + kind},
    }  # fmt: skip


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def resumed(folder: Path) -> tuple[int, float | None, str, list[str]]:
    """(step, what the memory holds, note, problems) of what training would go on from."""
    found, problems = store_in(folder).load_latest()
    assert found is not None and "agents" not in found.state and found.state["rngs"]["x"] == found.step
    memory = found.state.get("replay")
    return found.step, None if memory is None else float(memory[0]), found.note, problems


def damage(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def dies_after(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """The process dies before the write or deletion that comes after so many."""
    left = iter(range(writes))

    def counted(function: Any) -> Any:
        def call(*words: Any, **more: Any) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return function(*words, **more)

        return call

    monkeypatch.setattr(split, "save_checkpoint", counted(split.save_checkpoint))
    monkeypatch.setattr(Path, "unlink", counted(Path.unlink))


def test_weights_of_every_kept_checkpoint_two_states_and_one_memory(tmp_path: Path) -> None:
    for step in (1, 2, 3, 4):
        store_in(tmp_path).save(step, state(step))
    assert names(tmp_path) == ["memory_4.pt", "model_iter_3.pt", "model_iter_4.pt", "state_3.pt", "state_4.pt"]
    assert resumed(tmp_path) == (4, 4.0, "", [])
    plays = load_checkpoint(tmp_path / "model_iter_4.pt", "toy").state
    assert list(plays) == ["agents"] and plays["agents"]["w"][0] == 4
    large = (tmp_path / "memory_4.pt").stat().st_size
    assert all((tmp_path / name).stat().st_size < large / 4 for name in names(tmp_path)[1:])


@pytest.mark.parametrize("moment", range(6))
def test_a_kill_at_any_moment_leaves_a_state_with_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """The process dies before its first, second, ... write or deletion of the second checkpoint."""
    store = store_in(tmp_path)
    store.save(1, state(1))
    dies_after(monkeypatch, moment)
    with suppress(KeyboardInterrupt):
        store.save(2, state(2))
    monkeypatch.undo()
    expected = 2 if moment >= 3 else 1
    assert resumed(tmp_path) == (expected, float(expected), "", [])
    store_in(tmp_path).save(3, state(3))  # what the kill left over is cleared away
    assert [name for name in names(tmp_path) if "memory" in name] == ["memory_3.pt"]


@pytest.mark.parametrize("moment", range(5))
def test_a_unit_that_is_saved_again_halfway_keeps_the_memory_of_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    store_in(tmp_path).save(1, state(1))
    again = {**state(1), "replay": torch.full((5000,), 1.5)}
    dies_after(monkeypatch, moment)
    with suppress(KeyboardInterrupt):
        store_in(tmp_path).save(1, again)
    monkeypatch.undo()
    assert resumed(tmp_path) == (1, 1.5 if moment >= 3 else 1.0, "", [])
    store_in(tmp_path).save(1, again)
    store_in(tmp_path).save(1, again)
    assert len([name for name in names(tmp_path) if "memory" in name]) == 1 and resumed(tmp_path)[1] == 1.5


def test_a_damaged_state_sends_training_back_to_the_one_before(tmp_path: Path) -> None:
    for step in (1, 2):
        store_in(tmp_path).save(step, state(step))
    damage(tmp_path / "state_2.pt")
    step, memory, note, problems = resumed(tmp_path)
    assert (step, memory) == (1, None) and "empty memory" in note and "state_2.pt is damaged" in problems[0]
    store_in(tmp_path).save(1, state(1))
    assert "state_2.pt" not in names(tmp_path) and resumed(tmp_path) == (1, 1.0, "", [])


def test_a_damaged_memory_costs_the_memory_alone(tmp_path: Path) -> None:
    store_in(tmp_path).save(1, state(1))
    damage(tmp_path / "memory_1.pt")
    step, memory, note, problems = resumed(tmp_path)
    assert (step, memory, problems) == (1, None, []) and "memory_1.pt is damaged" in note
    damage(tmp_path / "model_iter_1.pt")
    assert resumed(tmp_path)[0] == 1


def test_a_memory_of_another_course_is_not_taken(tmp_path: Path) -> None:
    """Training went back and came to step 2 again, and was killed after it wrote the memory and before the state."""
    store_in(tmp_path).save(2, state(2))
    (tmp_path / "other").mkdir()
    store_in(tmp_path / "other").save(2, state(2, kind=0.5))
    (tmp_path / "other" / "memory_2.pt").replace(tmp_path / "memory_2.pt")
    step, memory, note, _ = resumed(tmp_path)
    assert (step, memory) == (2, None) and "does not belong" in note


def test_without_a_memory_there_are_two_files(tmp_path: Path) -> None:
    store = SplitStore(tmp_path, "toy", "model_iter_{step}.pt", weights="agents")
    store.save(1, {"agents": {"w": 1}, "rest": 2}, score=0.5)
    assert names(tmp_path) == ["best.json", "model_iter_1.pt", "state_1.pt"]
    found, _ = store.load_latest()
    assert found is not None and found.state == {"rest": 2} and store.load_best().state == {"agents": {"w": 1}}
