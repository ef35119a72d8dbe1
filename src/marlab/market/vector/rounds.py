"""The negotiations of a day: alternating offers in every thread at once, twenty rounds, signing at once.

A round is two half-rounds: first all callers move, then all responders. A move is one of accept, offer and end, for
every thread that still runs. What ends a negotiation without a contract: `END`, an offer outside of the ranges,
accepting where nothing was offered, and the end of the twentieth round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.market.logs.worldlog import ACCEPT, END, REJECT

OFFER = REJECT
"""An own offer rejects the one on the table."""
ROUNDS = 20
HALVES = 2 * ROUNDS

__all__ = ["ACCEPT", "END", "HALVES", "OFFER", "ROUNDS", "Moves", "Ranges", "Threads", "move", "open_threads"]


class Moves(NamedTuple):
    """One move for every thread [B, P, C, R], by whoever's turn it is; the terms matter with OFFER only."""

    op: Tensor  # ACCEPT, OFFER or END
    units: Tensor
    price: Tensor  # of a unit
    ahead: Tensor  # delivery, in days from today


class Ranges(NamedTuple):
    """What may be offered today; all least quantities are 1, all deliveries are from today on."""

    price_low: Tensor  # [B, P, 1, 1]
    price_high: Tensor  # [B, P, 1, 1]
    ahead_max: Tensor  # [B, 1, 1, 1]
    units_max: Tensor  # [B, 1, 1, 1]


@dataclass
class Threads:
    """All negotiations of today, [B, P, C, R] each."""

    running: Tensor  # bool
    units: Tensor  # the offer on the table; 0: none yet
    price: Tensor
    ahead: Tensor
    agreed_units: Tensor  # today's contract; 0: none
    agreed_price: Tensor
    agreed_ahead: Tensor
    agreed_half: Tensor  # when it was signed
    ended_half: Tensor  # when it ended; HALVES: it ran out of time
    fresh: Tensor  # bool: signed, not in the books yet


def open_threads(running: Tensor) -> Threads:
    """The morning: nothing offered, nothing signed."""
    none = torch.zeros(running.shape, dtype=torch.int32, device=running.device)
    table = (none.clone(), none.clone(), none.clone())
    agreed = (none.clone(), none.clone(), none.clone(), none.clone())
    return Threads(running, *table, *agreed, torch.full_like(none, HALVES), torch.zeros_like(running))


def move(threads: Threads, moves: Moves, ranges: Ranges, half: int) -> None:
    """Everybody whose turn it is moves; changes `threads` in place."""
    op, units, price, ahead = moves
    accepts = threads.running & (op == ACCEPT) & (threads.units > 0)
    fits = (op == OFFER) & (units >= 1) & (units <= ranges.units_max) & (ahead >= 0) & (ahead <= ranges.ahead_max)
    offers = threads.running & fits & (price >= ranges.price_low) & (price <= ranges.price_high)
    ended = threads.running ^ offers
    threads.agreed_units = torch.where(accepts, threads.units, threads.agreed_units)
    threads.agreed_price = torch.where(accepts, threads.price, threads.agreed_price)
    threads.agreed_ahead = torch.where(accepts, threads.ahead, threads.agreed_ahead)
    threads.agreed_half.masked_fill_(accepts, half)
    threads.ended_half.masked_fill_(ended, half)
    threads.fresh |= accepts
    threads.units = torch.where(offers, units, threads.units)
    threads.price = torch.where(offers, price, threads.price)
    threads.ahead = torch.where(offers, ahead, threads.ahead)
    threads.running = offers
