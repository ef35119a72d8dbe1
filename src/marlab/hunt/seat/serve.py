"""What a served notebook answers to the page of the human seat; every game is a file `hunt/human/ID.json` of the runs.

Messages are strangers' input: a table with `do` (start, look, move or again) and what that needs, and nothing else.
Agents are chosen from a fixed list, so no message names a file.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.runs.files import write_json
from marlab.lab.runs.record import now

FOLDER = Path("hunt") / "human"
MOST_GAMES = 16
"""Tables that are kept; beyond it the one that was not touched for the longest time is given up (its file stays)."""
_ID = re.compile(r"[0-9a-f]{12}")
_NEEDS = {
    "start": {"do", "team", "seat"},
    "look": {"do", "id"},
    "again": {"do", "id"},
    "move": {"do", "id", "step", "action"},
}
_games: OrderedDict[str, tuple[Any, str]] = OrderedDict()  # id -> (game, when it began)
_lock = threading.Lock()


def answer(message: dict[str, Any], root: Path) -> dict[str, Any]:
    """One message of the page; what is wrong raises UserError."""
    _check(message)
    with _lock:
        identity = _start(message) if message["do"] == "start" else message["id"]
        game, began = _find(identity)
        if message["do"] == "move":
            if message["step"] != len(game.moments) or game.over:
                raise UserError("This move is out of date: the game has gone on. Reload the page to see it.")
            game.move(message["action"])
        elif message["do"] == "again":
            game.again()
        file = FOLDER / f"{identity}.json"
        if message["do"] != "look":
            write_json(root / file, {**game.record(), "began": began, "last_move": now()})
        return {"id": identity, "file": file.as_posix(), **game.shown()}


def _check(message: dict[str, Any]) -> None:
    do = message.get("do")
    if not isinstance(do, str) or do not in _NEEDS:
        raise UserError("A message needs `do`: start, look, move or again.")
    if set(message) != _NEEDS[do]:
        raise UserError(f"To {do}, a message has exactly {', '.join(sorted(_NEEDS[do]))}.")
    for name, kind in {"team": str, "action": str, "id": str, "seat": int, "step": int}.items():
        if name in message and type(message[name]) is not kind:
            raise UserError(f"{name} in the message is not {'a text' if kind is str else 'a whole number'}.")
    if "id" in message and not _ID.fullmatch(message["id"]):
        raise UserError("There is no such game.")


def _start(message: dict[str, Any]) -> str:
    from marlab.hunt.seat.game import HumanGame  # torch takes its time; a notebook that nobody plays in needs none

    game = HumanGame(message["team"], message["seat"] - 1, secrets.randbelow(2**31))
    identity = secrets.token_hex(6)
    _games[identity] = (game, now())
    while len(_games) > MOST_GAMES:
        _games.popitem(last=False)
    return identity


def _find(identity: str) -> tuple[Any, str]:
    if identity not in _games:
        raise UserError("There is no such game any more; start a new one.")
    _games.move_to_end(identity)
    return _games[identity]
