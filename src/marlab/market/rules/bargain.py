"""How rule W sells: pure functions of what is known about each partner.

Demand limits sales, so a negotiation is worth what it can still bring. From the offers that a partner made so far, how
often it took mine and how often it left, `worth_waiting` computes the money that going on is worth; an offer that
brings at least as much is taken, and none is made that brings less.

Letters: N factories, K selling threads of each, S = H + 1 days of a plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from marlab.lab.errors import UserError
from marlab.market.logs.daystate import Array
from marlab.market.rules import records
from marlab.market.rules.arrays import namespace
from marlab.market.rules.habits import PLACE, Habits
from marlab.market.rules.l1 import Bools
from marlab.market.rules.offers import LARGEST_LOT, ROUNDS
from marlab.market.rules.plan import FULLEST, NEAREST, NEXT, TODAY, Ints, Threads
from marlab.market.rules.prospects import Fitting, prospects

LAST_ROUND = ROUNDS - 1
"""After an answer in this round a negotiation is over."""
LARGE_LOT = 10.0

SALE_REASONS = (
    "takes the highest price",
    "takes only the lowest price",
    "keeps bargaining",
    "bargains to the end",
    "first days",
    "leaves early",
)


_USUAL = Habits()


@dataclass(frozen=True)
class RuleOptions:
    """How rule W sells: `LitaAgentHRL(mode="heuristic", rule={"opening_days": 5})`."""

    opening_days: int = 3
    """On these first days everybody still fills his stock, and lots can be larger."""
    opening_lots: tuple[int, ...] = (7, 5, 3)
    """Lots by round for partners who leave early, on the first days."""
    opening_prices: tuple[float, ...] = (1.0, 0.5, 0.0)
    """Prices of these lots by round, as positions between the lowest (0) and the highest (1)."""
    small_lot: int = 3
    """First lot for partners who leave early, after the first days; one unit less in every further round."""
    small_price: float = 0.0
    """Price of these lots, as a position."""
    hold: int = 18
    """Until this round, large requests for today at a low price are not taken of partners who stay: they pay more
    later. 0: never wait for that."""
    loss: float = 0.02
    """Least chance per round that a partner finds what it needs elsewhere, however long it has bargained before."""
    fill_first: bool = True
    """A middle factory sells nothing for today and tomorrow until its stock is full."""
    wait: bool = True
    """Weigh requests against what waiting may bring. False: take whatever brings money and fits."""
    price: Literal["free", "lowest", "highest"] = "free"
    """Price of all own offers; free: whatever suits the partner."""
    lot: int = 0
    """Units of all own offers; 0: whatever suits the partner."""

    @property
    def habits(self) -> Habits:
        """The usual ones."""
        return _USUAL

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing."""
        for name in ("opening_lots", "small_lot"):
            lots = getattr(self, name)
            each = lots if isinstance(lots, tuple) else (lots,)
            if not each or not all(1 <= lot <= LARGEST_LOT for lot in each):
                raise UserError(f"rule.{name} is {lots}; lots are 1 to {LARGEST_LOT} units.")
        for name in ("opening_prices", "small_price"):
            prices = getattr(self, name)
            each = prices if isinstance(prices, tuple) else (prices,)
            if not each or not all(0 <= price <= 1 for price in each):
                raise UserError(f"rule.{name} is {prices}; prices are positions from 0 (lowest) to 1 (highest).")
        if self.opening_days < 0 or self.hold < 0:
            raise UserError("rule.opening_days and rule.hold must be 0 or more.")
        if not 0 <= self.loss < 1:
            raise UserError(f"rule.loss is {self.loss}; it must be at least 0 and less than 1.")
        if self.price not in ("free", "lowest", "highest"):
            raise UserError(f"rule.price is {self.price!r}; it must be free, lowest or highest.")
        if not 0 <= self.lot <= LARGEST_LOT:
            raise UserError(f"rule.lot is {self.lot}; it must be 0 (free) or a lot of 1 to {LARGEST_LOT} units.")


class ManyOptions(NamedTuple):
    """Options that differ from factory to factory: each [N, 1], made by `many_options`."""

    opening_days: Array
    opening_lots: Array  # [N, 1, R] by round
    opening_prices: Array  # [N, 1, R]
    small_lot: Array
    small_price: Array
    hold: Array  # 0 without waiting
    loss: Array
    fill_first: Bools
    wait: Bools
    price: Array  # position of the price of all own offers, nan: free
    lot: Array
    habits: Habits = _USUAL

    def take(self, rows: Any) -> ManyOptions:
        """Those of some factories."""
        own = self.habits.values
        habits = self.habits if own is None else Habits(own[rows])
        return ManyOptions(*(values[rows] for values in self[:-1]))._replace(habits=habits)


