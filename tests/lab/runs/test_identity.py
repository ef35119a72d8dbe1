"""The identity of code changes with every file of it, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.lab.runs import identity
from marlab.lab.runs.identity import code_identity, sources, weights_digest


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two rooms."""
    for name in ("game/rules.py", "game/fast.c", "game/notes.md", "players/policy.py", "players/rules.py"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"# {name}\n")
    monkeypatch.setattr(identity, "HOUSE", tmp_path)
    return tmp_path


def named(*places: str, libraries: tuple[str, ...] = ()) -> str:
    return code_identity.__wrapped__(places, libraries)  # read the files again


def test_sources_are_rooms_and_files(house: Path) -> None:
    found = [file.relative_to(house).as_posix() for file in sources(["players/rules.py", "game", "players/rules.py"])]
    assert found == ["game/fast.c", "game/rules.py", "players/rules.py"]
    with pytest.raises(ValueError, match="no source"):
        sources(["nowhere"])


def test_every_change_of_the_code_is_seen(house: Path) -> None:
    before = named("game", "players/rules.py")
    (house / "game" / "notes.md").write_text("prose")
    (house / "players" / "policy.py").write_text("not listed")
    assert named("game", "players/rules.py") == before == named("players/rules.py", "game")
    for file in ("game/fast.c", "players/rules.py"):
        (house / file).write_text("changed")
        assert named("game", "players/rules.py") != before
        before = named("game", "players/rules.py")
    (house / "game" / "rules.py").rename(house / "game" / "laws.py")
    assert named("game", "players/rules.py") != before


def test_libraries_count(house: Path) -> None:
    assert len({named("game"), named("game", libraries=("numpy",)), named("game", libraries=("nobody-has-this",))}) == 3


def test_weights_have_a_name_that_changes_with_any_of_them() -> None:
    weights = [torch.zeros(2, 3), torch.ones(4)]
    others = ([torch.zeros(2, 3), torch.full((4,), 1.001)], [torch.zeros(3, 2), torch.ones(4)], weights[:1])
    assert weights_digest(weights) == weights_digest([w.clone() for w in weights])
    assert len({weights_digest(weights), *map(weights_digest, others)}) == 4
