"""Everybody who plays without networks, by name, beyond the plain rules of `seats`.

GRIM(k) hunts the stag until it has been let down k times, then takes hares for ever; TFT hunts it in the first
episode, and later whenever somebody else went for it in the last one. NOISY(0.2,NS) follows its rule, but at every step
takes any legal action with that probability. KEEP(0.5) is NS with that probability, else NH, and stays so for all
episodes of a team: a stranger who can be known.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from marlab.hunt.players.seats import Kind, Role, parse_role
from marlab.lab.errors import UserError

_RECIPROCITY = re.compile(r"(GRIM|TFT)(?:\((\d+)\))?")


@dataclass(frozen=True)
class Reciprocity:
    """How a reciprocator decides between stag and hare."""

    rule: Literal["GRIM", "TFT"]
    strikes: int = 1
    """GRIM: how often it must be let down."""

    def __str__(self) -> str:
        return f"GRIM({self.strikes})" if self.rule == "GRIM" else "TFT"


def parse_reciprocity(text: str) -> Reciprocity | None:
    """GRIM, GRIM(2) or TFT; None for any other word."""
    match = _RECIPROCITY.fullmatch(text.strip())
    if match is None:
        return None
    strikes = int(match.group(2) or 1)
    if match.group(1) == "TFT":
        if match.group(2):
            raise UserError(f"'{text}' gives TFT a value it does not take.")
        return Reciprocity("TFT")
    if strikes < 1:
        raise UserError(f"'{text}' has {strikes} strikes, expected 1 or more.")
    return Reciprocity("GRIM", strikes)


_NOISY = re.compile(r"NOISY\(([0-9.]+),(.+)\)")
_KEEP = re.compile(r"KEEP(?:\(([0-9.]+)\))?")


@dataclass(frozen=True)
class Noisy:
    """A rule with noise."""

    share: float
    """Probability of any legal action instead, at every step."""
    rule: Role

    def __str__(self) -> str:
        return f"NOISY({self.share:g},{self.rule})"


@dataclass(frozen=True)
class Keep:
    """NS or NH, drawn once for all episodes."""

    share: float = 0.5
    """Probability of NS."""

    def __str__(self) -> str:
        return f"KEEP({self.share:g})"


Character = Role | Reciprocity | Noisy | Keep
"""Anybody who plays by a rule, with or without a memory."""


def parse_character(text: str) -> Character:
    """A player from its name: NS, SWITCH(4), GRIM(2), TFT, NOISY(0.2,NS), KEEP(0.5), ..."""
    word = text.strip()
    reciprocity = parse_reciprocity(word)
    if reciprocity is not None:
        return reciprocity
    noisy, keep = _NOISY.fullmatch(word), _KEEP.fullmatch(word)
    if noisy is not None:
        rule = parse_role(noisy.group(2))
        if rule.kind in (Kind.MIX, Kind.SHY, Kind.RAND, Kind.ND):
            raise UserError(f"'{text}' is noise on {rule}, expected a rule that pursues one goal, such as NS.")
        return Noisy(_share(text, noisy.group(1)), rule)
    if keep is not None:
        return Keep(_share(text, keep.group(1) or "0.5"))
    return parse_role(word)


def _share(text: str, number: str) -> float:
    try:
        share = float(number)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UserError(f"'{text}' has the probability {number}, expected a value from 0 to 1.")
    return share
