"""Recorded worlds played again in the vector market: what went in is given, everything else must follow.

`replay_contracts` is given the signed contracts and follows money, stock and prices. `replay_moves` is given what every
agent answered in every round and follows the negotiations too: who agreed on what, and everything after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.market.logs.daystate import DayState
from marlab.market.logs.worldfile import read_world
from marlab.market.logs.worldlog import ACCEPT, AGREED, BROKEN, END, EXOGENOUS, NONE, REJECT, Table, WorldLog
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.configs import Configs, join, of_factories
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import HALVES, OFFER, Moves
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import Policy, Seats, moving
from marlab.market.vector.setup import buyer_calls, make_setup
from marlab.market.vector.views import Mornings

Array = NDArray[Any]
_OFFER = ("quantity", "day", "price")
OUTCOMES = ("agreed", "broken", "timed out")


@dataclass(frozen=True)
class Recorded:
    """One world of the simulator: its config (a batch of one) and what happened. F factories, T days."""

    world_id: str
    config: Configs
    sync: bool  # whether all its agents decide jointly
    tables: dict[str, Table]  # contracts, negotiations, offers, and the answers of all agents as `decisions`
    balance: Array  # [T + 1, F], the mornings and the end
    stock: Array  # [T + 1, F]
    prices: Array  # [T + 1, products]
    scores: Array  # [F]
    bankrupt: Array  # [F], at the end
    mornings: Array  # [T, F, fields], the DayState of every factory, its fields one after the other; T may be 0
    agents: tuple[str, ...]  # [F], the class of each factory's agent

    @property
    def level(self) -> Array:
        """[F], natural."""
        sizes = self.config.sizes[0]
        return np.repeat(np.arange(len(sizes)), sizes)

    @property
    def place(self) -> Array:
        """[F], within the level."""
        return np.concatenate([np.arange(size) for size in self.config.sizes[0]])

    @classmethod
    def of(cls, log: WorldLog) -> Recorded:
        """From the log of a world that was played to its end."""
        meta, evenings, given = log.meta, log.tables["evenings"], log.tables["factories"]
        where = f"World {meta['world_id']}"
        factories = len(log.agents)
        try:
            days = int(meta["n_steps"])
            if meta["days_played"] != days:
                raise UserError(f"{where} ended on day {meta['days_played']} of {days}.")
            level = np.array([int(agent["level"]) for agent in log.agents])
            by_day = {name: values.reshape(days, factories) for name, values in evenings.items()}
            prices = np.vstack([log.tables["prices"]["price"].reshape(days, -1), meta["final_prices"]])
            if (np.diff(level) < 0).any() or not 0 <= level.min() <= level.max() < factories:
                raise ValueError("its factories are not level by level")
            if (given["agent"] != np.arange(factories)).any() or (by_day["agent"] != np.arange(factories)).any():
                raise ValueError("its factories are in disorder")
            config = of_factories(
                level, given["lines"].astype(np.int64), given["cost"].astype(np.int64), given["balance"],
                by_day["storage"].T, by_day["shortfall"].T, prices[0].astype(np.int64),
                np.stack([by_day[name].T for name in EXOGENOUS]).astype(np.int64), where,
            )  # fmt: skip
            tables = {name: log.tables[name] for name in ("contracts", "negotiations", "offers")}
            return cls(
                meta["world_id"], config, bool(meta["sync"]), {**tables, "decisions": answers_of(log)},
                np.vstack([given["balance"], by_day["balance"]]),
                np.vstack([np.zeros(factories), by_day["stock"]]), prices,
                np.array([float(agent["score"]) for agent in log.agents]),
                np.array([bool(agent["bankrupt"]) for agent in log.agents]), _mornings_of(log, days),
                tuple(agent["type"] for agent in log.agents),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise UserError(f"{where} does not hold what a replay needs: {error}.") from None


def _mornings_of(log: WorldLog, days: int) -> Array:
    """[T, F, fields] every DayState with its fields one after the other, schedules as far as deliveries reach; empty
    unless everybody's mornings were recorded."""
    if not all(agent["tracked"] for agent in log.agents):
        return np.zeros((0, 0, 0))
    states = [log.agent(f, int(log.meta["league_horizon"])).days for f in range(len(log.agents))]
    return np.stack([np.concatenate([v.reshape(days, -1) for v in state], 1) for state in states], 1)