def many_options(options: Sequence[RuleOptions], like: Array) -> ManyOptions:
    """Options [N, 1] of N factories, arrays of the kind and the number type of `like`."""
    xp = namespace(like)
    longest = max(len(values) for each in options for values in (each.opening_lots, each.opening_prices))

    def column(values: Iterable[float]) -> Array:
        return xp.asarray([[float(value)] for value in values], like)

    def by_round(values: Iterable[tuple[float, ...]]) -> Array:
        rows = [[[*map(float, value), *[float(value[-1])] * (longest - len(value))]] for value in values]
        return xp.asarray(rows, like)

    positions = {"free": math.nan, "lowest": 0.0, "highest": 1.0}
    return ManyOptions(
        column(each.opening_days for each in options), by_round(each.opening_lots for each in options),
        by_round(each.opening_prices for each in options), column(each.small_lot for each in options),
        column(each.small_price for each in options), column(each.hold * each.wait for each in options),
        column(each.loss for each in options), column(each.fill_first for each in options) > 0,
        column(each.wait for each in options) > 0, column(positions[each.price] for each in options),
        column(each.lot for each in options),
    )  # fmt: skip


def learnt_options(rows: Array) -> ManyOptions:
    """Options of N factories with learnt habits [N, H], as `habits.ALL` orders them."""
    xp = namespace(rows)

    def column(name: str) -> Array:
        return rows[:, PLACE[name], None]

    lots, prices = (
        rows[:, None, PLACE[f"opening_{part}_1"] : PLACE[f"opening_{part}_3"] + 1] for part in ("lot", "price")
    )
    zero = xp.zeros_like(column("hold"))
    return ManyOptions(
        column("opening_days"), lots, prices, column("small_lot"), column("small_price"), column("hold"),
        column("loss"), zero == 0, zero == 0, zero + math.nan, zero, Habits(rows[:, None, :]),
    )  # fmt: skip


class Terms(NamedTuple):
    """What all selling threads of a factory share: each [N, 1], room [N, S]."""

    opening: Bools  # one of the first days
    lowest: Array  # bounds of the price issue
    highest: Array
    cost: Array  # of making a unit
    room: Array  # [N, S] units that can be sold, by day
    seen: Array | None = None  # [N, K, C] what habits lean on; None where they do not

    def price(self, position: Array | float) -> Array:
        """The price at a position between the lowest (0) and the highest (1)."""
        return self.lowest + position * (self.highest - self.lowest)


class Lots(NamedTuple):
    """What to offer for sale, and why: each [N, K]."""

    quantity: Array
    price: Array
    choice: Ints  # plan.TODAY, NEAREST, NEXT or FULLEST
    reason: Ints  # place in SALE_REASONS


def waiting(threads: Threads, terms: Terms, options: RuleOptions | ManyOptions) -> Array:
    """[N, K] money that the rest of each negotiation may bring; nan while too little is known."""
    xp, known = namespace(terms.cost), threads.records
    if options.wait is False:
        return xp.zeros_like(threads.round)
    before = threads.prospects
    if before is None:
        before = prospects(known, terms.lowest, terms.highest, terms.cost)
    quantity, price, ahead = threads.heard  # [N, K, T]
    there, days = ~xp.isnan(quantity), terms.room.shape[-1]
    room = xp.take(terms.room[:, None, None, :], xp.minimum(xp.zero_nan(ahead), days - 1))
    fits = there & (ahead < days) & (quantity <= room)
    today = Today(xp.where(fits, quantity * (price - terms.cost[..., None]), 0.0), xp.floats(there, terms.cost))
    count = before.all + today.there.sum(-1)
    rounds, most = xp.maximum(0, LAST_ROUND - threads.round), LAST_ROUND - threads.earliest
    taken, lot, leaving = chances(threads, terms, options)
    worth = worth_waiting(before.fitting(terms.room), today, taken, lot, rounds, leaving, most)
    worth = xp.where(count >= options.habits["few"], worth, float("nan"))
    return worth if isinstance(options, RuleOptions) else xp.where(options.wait, worth, 0.0)


class Chances(NamedTuple):
    """What may come of own offers: each [N, K]."""

    taken: Array  # chance that the partner takes mine,
    lot: Array  # and the money that this brings
    leaving: Array  # chance that it goes when it does not


