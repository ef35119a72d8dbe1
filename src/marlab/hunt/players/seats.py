"""Who sits where: rule-based players by their names in the tables, seats that learn, and seeds.

A player is written NS, NH, RAND, MIX(0.5), SWITCH(10), SWITCH(10,NH) for the reverse, WAIT(5), EXPL, NEAR(2),
SHY(0.5); ND clears the nearest drift in the snowdrift game.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

from marlab.lab.errors import UserError

_ROLE = re.compile(r"([A-Z]+)(?:\(([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:,(NS|NH))?\))?")
LEARNER = "PPO"
MOST_SEEDS = 1000
"""Training seeds of one run; far more than fit on any machine."""


class Kind(IntEnum):
    """How a player decides. Data sets store these numbers."""

    NS = 0  # nearest stag
    NH = 1  # nearest hare
    RAND = 2  # uniform over legal actions
    MIX = 3  # draws NS or NH at every start
    SWITCH = 4  # NS before a time, NH from then on, or the reverse
    WAIT = 5  # NS that gives up after some steps alone on the stag and becomes NH
    EXPL = 6  # takes a hare unless another player already stands on a stag
    ND = 7  # nearest drift (snowdrift)
    NEAR = 8  # takes a hare unless another player is within some steps of a stag
    SHY = 9  # draws EXPL or NH at every start


DEFAULT_VALUES = {Kind.MIX: 0.5, Kind.SWITCH: 8.0, Kind.WAIT: 5.0, Kind.NEAR: 2.0, Kind.SHY: 0.5}
"""Kinds that take a value, and the one they have where none is given."""


@dataclass(frozen=True)
class Role:
    """A seat's player."""

    kind: Kind
    value: float = 0.0
    """MIX: probability of NS; SWITCH: the time; WAIT: the patience in steps; NEAR: steps; SHY: probability of EXPL."""
    reverse: bool = False
    """SWITCH: NH first, then NS."""

    def __str__(self) -> str:
        if self.kind in DEFAULT_VALUES:
            return f"{self.kind.name}({self.value:g}{',NH' if self.reverse else ''})"
        return self.kind.name


def parse_role(text: str) -> Role:
    """A player from its name in the tables, such as NS, MIX(0.3) or SWITCH(10,NH)."""
    match = _ROLE.fullmatch(text.strip())
    names = ", ".join(kind.name for kind in Kind)
    if match is None or match.group(1) not in Kind.__members__:
        raise UserError(f"'{text}' is not a player, expected one of {names}, such as NS, MIX(0.5) or SWITCH(10,NH).")
    kind = Kind[match.group(1)]
    value, first = match.group(2), match.group(3)
    if (value is not None and kind not in DEFAULT_VALUES) or (first is not None and kind != Kind.SWITCH):
        raise UserError(f"'{text}' gives {kind.name} a value it does not take.")
    number = DEFAULT_VALUES.get(kind, 0.0) if value is None else float(value)
    if kind in (Kind.MIX, Kind.SHY) and number > 1:
        raise UserError(f"'{text}' has the probability {number:g}, expected a value from 0 to 1.")
    return Role(kind, number, first == "NH")


def parse_roles(text: str) -> tuple[Role, ...]:
    """Players of all seats from a list such as "NS,NH,MIX(0.5),SWITCH(10,NH)"."""
    return tuple(parse_role(part) for part in split_seats(text))


def split_seats(text: str) -> list[str]:
    """The words of a list of players; commas inside parentheses belong to a word: NOISY(0.2,SWITCH(4,NH)) is one."""
    words, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    return [word.strip() for word in words]


def learning_seats(text: str, players: int, learner: str = LEARNER) -> tuple[tuple[int, ...], tuple[str | None, ...]]:
    """(learning seats, everyone's name, None for a learner) from roles such as "PPO,NS,NH,NH"; empty: all learn."""
    if not text.strip():
        return tuple(range(players)), (None,) * players
    parts = split_seats(text)
    if len(parts) != players:
        raise UserError(f"agent_roles '{text}' names {len(parts)} players, this game has {players}.")
    seats = tuple(seat for seat, part in enumerate(parts) if part == learner)
    if not seats:
        raise UserError(f"agent_roles '{text}' has no {learner}: nobody would learn.")
    return seats, tuple(None if part == learner else part for part in parts)


def parse_seats(text: str, players: int, learner: str = LEARNER) -> tuple[tuple[int, ...], tuple[Role, ...]]:
    """(learning seats, everyone's roles) from roles such as "PPO,NS,NH,NH"; a learner's own role is never asked.

    `learner` is the word for seats that learn.
    """
    seats, names = learning_seats(text, players, learner)
    return seats, tuple(Role(Kind.RAND) if name is None else parse_role(name) for name in names)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Different whole numbers from a list of numbers and ranges, such as "0..4" or "1,5,7"."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, dots, last = part.partition("..")
            several = range(int(first), int(last if dots else first) + 1)
            if several.stop - several.start + len(seeds) > MOST_SEEDS:  # before they are written out
                raise UserError(f"seeds is '{text[:80]}', more than {MOST_SEEDS} seeds; expected a list such as 0..4.")
            seeds += several
    except ValueError:
        seeds = []
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0:
        raise UserError(f"seeds is '{text}', expected different whole numbers such as 0..4 or 1,5,7.")
    return tuple(seeds)


_MEMBER = re.compile(r"(\d*)\s*([A-Za-z].*)")


def team_members(text: str) -> tuple[str, ...]:
    """Members of a team written as "NS+2NH", "3RAND" or "SWITCH(8,NH)+2NH"."""
    members: list[str] = []
    for part in text.split("+"):
        match = _MEMBER.fullmatch(part.strip())
        if match is None or match.group(1) == "0" or len(match.group(1)) > 2:
            raise UserError(f"'{text[:80]}' is not a team, expected members joined by +, such as NS+2NH or 3RAND.")
        members += [match.group(2)] * int(match.group(1) or 1)
    return tuple(members)


@dataclass(frozen=True)
class GuestConfig:
    """How much of a training is spent with guests."""

    share: float = 0.5
    """Share of the games that have guests, where all seats learn; 0 is self-play alone."""
    stay: float = 0.9
    """Probability that a party stays for another episode; planners forget a party that leaves."""

    def __post_init__(self) -> None:
        if not (0 <= self.share <= 1 and 0 <= self.stay < 1):
            raise UserError(f"guests share is {self.share:g} and stay {self.stay:g}, expected shares (stay below 1).")