def answers_of(log: WorldLog) -> Table:
    """Every answer of every agent: recorded ones of tracked agents; those of others follow from offers and outcomes."""
    said, talks, offers = (log.tables[name] for name in ("decisions", "negotiations", "offers"))
    tracked = np.array([agent["tracked"] for agent in log.agents])
    if tracked.all():
        return said
    last = np.full(len(talks["day"]), NONE)
    last[offers["negotiation"]] = np.arange(len(offers["by"]))  # offers are in order: the latest one stays
    ended = np.flatnonzero((last != NONE) & np.isin(talks["outcome"], (AGREED, BROKEN)))
    final = {name: values[last[ended]] for name, values in offers.items()}
    other = np.where(final["by"] == talks["seller"][ended], talks["buyer"][ended], talks["seller"][ended])
    replies = final["by"] != talks["caller"][ended]  # then the answer is the caller's, in the next round
    op = np.where(talks["outcome"][ended] == AGREED, ACCEPT, END)
    answers = {
        "agent": other,
        "negotiation": ended,
        "round": final["round"] + replies,
        "op": op,
        **{name: np.where(op == ACCEPT, final[name], NONE) for name in _OFFER},
    }
    made = {"agent": offers["by"], "op": np.full(len(offers["by"]), REJECT)}
    made |= {name: offers[name] for name in ("negotiation", "round", *_OFFER)}
    derived = {name: np.concatenate([made[name], answers[name]]) for name in made}
    theirs = ~tracked[derived["agent"]]
    return {name: np.concatenate([said[name], derived[name][theirs]]) for name in derived}


def read(path: Path) -> Recorded:
    """A recorded world from its log."""
    return Recorded.of(read_world(path))


