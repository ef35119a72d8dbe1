"""The further features of a log: what the factory knew about its partners each morning (option `extra`)."""

from __future__ import annotations

import numpy as np

from marlab.market.logs.daystate import Array
from marlab.market.logs.worldlog import AgentLog
from marlab.market.rules.partners import EXTRA_SIZE, PARTNER_SIZE, books_of, extra_features
from marlab.market.samples.known import Decisions

__all__ = ["EXTRA_SIZE", "PARTNER_SIZE", "morning_features"]


def morning_features(log: AgentLog, decisions: Decisions) -> tuple[Array, Array]:
    """extra [D, 55] of each morning, and [M, 10] of the partner of each decision."""
    table, number = log.negotiations, decisions.table["negotiation"].astype(np.int64)
    partner = np.where(decisions.selling, table["buyer"][number], table["seller"][number]).astype(np.int64)
    of_partner = np.zeros((len(partner), PARTNER_SIZE))
    pooled = []
    ends = np.searchsorted(decisions.day, np.arange(len(log.days) + 1))  # decisions are in the order of days
    for day, book in enumerate(books_of(log)):  # one growing book: it must be read before the next morning
        today = int(log.days.day[day])
        pooled.append(np.concatenate([book.pooled(True, today), book.pooled(False, today)]))
        rows = slice(ends[day], ends[day + 1])
        pairs, of = np.unique(partner[rows] * 2 + decisions.selling[rows], return_inverse=True)
        if len(pairs):
            of_partner[rows] = np.stack([book.features(int(p) // 2, bool(p % 2)) for p in pairs])[of]
    return extra_features(log.days, np.stack(pooled)), of_partner
