"""From a log to samples: what L2, L3 and L4 would have seen at each moment, and what the expert did.

Every feature is computed by the functions that the playing agent uses, from what was known before the decision
(`known`). Goals are not known yet: samples leave here with goals of zero, `with_goals` fills them in.
Letters: D days of the log, C joint decisions ("calls"), M decisions in single negotiations, H + 1 days of a plan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marlab.market.logs.daystate import Array, DayState
from marlab.market.logs.worldlog import ACCEPT, AgentLog
from marlab.market.rules import features, goals, l1
from marlab.market.rules.executor import HeuristicL4Coordinator
from marlab.market.rules.goals import GOAL_SIZE
from marlab.market.rules.l1 import Action, Caps, Issue
from marlab.market.rules.offers import Offers, as_trades, offer_slots
from marlab.market.samples import known as knowledge
from marlab.market.samples.dataset import LogInfo, Samples, schema
from marlab.market.samples.known import Deals, History, Known, LogDecisions, Signed
from marlab.market.samples.options import SampleOptions
from marlab.market.samples.reward import rewards

MAX_SHIFT = 2
"""An expert's day that L1 forbids becomes the nearest allowed one; further away than this it is no label."""
COMPUTED = 1
"""Where a baseline comes from; 0 stands for one that was recorded."""


def extract(log: AgentLog, options: SampleOptions, info: LogInfo | None = None) -> Samples:
    """All samples of one log, with goals of zero."""
    if log.days.horizon != options.features.horizon:
        raise ValueError(f"the log looks {log.days.horizon} days ahead, the options {options.features.horizon}")
    info = info or LogInfo(log.world_id, log.agent_id, log.agent_type, log.full_type, "")
    decisions, deals = knowledge.decisions_of(log), knowledge.deals_of(log)
    history = knowledge.history_of(decisions)
    known = Known(log, decisions, history)
    extra, partner = np.zeros((len(log.days), 0)), np.zeros((len(decisions.day), 0))
    if options.features.extra:
        extra, partner = knowledge.morning_features(log, decisions)
    tables: dict[str, dict[str, Any]] = {
        "macro": _macro(log, options, deals, known) | {"extra": extra},
        "calls": _calls(decisions),
        "micro": _micro(log, options, decisions, history, deals, known) | {"partner": partner},
        "offers": {"row": _offer_rows(log, decisions, history)},
    }
    cast = {
        table: {name: np.asarray(tables[table][name]).astype(column.kind) for name, column in columns.items()}
        for table, columns in schema(options.sizes).items()
    }
    return _teach(Samples(options.sizes, [info], cast))


# --- L2 -----------------------------------------------------------------------------------------------------------


def _macro(log: AgentLog, options: SampleOptions, deals: Deals, known: Known) -> dict[str, Any]:
    days = log.days
    rows = np.arange(len(days))
    whole_day = known.of_whole_day(rows)
    seen = whole_day if options.features.offers == "same_day_full" else known.of_yesterday()
    signed = goals.Trades(
        deals.day, deals.selling.astype(np.intp), deals.delta, deals.quantity, deals.price, np.ones(len(deals.day))
    )
    return {
        "log": np.zeros(len(days)),
        "day": days.day,
        "x_static": features.static_features(days, options.features),
        "x_temporal": features.temporal_features(days, offer_slots(days, seen), options.features),
        "x_role": goals.roles(days),
        "units": features.stock_norm(days),
        "needs": np.maximum(0, np.stack([days.needed_supplies, days.needed_sales], -1)),
        "label": goals.goal_labels(days, signed, as_trades(whole_day, len(days))),
        "goal": np.zeros((len(days), GOAL_SIZE)),
        "reward": rewards(log),
    }


# --- L3 -----------------------------------------------------------------------------------------------------------


def _calls(decisions: LogDecisions) -> dict[str, Any]:
    n = len(decisions.first)
    return {
        "macro": decisions.call_day,
        "first": decisions.first,
        "threads": np.bincount(decisions.call, minlength=n),
        "seq": decisions.call_seq,
        "buying": np.bincount(decisions.call[~decisions.selling], minlength=n),
    }


