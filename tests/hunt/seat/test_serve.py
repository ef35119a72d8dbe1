"""What the server answers to the page of the human seat, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marlab.hunt.seat import serve
from marlab.lab.errors import UserError

START = {"do": "start", "team": "rules", "seat": 1}


def test_a_game_by_messages_is_a_file_of_plain_values(tmp_path: Path) -> None:
    told = serve.answer(dict(START), tmp_path)
    while not told["over"]:
        told = serve.answer(
            {"do": "move", "id": told["id"], "step": told["step"], "action": told["legal"][-1]}, tmp_path
        )
    stored = json.loads((tmp_path / told["file"]).read_text())
    assert stored["kind"] == "hunt/human" and stored["began"] <= stored["last_move"]
    assert stored["episodes"][0]["frames"][-1]["earned"] == told["earned"]
    again = serve.answer({"do": "again", "id": told["id"]}, tmp_path)
    assert again["id"] == told["id"] and again["episode"] == 1
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.json")) == [told["file"]]


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({}, "needs `do`"),
        ({"do": ["start"]}, "needs `do`"),
        ({"do": "start"}, "exactly do, seat, team"),
        ({**START, "path": "/etc/passwd"}, "exactly"),
        ({**START, "seat": "1"}, "seat in the message is not a whole number"),
        ({**START, "seat": True}, "whole number"),
        ({**START, "seat": 0}, "seat is 0"),
        ({**START, "team": "../../etc"}, "no team"),
        ({"do": "again", "id": "../../../../etc/passwd"}, "no such game"),
        ({"do": "move", "id": "0123456789ab", "step": 0, "action": "up"}, "no such game any more"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_leaves_nothing(message: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=why):
        serve.answer(message, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_move_of_yesterday_changes_nothing(tmp_path: Path) -> None:
    told = serve.answer(dict(START), tmp_path)
    move = {"do": "move", "id": told["id"], "step": 0, "action": told["legal"][0]}
    after = serve.answer(move, tmp_path)
    with pytest.raises(UserError, match="out of date"):
        serve.answer(move, tmp_path)
    assert serve.answer({"do": "look", "id": told["id"]}, tmp_path) == after  # a page that was opened again
    assert len(json.loads((tmp_path / told["file"]).read_text())["episodes"][0]["frames"]) == after["step"] + 1


def test_old_tables_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "MOST_GAMES", 2)
    ids = [serve.answer(dict(START), tmp_path)["id"] for _ in range(3)]
    with pytest.raises(UserError, match="any more"):
        serve.answer({"do": "again", "id": ids[0]}, tmp_path)
    assert len(list((tmp_path / serve.FOLDER).glob("*.json"))) == 3
