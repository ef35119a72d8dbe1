"""LitaAgentHRL, the agent that plays: L1 bounds, L2's goal of the day, L3's wishes, L4's order, one plan per round.

    from marlab.market.agent.agent import LitaAgentHRL        # the class alone is enough for a tournament
    anac2024_std(competitors=[LitaAgentHRL, ...])
    anac2024_std(competitors=[LitaAgentHRL, ...], competitor_params=[{"controller_params": {"mode": "neural"}}, ...])

Without parameters it plays rule W with learnt habits (`mode="learned"`), which earn more than the rule as it
was written (`mode="heuristic"`) and than the networks that come with the package (`mode="neural"`). In `init` and
`before_step` it raises when the simulator is not what it was made for, rather than trade with wrong numbers; in
negotiations an exception is counted, logged, and answered by the plan of pure L1.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from negmas.sao import ResponseType, SAOResponse
from scml.std import StdSyncAgent

from marlab.lab.config import to_dict
from marlab.market.agent.decide import pure_l1
from marlab.market.agent.layers import Layers, load_layers
from marlab.market.agent.log import DecisionLog
from marlab.market.agent.plan import Answer, RoundPlan, make_plan
from marlab.market.agent.safety import Ledger
from marlab.market.agent.settings import AgentSettings
from marlab.market.agent.threads import Morning, Offer, Situation, Thread
from marlab.market.logs.daystate import DayState, stack
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import features
from marlab.market.rules.goals import GOAL_SIZE
from marlab.market.rules.offers import OfferBook, offer_slots
from marlab.market.rules.partners import Ended, PartnerBook, Talk, extra_features, pooled_features
from marlab.market.rules.round_state import uniform_weights
from marlab.market.simulator.awi import Reader, reports_of, without_bankrupt

WORDS = {ACCEPT: "accept", REJECT: "offer", END: "end"}


class LitaAgentHRL(StdSyncAgent):
    """The four-layer agent. Keyword parameters are the fields of `AgentSettings`.

    After or during a game: `counts` (decisions, offers, accepts, ends, signed, exceptions, unsafe), `seconds` (CPU
    time of each joint decision) and `log` (the decision log).
    """

    def __init__(self, *args: Any, owner: Any = None, ufun: Any = None, name: Any = None, **settings: Any) -> None:
        """Settings are checked here; weights are loaded in `init`."""
        super().__init__(*args, owner=owner, ufun=ufun, name=name)
        self.settings = AgentSettings(**settings)
        self.counts: Counter[str] = Counter()
        self.seconds: list[float] = []
        self.log = DecisionLog()
        self._ready = False
        self._failed: Exception | None = None  # why `init` failed: the simulator goes on after it

    # --- mornings: whatever is wrong raises -----------------------------------------------------------------------

    def init(self) -> None:
        """Before the first day: layers, memory, and whether this is the game that the agent knows."""
        try:
            self._begin()
        except Exception as error:
            self._failed = error
            raise

    def _begin(self) -> None:
        awi = self.awi
        if awi.is_perishable or awi.allow_zero_quantity:
            rules = "stock must not perish and quantities must be positive"
            raise RuntimeError(f"LitaAgentHRL plays SCML Standard: {rules}.")
        if awi.horizon > self.settings.horizon:
            raise RuntimeError(f"Deliveries are up to {awi.horizon} days away, plans only {self.settings.horizon}.")
        self.layers: Layers = load_layers(self.settings)
        self.log = DecisionLog(self.settings.decision_log, str(self.id), self.settings.debug)
        self._reader, self._offers, self._book = Reader(), OfferBook(), PartnerBook()
        self._ended: list[Ended] = []
        self._talks: list[Talk] = []
        self._threads: dict[str, Thread] = {}
        self._over: set[str] = set()  # partners whose negotiation of today has ended
        self._last_day = -1
        # one draw of the world's own generator: the same world draws the same, another world something else
        self._game = random.getrandbits(64) if self.settings.decode == "sample" else 0
        if self.log.is_on:
            asked = {name: str(v) if name.endswith("path") and v else v for name, v in vars(self.settings).items()}
            rule = to_dict(self.settings.rule_options())
            asked |= {"l1": to_dict(self.layers.l1), "rule": rule, "decision_log": None}
            self.log.write("start", agent=str(self.id), settings=asked)

    def before_step(self) -> None:
        """A new day: its state, L1's bounds and L2's goal."""
        if self._failed is not None:
            raise self._failed
        self._ready = False
        day = int(self.awi.current_step)
        state = self._reader.read(self.awi, self.settings.horizon)
        self._check(state, day)
        self._turn_page(day)
        alive = without_bankrupt(self.awi, state)
        self._ledger = Ledger(alive, self.layers.l1)
        state = state if self.settings.is_neural else alive  # networks learnt from mornings as they are told
        static = features.static_features(state, self.layers.features)
        self._morning = Morning(state, self._goal(state, day), static, self._game)
        self._plans: dict[frozenset[Any], RoundPlan] = {}
        self._ready = True
        if self.log.is_on:
            caps = self._ledger.caps
            room = int(state.league_horizon) + 1
            self.log.write(
                "day", day=day, goal=self._morning.goal, buy_cap=caps.buy[:room], sell_cap=caps.sell[:room],
                budget=float(caps.budget), stock=float(state.inventory_input), balance=float(state.balance),
            )  # fmt: skip

    def _check(self, state: DayState, day: int) -> None:
        """Raise if the morning is not one of the game that the layers were made for."""
        if day <= self._last_day:
            raise RuntimeError(f"The morning of day {day} came after that of day {self._last_day}.")
        wrong = [name for name, value in zip(DayState._fields, state) if not np.isfinite(value).all()]
        if wrong:
            raise RuntimeError(f"The simulator tells no number for {', '.join(wrong)}.")
        for side, trades in (("buy", state.can_buy), ("sell", state.can_sell)):
            low, high = (getattr(state, f"{side}_day_{end}") for end in ("min", "max"))
            if trades and not (low == day and day <= high <= day + state.league_horizon):
                raise RuntimeError(f"On day {day} the negotiations to {side} offer the days {low:g} to {high:g}.")
        for issues in self._issues():
            if [issue.name for issue in issues] != ["quantity", "time", "unit_price"]:
                raise RuntimeError(f"The issues are {[i.name for i in issues]}, not quantity, time and unit_price.")
        self._last_day = day

    def _issues(self) -> list[Any]:
        inside = [] if self.awi.is_first_level else [self.awi.current_input_issues]
        return inside if self.awi.is_last_level else [*inside, self.awi.current_output_issues]

    def _turn_page(self, day: int) -> None:
        """Yesterday's negotiations and reports enter the books; today has no threads yet."""
        self._offers.new_day()
        for ended in self._ended:
            self._book.add(ended)
        for partner, cash in reports_of(self.awi, day - 1).items():
            self._book.add_report(partner, cash)
        for talk in self._talks:
            self._book.add_talk(talk)
        self._ended.clear()
        self._talks.clear()
        self._threads.clear()
        self._over.clear()

    def _goal(self, state: DayState, day: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """L2's goal [16] of the day."""
        if self.settings.goal_zero:
            return np.zeros(GOAL_SIZE)
        manager = self.layers.l2
        if manager.network is None:
            return manager.compute(state)
        batch = stack([state])
        extra = None
        if manager.features.extra:
            extra = extra_features(batch, pooled_features([(self._book, day)]))
        return manager.compute(batch, offer_slots(batch, self._offers.known(day)), extra)[0]

    # --- negotiations: whatever is wrong is counted and answered by pure L1 -----------------------------------------

    def first_proposals(self) -> dict[str, Offer | None]:
        """Offers for the negotiations in which the agent speaks first.

        The controller also asks where the partners do, and drops the answer: nothing is planned then.
        """
        try:
            mine = [p for p in self._running() if self.get_nmi(p).annotation["caller"] == self.id]
        except Exception as error:
            self._caught("first_proposals", error)
            return {}
        if not mine:
            return {}
        answers = self._answer(dict.fromkeys(mine), {})
        return {p: answer.offer if answer.op == REJECT else None for p, answer in answers.items() if p in mine}

    def counter_all(self, offers: Mapping[str, Offer | None], states: Mapping[str, Any]) -> dict[str, SAOResponse]:
        """An answer for every running negotiation, also for those that are not asked about yet."""
        return {partner: _response(answer) for partner, answer in self._answer(offers, states).items()}

    def _answer(self, offers: Mapping[str, Offer | None], states: Mapping[str, Any]) -> dict[str, Answer]:
        began = time.thread_time()
        if not self._ready:  # the morning failed, or a signed deal is not in the books
            return dict.fromkeys(offers, Answer(END, None, "not ready"))
        try:
            answers = self._planned(self._heard(offers, states)).answers
        except Exception as error:
            self._caught("negotiation", error)
            answers = dict.fromkeys(offers, Answer(END, None, "not ready"))
        self.seconds.append(time.thread_time() - began)
        return answers

    def _planned(self, threads: list[Thread]) -> RoundPlan:
        """The plan for a set of threads, made once; a signed deal makes all plans of the day out of date."""
        key = frozenset(thread.moment for thread in threads)
        if key not in self._plans:
            try:
                plan = self._make_plan(threads, self.layers)
            except Exception as error:
                self._caught("plan", error)
                plan = self._make_plan(threads, None)
            self._plans[key] = plan
            self._note(threads, plan)
        return self._plans[key]

    def _make_plan(self, threads: list[Thread], layers: Layers | None) -> RoundPlan:
        """A plan by the layers, or by pure L1."""
        at = Situation(
            self._morning, self._ledger.state, self._ledger.caps, threads, self._offers, self._book, self.layers.l1,
            self.layers.features,
        )  # fmt: skip
        alpha = (layers.l4 if layers else uniform_weights)(at)
        return make_plan(at, (layers.l3 if layers else pure_l1)(at, alpha), alpha, self.log.is_on)

    def _heard(self, offers: Mapping[str, Offer | None], states: Mapping[str, Any]) -> list[Thread]:
        """All active threads, with the partners' new offers in their histories."""
        heard = {partner: (states.get(partner), offer) for partner, offer in offers.items()}
        for partner in self._running():
            if partner not in offers:  # the protocol does not promise that a call mentions everybody
                state = self.get_nmi(partner).state
                if state.running or not state.started:
                    heard[partner] = (state, self._on_table(partner, state))
        for partner in sorted(heard):
            self._hear(partner, *heard[partner])
        return [self._threads[partner] for partner in sorted(heard)]

    def _running(self) -> list[str]:
        """Partners whose negotiation of today has not ended."""
        return [partner for partner in self.negotiators if partner not in self._over]

    def _on_table(self, partner: str, state: Any) -> Offer | None:
        """The partner's offer, if it was the last to speak."""
        mine = self.negotiators[partner][0].id
        return state.current_offer if state.current_proposer not in (None, mine) else None

    def _hear(self, partner: str, state: Any, offer: Offer | None) -> None:
        thread = self._threads.get(partner)
        if thread is None:
            thread = self._threads[partner] = Thread(partner, partner in self.awi.my_consumers)
        thread.round, thread.received = 0 if state is None else int(state.step), offer
        if offer is None or thread.heard == thread.round:
            return
        quantity, when, price = offer
        thread.relative_time = float(state.relative_time)
        thread.heard, thread.proposed = thread.round, None
        thread.history.append((quantity, price, when - self._last_day, False))
        self._offers.add(int(thread.selling), when, quantity, price, thread.round)

    def _note(self, threads: Iterable[Thread], plan: RoundPlan) -> None:
        """Own offers enter the histories, and every answer the log."""
        self.counts["unsafe"] += plan.unsafe
        if self.log.is_on:
            left, room = self._ledger.caps, int(self._ledger.state.league_horizon) + 1
            self.log.write(
                "round",
                day=self._last_day,
                buy_cap=left.buy[:room],
                sell_cap=left.sell[:room],
                budget=float(left.budget),
            )
        for thread in threads:
            answer = plan.answers[thread.partner]
            self.counts["decisions"] += 1
            self.counts[f"{WORDS[answer.op]}s"] += 1
            if self.log.is_on:
                self.log.write(
                    "decision", day=self._last_day, partner=thread.partner, selling=thread.selling,
                    round=thread.round, received=thread.received, op=WORDS[answer.op], offer=answer.offer,
                    clip=answer.why, **answer.details,
                )  # fmt: skip
            if answer.op == REJECT and answer.offer is not None and thread.proposed != answer.offer:
                quantity, when, price = thread.proposed = answer.offer
                thread.history.append((quantity, price, when - self._last_day, True))
                self._offers.add(int(thread.selling), when, quantity, price, thread.round)

    def _caught(self, where: str, error: Exception) -> None:
        self.counts["exceptions"] += 1
        if self.log.is_on:
            text = "".join(traceback.format_exception(error))
            self.log.write("exception", day=self._last_day, where=where, error=repr(error), traceback=text)

    # --- what became of negotiations --------------------------------------------------------------------------------

    def on_negotiation_success(self, contract: Any, mechanism: Any) -> None:
        """A signed deal takes its room and money for the rest of the day."""
        try:
            deal, note = contract.agreement, contract.annotation
            selling = note["seller"] == self.id
            ahead = deal["time"] - self._last_day
            self._ledger.sign(selling, deal["quantity"], deal["unit_price"], ahead)
            self._plans.clear()
            self.counts["signed"] += 1
            self._remember(note, mechanism, mechanism.state, deal["quantity"], deal["unit_price"])
            if self.log.is_on:
                self.log.write("signed", day=self._last_day, selling=selling, **dict(deal))
        except Exception as error:
            self._ready = False  # what is left today is no longer known
            self._caught("on_negotiation_success", error)

    def on_negotiation_failure(self, partners: Any, annotation: Any, mechanism: Any, state: Any) -> None:
        """A partner that left, or bargained to the end, is remembered."""
        try:
            self._remember(annotation, mechanism, state, 0, 0)
        except Exception as error:
            self._caught("on_negotiation_failure", error)

    def _remember(self, note: Mapping[str, Any], mechanism: Any, state: Any, quantity: int, price: int) -> None:
        selling = note["seller"] == self.id
        partner = note["buyer"] if selling else note["seller"]
        prices = mechanism.outcome_space.issues[2]
        thread = self._threads.pop(partner, None)
        if thread is not None:
            self._talks.append(thread.talk(quantity, prices.min_value, prices.max_value))
        self._over.add(partner)
        self._ended.append(
            Ended(self._last_day, partner, selling, state.step, quantity, price, prices.min_value, prices.max_value)
        )


def _response(answer: Answer) -> SAOResponse:
    if answer.op == ACCEPT:
        return SAOResponse(ResponseType.ACCEPT_OFFER, answer.offer)
    if answer.op == REJECT:
        return SAOResponse(ResponseType.REJECT_OFFER, answer.offer)
    return SAOResponse(ResponseType.END_NEGOTIATION, None)