def recorded_files(folder: Path) -> list[Path]:
    """The logs of a folder or of a run, in the order of their names."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder, expected one with recorded worlds (.parquet).")
    return sorted(folder.glob("*.parquet")) or sorted(folder.glob("worlds/*.parquet"))


def read_folder(folder: Path) -> list[Recorded]:
    """All recorded worlds of a folder or of a run."""
    return [read(path) for path in recorded_files(folder)]


@dataclass(frozen=True)
class Replayed:
    """One world as the vector market played it: the same arrays as `Recorded`, and how its negotiations ended."""

    balance: Array
    stock: Array
    prices: Array
    scores: Array
    bankrupt: Array
    ends: Table | None = None  # with moves: outcome, rounds, units, delivery, price per recorded negotiation
    mornings: Array | None = None  # with moves: as in `Recorded`
    unanswered: int = 0  # moves after the first that were due and not recorded: such a negotiation is ended


@dataclass(frozen=True)
class _Places:
    """Where the factories and threads of one world are in the batch; levels of the batch are aligned to the end."""

    level: Array  # [F], index in the batch
    place: Array  # [F]
    levels: int

    @classmethod
    def of(cls, world: Recorded, levels: int) -> _Places:
        return cls(world.level + levels - int(world.config.n_levels[0]), world.place, levels)

    def threads(self, seller: Array, buyer: Array) -> tuple[Array, Array, Array]:
        """Market, caller and responder of pairs of factories."""
        market = self.level[seller]
        buying = np.array([buyer_calls(k, self.levels) for k in range(self.levels - 1)])[market]
        s, b = self.place[seller], self.place[buyer]
        return market, np.where(buying, b, s), np.where(buying, s, b)


def replay_contracts(worlds: list[Recorded], dtype: torch.dtype = torch.float64) -> list[Replayed]:
    """Settle the recorded contracts day by day."""
    market, places = _market(worlds, dtype)
    days: dict[int, list[Array]] = {}  # day -> rows (world, market, caller, responder, units, price, ahead, rank)
    for w, (world, where) in enumerate(zip(worlds, places)):
        table = world.tables["contracts"]
        mine = np.flatnonzero(table["negotiation"] != NONE)
        rows = {name: table[name][mine].astype(np.int64) for name in table}
        k, c, r = where.threads(rows["seller"], rows["buyer"])
        ahead = rows["delivery"] - rows["day"]
        both = np.stack([np.full_like(k, w), k, c, r, rows["quantity"], rows["price"], ahead, rows["seq"]], 1)
        for day in np.unique(rows["day"]):
            today = both[rows["day"] == day]
            today[:, -1] = np.argsort(np.argsort(today[:, -1]))  # places in the order of signing
            days.setdefault(int(day), []).append(today)
    track = _Track(market)
    for day in range(int(market.setup.n_steps.max())):
        market.open_day()
        rank = torch.zeros_like(market.threads.units)
        if day in days:
            rows_today = torch.as_tensor(np.concatenate(days[day]))
            at = tuple(rows_today[:, :4].T)
            threads = market.threads
            for values, column in (
                (threads.agreed_units, 4),
                (threads.agreed_price, 5),
                (threads.agreed_ahead, 6),
                (rank, 7),
            ):
                values[at] = rows_today[:, column].to(values.dtype)
            threads.fresh[at] = True
        market.close_day(rank)
        track.note()
    return [track.world(w, world, where) for w, (world, where) in enumerate(zip(worlds, places))]


class Witness(Protocol):
    """Somebody who looks at a replay of moves; it changes nothing."""

    def open(self, market: Market) -> None: ...
    def before(self, market: Market, moves: Moves, silent: Tensor) -> None:
        """A half-round: what everybody is about to answer; `silent` [B, P, C, R]: where nothing was recorded."""

    def close(self, market: Market) -> None: ...


def seats_of(world: Recorded, levels: int) -> tuple[Array, Array]:
    """Level (in a batch of so many levels) and place of every factory."""
    places = _Places.of(world, levels)
    return places.level, places.place


def watch_moves(
    worlds: list[Recorded], witness: Callable[[Market], Witness], dtype: torch.dtype = torch.float64
) -> None:
    """Play the recorded answers for somebody who looks."""
    market, places = _market(worlds, dtype)
    script, looks = _Script(worlds, places, market), witness(market)
    for day in range(int(market.setup.n_steps.max())):
        market.open_day()
        looks.open(market)
        for half in range(HALVES):
            moves = script.moves(day, half)
            looks.before(market, moves, script.silent)
            market.move(moves)
        looks.close(market)
        market.close_day()


def replay_moves(worlds: list[Recorded], dtype: torch.dtype = torch.float64) -> list[Replayed]:
    """Play the recorded answers, round by round, in a market that moves by its own rules."""
    market, places = _market(worlds, dtype)
    script = _Script(worlds, places, market)
    track = _Track(market)
    seats, mornings = Seats(market), Mornings(market, torch.float64)
    seen: list[Tensor] = []
    for day in range(int(market.setup.n_steps.max())):
        market.open_day()
        mornings.open(market)
        seen.append(_flat(mornings.at(market, seats.rows(market.setup.exists)), market.setup.exists))
        for half in range(HALVES):
            market.move(script.moves(day, half))
        script.note_ends(day)
        market.close_day()
        track.note()
    return [
        replace(
            track.world(w, world, where),
            ends=script.ends[w],
            unanswered=script.unanswered[w],
            mornings=_mornings(world, where, [each[w] for each in seen[: len(world.mornings)]]),
        )
        for w, (world, where) in enumerate(zip(worlds, places))
    ]


def _mornings(world: Recorded, where: _Places, seen: list[Tensor]) -> Array:
    """[T, F, fields]; as few as the file has: files that are made for fitting leave them out."""
    if not seen:
        return world.mornings
    return np.stack([each.numpy() for each in seen])[:, where.level, where.place]


def play_rule(
    worlds: list[Recorded], dtype: torch.dtype = torch.float64, make: Callable[[Market], Policy] = RuleW
) -> list[Replayed]:
    """Play the configs with rule W (or another policy that draws no random numbers) in all seats: whole worlds can be
    compared."""
    market, places = _market(worlds, dtype)
    policy = Seated(market, torch.ones_like(market.setup.lines), {1: make(market)}, None)
    track = _Track(market)
    while bool(market.playing.any()):
        play(market, policy, days=1)
        track.note()
    return [track.world(w, world, where) for w, (world, where) in enumerate(zip(worlds, places))]


def ask(worlds: list[Recorded], make: Callable[[Market], Policy], mine: Array | None = None) -> tuple[int, list[str]]:
    """Play the recorded moves and ask a policy in every half-round what it would answer in the place of those who
    answered: how many answers were compared, and those that differ, in words.

    `mine` [F], bool: whose answers are compared, by default everybody's; all worlds have the same seats then.
    """
    market, places = _market(worlds, torch.float64)
    script, policy, chosen = _Script(worlds, places, market), make(market), torch.zeros_like(market.setup.exists)
    for w, where in enumerate(places):
        there = slice(None) if mine is None else mine
        chosen[w, where.level[there], where.place[there]] = True
    seats, asked, different = Seats(market), 0, []
    for day in range(int(market.setup.n_steps.max())):
        market.open_day()
        policy.open(market)
        for half in range(HALVES):
            policy.hear(market)
            told, rows = script.moves(day, half), seats.rows(moving(market) & chosen)
            if len(rows):
                made, threads = policy.answer(market, rows)
                found, wanted = (torch.stack(v).T for v in (made, [part.reshape(-1)[threads] for part in told]))
                same = (found == wanted).all(1) | ((found[:, 0] == wanted[:, 0]) & (found[:, 0] != OFFER))
                asked += len(threads)
                for i in torch.nonzero(~same)[:, 0].tolist():
                    different.append(f"day {day} half {half}: {found[i].tolist()} instead of {wanted[i].tolist()}")
            market.move(told)
        policy.close(market)
        market.close_day()
    return asked, different


class _Track:
    """Balances, stocks and prices of every morning."""

    def __init__(self, market: Market) -> None:
        self._market = market
        self._seen: list[tuple[Tensor, Tensor, Tensor]] = []
        self.note()

    def note(self) -> None:
        market = self._market
        self._seen.append((market.balance.clone(), market.stock.clone(), market.prices.clone()))

    def world(self, w: int, world: Recorded, where: _Places) -> Replayed:
        days = int(world.config.n_steps[0]) + 1
        balance, stock, prices = (
            np.stack([seen[i][w].numpy() for seen in self._seen[:days]]) for i in range(3)
        )  # [T + 1, L, A], [T + 1, L + 1]
        at = (slice(None), where.level, where.place)
        return Replayed(
            balance[at],
            stock[at],
            prices[:, where.levels - int(world.config.n_levels[0]) :],
            self._market.scores()[w].numpy()[where.level, where.place],
            self._market.bankrupt[w].numpy()[where.level, where.place],
        )


class _Script:
    """The recorded answers of all worlds, by day and half-round."""

    def __init__(self, worlds: list[Recorded], places: list[_Places], market: Market) -> None:
        self._market = market
        self._worlds = worlds
        self.unanswered = [0] * len(worlds)
        self.silent = torch.zeros_like(market.threads.running)
        """Where nothing was recorded in the last half-round that was asked for, the first one of a day apart."""
        self.ends: list[Table] = []
        self._threads: list[tuple[Array, ...]] = []  # per world: day, market, caller, responder of its negotiations
        rows: list[Array] = []
        for w, (world, where) in enumerate(zip(worlds, places)):
            talks, said = world.tables["negotiations"], world.tables["decisions"]
            k, c, r = where.threads(talks["seller"].astype(np.int64), talks["buyer"].astype(np.int64))
            self._threads.append((talks["day"].astype(np.int64), k, c, r))
            n = said["negotiation"].astype(np.int64)
            half = 2 * said["round"].astype(np.int64) + (said["agent"] != talks["caller"][n])
            op = said["op"].astype(np.int64)
            units = np.where((op == REJECT) & fractional(world), 0, said["quantity"])
            ahead = said["day"].astype(np.int64) - talks["day"][n]
            rows.append(np.stack([
                self._threads[w][0][n], half, np.full_like(n, w), k[n], c[n], r[n], op, units, said["price"], ahead,
            ], 1))  # fmt: skip
            self.ends.append(
                {name: np.zeros(len(k), np.int64) for name in ("outcome", "rounds", "units", "delivery", "price")}
            )
        everything = np.concatenate(rows)
        everything = everything[np.lexsort((everything[:, 1], everything[:, 0]))]
        moments = everything[:, 0] * HALVES + everything[:, 1]
        self._rows = torch.as_tensor(everything)
        self._starts = np.searchsorted(moments, np.arange((int(market.setup.n_steps.max()) + 1) * HALVES + 1))

    def moves(self, day: int, half: int) -> Moves:
        """What everybody answers now; END, and counted, where nothing was recorded."""
        moment = day * HALVES + half
        rows = self._rows[self._starts[moment] : self._starts[moment + 1]]
        running = self._market.threads.running
        op = torch.full(running.shape, NONE, dtype=torch.int32)
        units, price, ahead = (torch.zeros_like(op) for _ in range(3))
        at = tuple(rows[:, 2:6].T)
        for values, column in ((op, 6), (units, 7), (price, 8), (ahead, 9)):
            values[at] = rows[:, column].to(values.dtype)
        # a first offer that was not made is no decision, and not recorded
        self.silent = running & (op == NONE) & (half > 0)
        if self.silent.any():
            for w, count in enumerate(self.silent.flatten(1).sum(1).tolist()):
                self.unanswered[w] += count
        return Moves(torch.where(op == NONE, END, op), units, price, ahead)

    def note_ends(self, day: int) -> None:
        """How today's negotiations ended."""
        threads = self._market.threads
        columns = (
            threads.agreed_units,
            threads.agreed_price,
            threads.agreed_ahead,
            threads.agreed_half,
            threads.ended_half,
        )
        values = torch.stack([column.long() for column in columns]).numpy()
        for w, (days, k, c, r) in enumerate(self._threads):
            today = np.flatnonzero(days == day)
            units, price, ahead, agreed, ended = values[:, w, k[today], c[today], r[today]]
            signed = units > 0
            last = np.where(signed, agreed, ended)
            ends = self.ends[w]
            ends["outcome"][today] = np.where(signed, AGREED, np.where(ended < HALVES, 1, 2))
            ends["rounds"][today] = np.minimum(last // 2 + 1, HALVES // 2)
            ends["units"][today], ends["price"][today] = units, price
            ends["delivery"][today] = np.where(signed, day + ahead, 0)


def fractional(world: Recorded) -> NDArray[np.bool_]:
    """Recorded offers that fit the ranges and that no negotiation ever saw: the log keeps whole numbers, they were not.

    The simulator takes an offer with a fraction for none, which ends the negotiation.
    """
    said, talks, offers = (world.tables[name] for name in ("decisions", "negotiations", "offers"))
    n = said["negotiation"]
    made = said["op"] == REJECT
    fits = made & (said["quantity"] >= talks["quantity_min"][n]) & (said["quantity"] <= talks["quantity_max"][n])
    fits &= (said["price"] >= talks["price_min"][n]) & (said["price"] <= talks["price_max"][n])
    fits &= (said["day"] >= talks["day_min"][n]) & (said["day"] <= talks["day_max"][n])
    names = ("negotiation", "round")
    seen = set(zip(offers["by"].tolist(), *(offers[name].tolist() for name in names)))
    heard = zip(said["agent"].tolist(), *(said[name].tolist() for name in names))
    return fits & ~np.fromiter((row in seen for row in heard), bool, len(n))


def _flat(states: DayState, exists: Tensor) -> Tensor:
    """[B, L, A, fields] from the states of all factories."""
    columns: list[Any] = [field.reshape(len(states), -1) for field in states]
    values = torch.cat(columns, 1)
    out = torch.zeros((*exists.shape, values.shape[1]), dtype=values.dtype)
    out[exists] = values
    return out


def _market(worlds: list[Recorded], dtype: torch.dtype) -> tuple[Market, list[_Places]]:
    market = Market(make_setup(join([world.config for world in worlds]), dtype))
    return market, [_Places.of(world, market.levels) for world in worlds]