class L1View(NamedTuple):
    """What L1 says to one side at one round of a call; many decisions share one."""

    state: DayState  # [U] the morning with the deals signed before the call
    cap: Array  # [U, H+1] of the side
    budget: Array  # [U]
    issue: Issue
    base: Action
    mask: Array  # [U, H+1] as in play: -inf also outside of the issue
    signed: Array  # [U, H+1] units signed today on the side before the call
    x_temporal: Array  # [C, H+1, channels]
    call: NDArray[np.int64]  # [U]
    of: NDArray[np.int64]  # [M] the situation of each decision


def _situations(
    log: AgentLog, options: SampleOptions, decisions: LogDecisions, signed: Signed, offers: Offers
) -> L1View:
    state = log.days.take(decisions.call_day).with_signed(*signed)  # [C]
    x_temporal = features.temporal_features(state, offer_slots(state, offers), options.features)
    caps = l1.caps(state, options.l1)
    rounds = decisions.table["round"].astype(np.int64)
    span = int(rounds.max(initial=0)) + 1
    key = (decisions.call * 2 + decisions.selling) * span + rounds
    distinct, of = np.unique(key, return_inverse=True)
    call, selling, rounds = distinct // span // 2, distinct // span % 2 == 1, distinct % span
    state = state.take(call)
    caps = Caps(*(values[call] for values in caps))
    base = l1.baseline(state, caps, selling, options.l1, rounds)
    issue = l1.issue_of(state, selling)
    cap = caps.of(selling)
    today = np.where(selling[:, None], signed.q_out[call], signed.q_in[call])
    return L1View(state, cap, caps.budget, issue, base, l1.time_mask(cap, issue), today, x_temporal, call, of)


def _micro(
    log: AgentLog, options: SampleOptions, decisions: LogDecisions, history: History, deals: Deals, known: Known
) -> dict[str, Any]:
    leaky = options.features.offers == "same_day_full"
    offers = known.of_whole_day(decisions.call_day) if leaky else known.before_calls(decisions)
    signed = knowledge.signed_before(decisions, deals, log.days.horizon)
    at = _situations(log, options, decisions, signed, offers)
    table, of = decisions.table, at.of
    base = Action(*(values[of] for values in at.base))
    is_open = l1.open_mask(at.mask, at.base.day)[of] == 0
    expert = _expert(log, decisions)
    label, shift = nearest_open(
        is_open, np.where(decisions.answers, np.clip(expert.day, 0, log.days.horizon), base.day)
    )
    issue = Issue(*(v[of] for v in at.issue))
    fits = l1.can_accept(expert, at.cap[of], at.budget[of], decisions.selling, issue)
    acceptable = l1.can_accept(_received(log, decisions), at.cap[of], at.budget[of], decisions.selling, issue)
    residual = np.stack([expert.quantity - base.quantity, expert.price - base.price], -1)
    return {
        "macro": decisions.day, "call": decisions.call, "history": history.start, "history_length": history.length,
        **{name: table[name] for name in ("negotiation", "seq", "round", "relative_time", "op")},
        "role": decisions.selling, "baseline": np.stack(base, -1),
        "residual": np.where(decisions.answers[:, None], residual, 0), "time_label": label,
        "time_shift": np.where(decisions.answers, shift, 0),
        "time_valid": decisions.answers & (shift <= MAX_SHIFT), "time_open": is_open,
        **_goal_free(log, decisions, history, at, base), "alpha": np.zeros(len(of)),
        "source": np.full(len(of), COMPUTED), "acceptable": decisions.has_offer & acceptable,
        "breaks_caps": ~fits & (decisions.answers | (table["op"] == ACCEPT)),
        "masked": np.all(at.mask < 0, axis=-1)[of], "outcome": log.negotiations["outcome"][table["negotiation"]],
    }  # fmt: skip