def chances(threads: Threads, terms: Terms, options: RuleOptions | ManyOptions) -> Chances:
    """By what the partners did so far."""
    xp, known = namespace(terms.cost), threads.records
    offered = known.offers + threads.offered
    habits, guessed = options.habits, options.habits["taken"]
    lot = (known.taken_units + LARGE_LOT * guessed) / (known.taken + guessed)
    leaving = (known.left + 1) / (offered - known.taken + 2)
    if habits.learnt:
        leaving = xp.minimum(1.0, leaving * xp.exp(habits["leaving"]))
    price = xp.where(known.patient_highest >= known.patient_lowest, terms.highest, terms.lowest)
    return Chances(
        (known.taken + guessed) / (offered + habits["offers"]),
        xp.minimum(lot, xp.max(terms.room)[..., None]) * (price - terms.cost),
        xp.maximum(options.loss, leaving),
    )


class Today(NamedTuple):
    """What partners offered today: each [..., T]."""

    money: Array  # 0 where it does not fit
    there: Array  # 1 where there is an offer, else 0


def worth_waiting(
    before: Fitting, today: Today, taken: Array, lot: Array, rounds: Array, leaving: Array, most: int = LAST_ROUND
) -> Array:
    """Money [...] that a negotiation brings if it goes on for `rounds` more rounds and every offer is weighed.

    `before` and `today`: offers that the partner may make, all equally likely in every round; `taken`: chance that it
    takes mine instead, which brings `lot`; `leaving`: chance that it goes when it does not. No `rounds` exceed `most`.
    """
    xp = namespace(taken)
    count = xp.maximum(1, before.all + today.there.sum(-1))
    sure, going_on = taken * lot, (1 - taken) * (1 - leaving) / count
    worth = xp.zeros_like(sure)
    for done in range(min(xp.bound(rounds, most), most)):
        best = before.better(worth) + (xp.maximum(today.money, worth[..., None]) * today.there).sum(-1)
        worth = xp.where(done < rounds, sure + going_on * best, worth)
    return worth


def is_patient(threads: Threads, habits: Habits | None = None) -> Bools:
    """[N, K] still there in round 3, or known to bargain long."""
    habits = habits or _USUAL
    known = records.is_patient(threads.records) | (records.leaving(threads.records) < habits["seldom"])
    return known | (threads.round >= habits["patient_round"])


def sale(threads: Threads, terms: Terms, worth: Array, options: RuleOptions | ManyOptions) -> Lots:
    """The lots that suit the partners in this round; never smaller ones than waiting is worth."""
    xp = namespace(terms.cost)
    patient = is_patient(threads, options.habits)
    pairs = zip(_patient_sale(threads, terms, options.habits), _hasty_sale(threads, terms, options))
    lots = Lots(*(xp.where(patient, to_patient, to_hasty) for to_patient, to_hasty in pairs))
    lots = lots._replace(price=_at_one_price(lots.price, terms, options))
    if options.habits.learnt:
        worth = worth * xp.exp(options.habits["least"])
    least = xp.ceil(xp.zero_nan(worth) / xp.maximum(1.0, lots.price - terms.cost))
    quantity = xp.where(lots.quantity >= least, lots.quantity, xp.minimum(LARGE_LOT, least))
    if not isinstance(options, RuleOptions):
        quantity = xp.where(options.lot > 0, options.lot, quantity)
    elif options.lot:
        quantity = xp.full_like(quantity, float(options.lot))
    return lots._replace(quantity=quantity)


def _at_one_price(price: Array, terms: Terms, options: RuleOptions | ManyOptions) -> Array:
    """Prices [N, K], or the one that the options ask for."""
    xp = namespace(price)
    if not isinstance(options, RuleOptions):
        return xp.where(xp.isnan(options.price), price, terms.price(options.price))
    if options.price == "free":
        return price
    return xp.zeros_like(price) + (terms.lowest if options.price == "lowest" else terms.highest)


