"""What a factory remembers of its partners, as arrays of a fixed size, and how a day changes it.

Every field of `Records` has the shape [..., P] (partners of one side), or a ring of the latest entries behind it.
The functions return new records and leave the given ones alone; `there` [..., P] says whom they concern.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from marlab.market.logs.daystate import Array
from marlab.market.rules.arrays import namespace
from marlab.market.rules.l1 import Action, Bools

PARTNER_SIZE = 10
LATEST = 5
"""Negotiations whose length is remembered."""
HEARD = 160
"""Offers of a partner that are remembered."""
PATIENT_ROUND = 3
"""An agreement from this round on shows patience; an earlier one tells nothing about it."""
PATIENT_MEAN = 10.0
RECENT_DAYS = 10
FIRST_ROUNDS = 4
"""Whoever is still there after these rounds leaves less often."""
RARELY = 0.03
"""Whoever leaves in a smaller share of later rounds stays."""


class Records(NamedTuple):
    """Partners on one side of the market: each [..., P], rings [..., P, size]."""

    negotiations: Array
    agreements: Array
    at_highest: Array  # agreements at the highest price of the issue
    at_lowest: Array
    patient_highest: Array  # the same, of agreements in round 3 or later
    patient_lowest: Array
    largest_lot: Array
    last_lot: Array
    units: Array
    failures_in_a_row: Array
    lasted: Array  # [..., P, 5] rounds of recent negotiations, entry `negotiations` modulo 5 is the next
    patience: Array  # [..., P, 5] the same of those that tell something about patience
    patience_count: Array  # how many there were
    recent_units: Array  # [..., P, 10] units agreed by day modulo 10
    recent_day: Array  # [..., P, 10] the day that an entry belongs to, -1000 before there was one
    heard_quantity: Array  # [..., P, 160] its offers: units,
    heard_position: Array  # the price's position in its issue (0 lowest, 1 highest)
    heard_ahead: Array  # and days to delivery
    heard_count: Array  # how many there were; entry `heard_count` modulo 160 is the next
    offers: Array  # mine
    taken: Array  # of mine
    taken_units: Array
    left: Array  # negotiations that it ended instead of answering
    late_offers: Array  # mine after the first rounds
    late_left: Array
    cash: Array  # [..., P, 2] in the last two public reports, nan before there were any

    def take(self, index: Any) -> Records:
        """Some partners: `index` picks along the leading axes."""
        return Records(*(field[index] for field in self))


RINGS = {
    "lasted": LATEST, "patience": LATEST, "recent_units": RECENT_DAYS, "recent_day": RECENT_DAYS,
    "heard_quantity": HEARD, "heard_position": HEARD, "heard_ahead": HEARD, "cash": 2,
}  # fmt: skip
"""Fields with more than one number per partner."""
FIRST = {"recent_day": -1000.0, "cash": float("nan")}
"""What fields hold before anything is known, where that is not 0."""


def empty(shape: tuple[int, ...], like: Array | None = None) -> Records:
    """Strangers: `shape` is [..., P], `like` an array of the wanted kind (default: numpy)."""
    xp = namespace(like)

    def field(name: str) -> Array:
        return xp.zeros((*shape, RINGS[name]) if name in RINGS else shape, like) + FIRST.get(name, 0.0)

    return Records(*(field(name) for name in Records._fields))


def condensed(records: Records) -> Records:
    """The same with the sum in place of each ring of which a negotiation asks for the sum only; for quick reading.

    `units_lately`, `features` and `prospects.prospects` need the whole ones.
    """
    return records._replace(**{name: getattr(records, name).sum(-1)[..., None] for name in RINGS})


def after_negotiations(
    records: Records, there: Bools, day: Array | float, rounds: Array, quantity: Array, price: Array,
    price_min: Array, price_max: Array,
) -> Records:  # fmt: skip
    """Add a day's negotiations that have ended, at most one per partner: each [..., P]; quantity 0 = no agreement."""
    xp = namespace(records.negotiations)
    agreed = there & (quantity > 0)
    failed, late = there & ~agreed, agreed & (rounds >= PATIENT_ROUND)
    highest, lowest = agreed & (price >= price_max), agreed & (price <= price_min)
    zero = xp.zeros_like(records.negotiations)
    slot = (zero + day) % RECENT_DAYS
    here = (xp.arange(RECENT_DAYS, zero) == slot[..., None]) & agreed[..., None]
    same_day = records.recent_day == (zero + day)[..., None]
    before = xp.where(same_day, records.recent_units, 0.0)
    return records._replace(
        negotiations=records.negotiations + there,
        agreements=records.agreements + agreed,
        at_highest=records.at_highest + highest,
        at_lowest=records.at_lowest + lowest,
        patient_highest=records.patient_highest + (highest & late),
        patient_lowest=records.patient_lowest + (lowest & late),
        largest_lot=xp.where(agreed, xp.maximum(records.largest_lot, quantity), records.largest_lot),
        last_lot=xp.where(agreed, quantity, records.last_lot),
        units=records.units + xp.where(agreed, quantity, zero),
        failures_in_a_row=xp.where(agreed, zero, records.failures_in_a_row + failed),
        lasted=_put(records.lasted, records.negotiations, rounds, there),
        patience=_put(records.patience, records.patience_count, rounds + 8 * late, failed | late),
        patience_count=records.patience_count + (failed | late),
        recent_units=xp.where(here, before + quantity[..., None], records.recent_units),
        recent_day=xp.where(here, (zero + day)[..., None], records.recent_day),
    )