def _expert(log: AgentLog, decisions: LogDecisions) -> Action:
    """[M] what the expert offered or accepted; nan where it ended the negotiation."""
    table, today = decisions.table, log.days.day[decisions.day]
    accepts = table["op"] == ACCEPT
    there = decisions.answers | accepts

    def chosen(name: str) -> Array:
        return np.where(there, np.where(accepts, table[f"received_{name}"], table[name]), np.nan).astype(np.float64)

    return Action(chosen("quantity"), chosen("price"), chosen("day") - today)


def _received(log: AgentLog, decisions: LogDecisions) -> Action:
    """[M] the partner's offer on the table; meaningless where there is none."""
    table = decisions.table
    quantity, price, day = (table[f"received_{name}"].astype(np.float64) for name in ("quantity", "price", "day"))
    return Action(quantity, price, day - log.days.day[decisions.day])


def nearest_open(is_open: NDArray[np.bool_], day: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The open slot [M] nearest to `day` (the earlier of two) in [M, H+1], and how many days away it is."""
    label = np.asarray(day).astype(np.int64)
    closed = np.flatnonzero(~np.take_along_axis(is_open, label[:, None], 1)[:, 0]) if len(label) else label
    away = np.abs(np.arange(is_open.shape[1]) - label[closed, None])
    nearest = label.copy()
    nearest[closed] = np.where(is_open[closed], away, is_open.shape[1]).argmin(1)
    return nearest, np.abs(nearest - label)


def _goal_free(log: AgentLog, decisions: LogDecisions, history: History, at: L1View, base: Action) -> dict[str, Any]:
    """Features of threads and of L3, for a goal of zeros; units signed in the bucket of the thread's day."""
    of = at.of
    today = log.days.day[decisions.day]
    latest = Action(*(_entries(c, history.latest) for c in (history.quantity, history.price, history.delivery)))
    latest = latest._replace(day=latest.day - today)
    zero, relative_time = np.zeros(GOAL_SIZE), decisions.table["relative_time"]
    day = features.latest_day(latest.day, base.day, log.days.horizon)
    slots = log.days.horizon + 1
    row = at.x_temporal[decisions.call, day.astype(np.intp)]  # [M, channels]; all that a thread needs of X_temporal
    state = at.state.take(of)
    offer_day = np.where(decisions.has_offer, decisions.table["received_day"] - today, np.nan)
    negotiations = features.Negotiations(
        decisions.selling, base, at.cap[of], at.mask[of], latest, history.length.astype(float), relative_time
    )
    thread = features.thread_features(state, _same(row, slots), zero, negotiations)
    aux = features.micro_aux(
        state, at.budget[of], decisions.selling, Issue(*(v[of] for v in at.issue)), relative_time, offer_day, base.day,
        zero, at.signed[of],
    )  # fmt: skip
    # with a goal of zero the last number is minus what was signed
    return {"thread": thread, "thread_day": day, "aux": aux, "signed": -aux[:, -1] * features.QUANTITY}


def _entries(column: Array, at: NDArray[np.int64]) -> Array:
    """[M] entries of a column, nan where the place is -1."""
    return np.append(column, np.nan)[at]


def _same(values: Array, slots: int) -> Array:
    """[M, slots, ...] from [M, ...], every slot the same, without copies."""
    return np.broadcast_to(values[:, None], (len(values), slots, *values.shape[1:]))


def _offer_rows(log: AgentLog, decisions: LogDecisions, history: History) -> Array:
    """[R, 4] rows of histories as L3 sees them."""
    delta = history.delivery - log.days.day[decisions.day[history.decision]]
    return features.history_rows(history.quantity, history.price, delta, history.mine, log.days.horizon)


# --- goals and L4 -------------------------------------------------------------------------------------------------


def with_goals(samples: Samples, goal: NDArray[np.floating[Any]]) -> Samples:
    """The samples with a goal [macro, 16] for each day, and all that follows from it for L3 and L4.

    The features are made by the same functions as in play. They look at schedules only in the slot of the thread's
    day, and that slot is what samples keep, so it stands for all of them here.
    """
    if goal.shape != samples.macro["goal"].shape:
        raise ValueError(f"{goal.shape} goals for {samples.rows('macro')} days")
    micro = dict(samples.micro)
    goal = goal.astype(np.float32)
    mine = goal[micro["macro"]].astype(np.float64)
    state = _stand_in(samples.macro["units"][micro["macro"]], samples.sizes.horizon)
    old, selling, base = micro["thread"].astype(np.float64), micro["role"] == 1, Action(*micro["baseline"].T)
    slots, units = samples.sizes.horizon + 1, state.n_lines
    cap, mask = _same(old[:, 3] * units, slots), _same(np.where(old[:, 2] > 0, 0.0, -np.inf), slots)
    negotiations = features.Negotiations(
        selling, base, cap, mask, _latest(samples), micro["history_length"], old[:, 11]
    )
    micro["thread"] = features.thread_features(state, _same(old[:, 14:], slots), mine, negotiations).astype(np.float32)
    offer_day = np.where(micro["aux"][:, 5] > 0, micro["thread_day"], np.nan)
    day = features.latest_day(offer_day, base.day, samples.sizes.horizon)
    signed = np.where(np.arange(slots) == day[:, None], micro["signed"][:, None], 0.0)
    nothing = np.zeros(1)
    aux = features.micro_aux(state, nothing, selling, Issue(*[nothing] * 6), nothing, offer_day, base.day, mine, signed)
    micro["aux"] = micro["aux"].copy()
    micro["aux"][:, 6] = aux[:, 6]
    tables = {**samples.tables, "macro": {**samples.macro, "goal": goal}, "micro": micro}
    return _teach(Samples(samples.sizes, samples.logs, tables))


def _stand_in(units: NDArray[Any], horizon: int) -> DayState:
    """States [M] of which only the normaliser of quantities and the horizon are known."""
    unknown = dict.fromkeys(DayState._fields, np.array(np.nan))
    made = {"n_lines": units.astype(np.float64), "n_steps": np.ones(len(units)), "q_in": np.full(horizon + 1, np.nan)}
    return DayState(**{**unknown, **made})


def _latest(samples: Samples) -> Action:
    """[M] the last offer before each decision, nan where there is none."""
    length = samples.micro["history_length"]
    rows = samples.tables["offers"]["row"].astype(np.float64)
    at = np.where(length > 0, samples.micro["history"] + length - 1, -1)
    return Action(*(_entries(rows[:, column], at) for column in range(3)))


def _teach(samples: Samples) -> Samples:
    """The samples with the weights that the heuristic coordinator gives to the threads of each call."""
    micro, calls = dict(samples.micro), samples.calls
    alpha = np.zeros(samples.rows("micro"), np.float32)
    teacher = HeuristicL4Coordinator()
    for threads in np.unique(calls["threads"]):  # calls with equally many threads at once
        rows = calls["first"][calls["threads"] == threads][:, None] + np.arange(threads)  # [n, K]
        day, priority = (values.astype(np.float64) for values in (micro["thread_day"][rows], micro["thread"][rows, 0]))
        alpha[rows] = teacher.weights(day, priority)  # in double precision, as in play
    return Samples(samples.sizes, samples.logs, {**samples.tables, "micro": {**micro, "alpha": alpha}})


def global_features(samples: Samples, calls: NDArray[np.integer] | slice = slice(None)) -> NDArray[np.float32]:
    """global_feat [n, 30] of some calls."""
    chosen = {name: samples.calls[name][calls] for name in ("macro", "threads", "buying")}
    macro = samples.macro
    return features.global_features(
        macro["goal"][chosen["macro"]],
        macro["x_static"][chosen["macro"]],
        chosen["buying"],
        chosen["threads"] - chosen["buying"],
    ).astype(np.float32)
