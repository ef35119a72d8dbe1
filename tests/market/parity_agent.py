"""An agent that computes every feature while it plays, and remembers them for comparison with its log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from negmas.sao import ResponseType, SAOResponse
from scml.std import StdSyncAgent

from marlab.market.agent.safety import Ledger
from marlab.market.logs.daystate import DayState, stack
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import features, goals, l1
from marlab.market.rules.executor import HeuristicL3Executor, HeuristicL4Coordinator, corrected, rule_accepts
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import Action, L1Options
from marlab.market.rules.offers import OfferBook, offer_slots
from marlab.market.rules.partners import Ended, PartnerBook, extra_features, pooled_features
from marlab.market.simulator.awi import Reader, reports_of

Offer = tuple[int, int, int]
Values = dict[str, np.ndarray]
NO_OFFER = Action(*(np.array(np.nan),) * 3)


@dataclass
class Played:
    """What one agent computed: by day, and by (day, partner, round, whether an offer was on the table)."""

    states: list[DayState] = field(default_factory=list)
    mornings: list[Values] = field(default_factory=list)
    threads: dict[tuple[int, str, int, bool], Values] = field(default_factory=dict)


@dataclass
class Thread:
    """One negotiation of the day."""

    partner: str
    selling: bool
    history: list[tuple[float, float, float, bool]] = field(default_factory=list)  # quantity, price, delta, mine
    received: Offer | None = None
    round: int = 0
    relative_time: float = 0.0

    def latest(self) -> Action:
        return Action(*(np.array(v) for v in self.history[-1][:3])) if self.history else NO_OFFER

    def on_table(self, day: int) -> Action:
        if self.received is None:
            return NO_OFFER
        quantity, when, price = self.received
        return Action(*(np.array(float(v)) for v in (quantity, price, when - day)))


class ParityAgent(StdSyncAgent):
    """Plays the heuristic L1 + L3 with some randomness of its own, and keeps what it computed."""

    played: ClassVar[dict[str, Played]] = {}
    l1_options: ClassVar[L1Options] = L1Options()
    feature_options: ClassVar[FeatureOptions] = FeatureOptions(extra=True)

    def init(self) -> None:
        self.mine = self.played[self.id] = Played()
        self.reader, self.offers, self.book = Reader(), OfferBook(), PartnerBook()
        self.ended: list[Ended] = []
        self.random = np.random.default_rng(sum(map(ord, self.id)))

    def before_step(self) -> None:
        day = self.awi.current_step
        self.offers.new_day()
        for ended in self.ended:
            self.book.add(ended)
        for partner, cash in reports_of(self.awi, day - 1).items():
            self.book.add_report(partner, cash)
        self.ended.clear()
        state = self.reader.read(self.awi)
        self.ledger = Ledger(state, self.l1_options)
        self.goal = goals.heuristic_goal(state)
        self.threads: dict[str, Thread] = {}
        self.x_static = features.static_features(state, self.feature_options)
        batch = stack([state])
        slots = offer_slots(batch, self.offers.known(day))
        caps = self.ledger.caps
        sides = {
            f"{name}_{side}": value
            for side, selling in (("buy", False), ("sell", True))
            for name, value in (
                ("baseline", np.stack(l1.baseline(state, caps, selling, self.l1_options))),
                ("mask", l1.time_mask(caps.of(selling), l1.issue_of(state, selling))),
            )
        }
        extra = extra_features(state, pooled_features([(self.book, day)])[0])
        self.mine.states.append(state)
        self.mine.mornings.append(
            {
                **sides,
                "caps": np.concatenate([caps.buy, caps.sell, [caps.budget]]),
                "x_static": self.x_static,
                "x_temporal": features.temporal_features(batch, slots, self.feature_options)[0],
                "extra": extra,
            }
        )

    def first_proposals(self) -> dict[str, Any]:
        running = [negotiator.nmi for negotiator, _ in self.negotiators.values() if negotiator.nmi is not None]
        if any(nmi.annotation["caller"] != self.id for nmi in running):
            return {}  # the partners speak first: the controller asks all the same and drops the answer
        threads = [self._thread(partner, self.get_nmi(partner).state, None) for partner in self.negotiators]
        return {partner: offer for partner, (_, offer) in self._decide(threads).items()}

    def counter_all(self, offers: dict[str, Any], states: dict[str, Any]) -> dict[str, SAOResponse]:
        threads = [self._thread(partner, states[partner], offers[partner]) for partner in offers]
        answers = {}
        for partner, (op, offer) in self._decide(threads).items():
            if op == ACCEPT:
                answers[partner] = SAOResponse(ResponseType.ACCEPT_OFFER, offers[partner])
            elif op == REJECT:
                answers[partner] = SAOResponse(ResponseType.REJECT_OFFER, offer)
            else:
                answers[partner] = SAOResponse(ResponseType.END_NEGOTIATION, None)
        return answers

    def _thread(self, partner: str, state: Any, received: Offer | None) -> Thread:
        thread = self.threads.setdefault(partner, Thread(partner, partner in self.awi.my_consumers))
        thread.received, thread.round = received, state.step
        thread.relative_time = features.FIRST_RELATIVE_TIME if received is None else state.relative_time
        if received is not None:
            quantity, when, price = received
            thread.history.append((quantity, price, when - self.awi.current_step, False))
            self.offers.add(int(thread.selling), when, quantity, price, state.step)
        return thread

    def _decide(self, threads: list[Thread]) -> dict[str, tuple[int, Offer | None]]:
        """One joint decision: features of all threads, then an answer for each."""
        day, state, caps = self.awi.current_step, self.ledger.state, self.ledger.caps
        batch = stack([state])
        x_temporal = features.temporal_features(
            batch, offer_slots(batch, self.offers.known(day)), self.feature_options
        )[0]
        selling = np.array([t.selling for t in threads])
        rounds = np.array([float(t.round) for t in threads])
        length = np.array([float(len(t.history)) for t in threads])
        relative_time = np.array([t.relative_time for t in threads])
        latest = Action(*(np.stack(parts) for parts in zip(*(t.latest() for t in threads))))
        table = Action(*(np.stack(parts) for parts in zip(*(t.on_table(day) for t in threads))))
        base = l1.baseline(state, caps, selling, self.l1_options, rounds)
        issue, cap = l1.issue_of(state, selling), caps.of(selling)
        mask = l1.time_mask(cap, issue)
        thread = features.thread_features(
            state,
            x_temporal,
            self.goal,
            features.Negotiations(selling, base, cap, mask, latest, length, relative_time),
        )
        morning = self.mine.states[-1]
        signed = np.where(selling[:, None], state.q_out - morning.q_out, state.q_in - morning.q_in)
        aux = features.micro_aux(
            state, caps.budget, selling, issue, relative_time, table.day, base.day, self.goal, signed
        )
        counts = np.array([(~selling).sum(), selling.sum()])
        overall = features.global_features(self.goal, self.x_static, *counts)
        days = features.latest_day(latest.day, base.day, state.horizon)
        alpha = HeuristicL4Coordinator().weights(days, thread[:, 0])
        accepts = rule_accepts(table, self.goal, cap, caps.budget, selling, issue)
        plan = HeuristicL3Executor().decide(base, mask, selling, length, accepts)
        clipped = l1.clip_action(corrected(base, plan, alpha), cap, caps.budget, selling, issue, mask)
        answers = {}
        for i, one in enumerate(threads):
            self.mine.threads[day, one.partner, one.round, one.received is not None] = {
                "baseline": np.stack([part[i] for part in base]),
                "time_open": l1.open_mask(mask[i], base.day[i]) == 0,
                "masked": np.array((mask[i] < 0).all()),
                "thread": thread[i],
                "aux": aux[i],
                "alpha": alpha[i],
                "global": overall,
                "partner": self.book.features([one.partner], one.selling)[0],
                "history": np.array(one.history[-20:]).reshape(-1, 4),
            }
            offer = tuple(int(part[i]) for part in (clipped.quantity, clipped.day, clipped.price))
            offer = (offer[0], offer[1] + day, offer[2]) if clipped.valid[i] else self._any_offer(issue, i)
            op = int(plan.op[i]) if one.received is not None else REJECT
            if one.received is not None and self.random.random() < 0.1:
                op = END
            if op == REJECT:
                one.history.append((offer[0], offer[2], offer[1] - day, True))
                self.offers.add(int(one.selling), offer[1], offer[0], offer[2], one.round)
            answers[one.partner] = (op, offer)
        return answers

    def _any_offer(self, issue: l1.Issue, i: int) -> Offer:
        """Some small legal offer where L1 has none, so that every thread makes a decision."""
        last = issue.first[i] + self.random.integers(0, int(issue.last[i] - issue.first[i]) + 1)
        price = self.random.integers(int(issue.price_min[i]), int(issue.price_max[i]) + 1)
        return int(self.random.integers(1, 4)), int(last) + self.awi.current_step, int(price)

    def on_negotiation_success(self, contract: Any, mechanism: Any) -> None:
        deal, note = contract.agreement, contract.annotation
        selling = note["seller"] == self.id
        ahead = deal["time"] - self.awi.current_step
        self.ledger.sign(selling, deal["quantity"], deal["unit_price"], ahead)
        self._remember(note, mechanism, mechanism.state, deal["quantity"], deal["unit_price"])

    def on_negotiation_failure(self, partners: Any, annotation: Any, mechanism: Any, state: Any) -> None:
        self._remember(annotation, mechanism, state, 0, 0)

    def _remember(self, note: Any, mechanism: Any, state: Any, quantity: int, price: int) -> None:
        selling = note["seller"] == self.id
        prices = mechanism.outcome_space.issues[2]
        self.ended.append(
            Ended(
                self.awi.current_step,
                note["buyer"] if selling else note["seller"],
                selling,
                state.step,
                quantity,
                price,
                prices.min_value,
                prices.max_value,
            )
        )