def after_talks(records: Records, there: Bools, heard: Action, offers: Array, taken: Array, left: Bools) -> Records:
    """Add how a day's negotiations went.

    `heard`: the partner's offers, each [..., P, T], prices as positions in the issue, nan where there is none; `offers`
    [..., P]: how many I made, `taken`: units of mine that were taken, `left`: whether the partner ended it.
    """
    xp = namespace(offers)
    known = there[..., None] & ~xp.isnan(heard.quantity)
    place = records.heard_count[..., None] + xp.cumsum(1.0 * known) - 1
    place = xp.ints(xp.where(known, place % HEARD, float(HEARD)))
    rings = (records.heard_quantity, records.heard_position, records.heard_ahead)
    ring = [xp.put(old, place, xp.zero_nan(new)) for old, new in zip(rings, heard)]
    late = there & left & (offers > FIRST_ROUNDS)
    return records._replace(
        heard_quantity=ring[0],
        heard_position=ring[1],
        heard_ahead=ring[2],
        heard_count=records.heard_count + known.sum(-1),
        offers=records.offers + offers * there,
        taken=records.taken + (there & (taken > 0)),
        taken_units=records.taken_units + taken * there,
        left=records.left + (there & left),
        late_offers=records.late_offers + xp.maximum(0, offers - FIRST_ROUNDS) * there,
        late_left=records.late_left + late,
    )


def after_reports(records: Records, there: Bools, cash: Array) -> Records:
    """Add a day's public reports: each [..., P]."""
    xp = namespace(records.cash)
    newest = xp.cat([records.cash[..., 1:], cash[..., None]])
    return records._replace(cash=xp.where(there[..., None], newest, records.cash))


def _put(ring: Array, count: Array, value: Array, there: Bools) -> Array:
    """The ring with one more entry where `there`."""
    xp, size = namespace(ring), ring.shape[-1]
    here = (xp.arange(size, ring) == (count % size)[..., None]) & there[..., None]
    return xp.where(here, value[..., None], ring)


# --- what the records tell: each [..., P] -------------------------------------------------------------------------


def is_patient(records: Records) -> Bools:
    """Whether a partner usually keeps answering."""
    known = namespace(records.offers).minimum(records.patience_count, LATEST)
    return (known > 0) & (records.patience.sum(-1) >= PATIENT_MEAN * known)


def only_today(records: Records) -> Bools:
    """Whether all its offers are for the same day."""
    return (records.heard_count > 0) & (records.heard_ahead.sum(-1) == 0)


def leaving(records: Records) -> Array:
    """Chance that it ends a negotiation when it does not take an offer; one half for a stranger."""
    return (records.left + 1) / (records.offers - records.taken + 2)


def stays(records: Records) -> Bools:
    """Whether it is not known to leave after the first rounds."""
    return records.late_left <= RARELY * namespace(records.offers).maximum(10, records.late_offers)


def units_lately(records: Records, day: Array | float) -> Array:
    """Units agreed in the last ten days before `day`."""
    recent = records.recent_day >= (records.units * 0 + day - RECENT_DAYS)[..., None]
    return namespace(records.units).where(recent, records.recent_units, 0.0).sum(-1)


def features(records: Records) -> Array:
    """[..., P, 10]: how long it lasts, how often and at which prices it agrees, lots, units, failures, cash, known."""
    xp = namespace(records.units)
    agreed, met = xp.maximum(1, records.agreements), xp.maximum(1, records.negotiations)
    return xp.stack(
        [
            records.lasted.sum(-1) / xp.minimum(met, LATEST) / 20,
            records.agreements / met,
            records.at_highest / agreed,
            records.at_lowest / agreed,
            xp.minimum(records.largest_lot / 10, 3),
            xp.minimum(records.last_lot / 10, 3),
            xp.minimum(records.units / 100, 5),
            xp.minimum(records.failures_in_a_row / 10, 1),
            _cash_trend(records),
            1.0 * (records.negotiations > 0),
        ]
    )


def _cash_trend(records: Records) -> Array:
    xp = namespace(records.cash)
    before, now = records.cash[..., 0], records.cash[..., 1]
    known = ~xp.isnan(before)
    trend = (now - before) / xp.maximum(1.0, xp.abs(before))
    return xp.where(known, xp.clip(trend, -1, 1), 0.0)


def pooled(records: Records, day: Array | float) -> Array:
    """[..., 11]: the mean over all partners met, and the units a day they took lately, in tens; zeros if none was."""
    xp = namespace(records.units)
    met = 1.0 * (records.negotiations > 0)
    count = met.sum(-1)
    mean = (features(records) * met[..., None]).sum(-2) / xp.maximum(1, count)[..., None]
    days = xp.clip(count * 0 + day, 1, RECENT_DAYS)
    recent = (units_lately(records, (count * 0 + day)[..., None]) * met).sum(-1)
    return xp.cat([mean, xp.minimum(recent / days / 10, 3)[..., None]])