def _patient_sale(threads: Threads, terms: Terms, habits: Habits) -> Lots:
    """Large lots at the price the partner has shown to pay; to strangers at the highest, near the end at the lowest."""
    xp, known = namespace(terms.cost), threads.records
    turn = threads.round % 3
    pays_highest = known.patient_highest >= xp.maximum(1, known.patient_lowest)
    pays_lowest = ~pays_highest & (known.patient_lowest >= 2) & (known.patient_highest == 0)
    early = threads.round < habits["yield_round"]
    last = ~pays_highest & ~pays_lowest & ~early
    zero = xp.zeros_like(turn)
    low_1, low_2, last_1, last_2, large = (
        zero + habits[name] for name in ("low_lot_1", "low_lot_2", "last_lot_1", "last_lot_2", "large")
    )
    quantity = xp.where(pays_lowest & (turn == 1), low_1, xp.where(pays_lowest & (turn == 2), low_2, large))
    quantity = xp.where(last & (turn == 1), last_1, xp.where(last & (turn == 2), last_2, quantity))
    quantity = xp.clip(xp.rint(quantity + habits.leaning("lot_patient", terms.seen)), 1.0, LARGE_LOT)
    now = (pays_lowest & (turn == 2)) | (last & (turn == 1))
    low, high, first = (zero + habits[name] for name in ("price_low", "price_high", "price_early"))
    position = xp.where(pays_lowest | last, low, xp.where(pays_highest, high, first))
    price = terms.price(xp.clip(position + habits.leaning("price_patient", terms.seen), 0.0, 1.0))
    far = xp.where(pays_highest, zero + habits["day_high"], zero + habits["day_early"])
    choice = xp.where(now, TODAY, _day_choice(far + habits.leaning("day_patient", terms.seen)))
    return Lots(quantity, price, choice, xp.where(pays_highest, 0, xp.where(pays_lowest, 1, xp.where(early, 2, 3))))


def _day_choice(far: Array) -> Ints:
    """[N, K]: the fullest day, the next or the nearest one."""
    xp = namespace(far)
    return xp.where(far > 0.5, FULLEST, xp.where(far < -0.5, NEAREST, NEXT))


def _hasty_sale(threads: Threads, terms: Terms, options: RuleOptions | ManyOptions) -> Lots:
    """What somebody who leaves after one or two offers takes at once: 5 to 7 units in the first days, later 3."""
    xp, habits = namespace(terms.cost), options.habits
    lots, prices = (
        xp.asarray([float(v) for v in values], terms.cost) if isinstance(values, tuple) else values
        for values in (options.opening_lots, options.opening_prices)
    )
    lot = xp.take(lots, xp.minimum(threads.round, lots.shape[-1] - 1))
    position = xp.take(prices, xp.minimum(threads.round, prices.shape[-1] - 1))
    quantity = xp.where(terms.opening, lot, options.small_lot - habits["small_step"] * threads.round)
    quantity = xp.clip(xp.rint(quantity + habits.leaning("lot_hasty", terms.seen)), 1.0, LARGE_LOT)
    position = xp.where(terms.opening, position, xp.zeros_like(position) + options.small_price)
    price = terms.price(xp.clip(position + habits.leaning("price_hasty", terms.seen), 0.0, 1.0))
    now = ~terms.opening & records.only_today(threads.records)
    far = xp.zeros_like(price) + habits["day_hasty"] + habits.leaning("day_hasty", terms.seen)
    choice = xp.where(now, TODAY, _day_choice(far))
    return Lots(quantity, price, choice, xp.where(terms.opening & (quantity > 0), 4, 5))


def takes(threads: Threads, terms: Terms, worth: Array, options: RuleOptions | ManyOptions) -> Bools:
    """[N, K] whether to sell on the partner's terms, if there is room."""
    xp, habits = namespace(terms.cost), options.habits
    (quantity, price, ahead), round = threads.received, threads.round
    large_and_cheap = (ahead == 0) & (quantity >= habits["large_request"]) & (price < terms.price(habits["cheap"]))
    hold = (0 if options.wait is False else options.hold) + habits.leaning("hold", terms.seen)
    later = large_and_cheap & (round >= habits["hold_from"]) & (round < hold) & records.stays(threads.records)
    brings = quantity * (price - terms.cost)
    if habits.learnt:
        position = (price - terms.lowest) / xp.maximum(1.0, terms.highest - terms.lowest) - 0.5
        offer = xp.stack([position, quantity / 10 - 0.4, ahead / 10 - 0.3])
        shadow = habits["shadow"] + habits.leaning("shadow", xp.cat([terms.seen, offer]))
        brings = quantity * (price - terms.cost - shadow * (terms.highest - terms.lowest))
        worth = worth * xp.exp(habits["accept"])
    enough = brings >= worth
    good = (price >= terms.highest) & (quantity >= habits["small_request"])
    hasty = ~is_patient(threads, habits) & (~terms.opening | (round >= 1) | (quantity >= habits["opening_request"]))
    return ~later & xp.where(xp.isnan(worth), good | hasty, enough)
