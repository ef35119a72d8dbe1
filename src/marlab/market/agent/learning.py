"""LitaAgentHRL that learns: it draws what it does around the rule, and keeps what it chose and what came of it.

`marlab market online` seats it in worlds of the simulator; `experience` is what such a game tells a trainer, in the
words of the vector market's ground: choices by day, round and partner, the worth of contracts in the rounds of the
choices that led to them, and everything else that a day brought.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from marlab.market.agent.agent import LitaAgentHRL
from marlab.market.agent.layers import find_learned
from marlab.market.agent.learned import Learned
from marlab.market.agent.threads import Situation
from marlab.market.logs.daystate import Array, DayState
from marlab.market.networks import around as files
from marlab.market.rules import around, worth
from marlab.market.rules.bargain import RuleOptions


class Experience(NamedTuple):
    """What one seat lived through: M choices, C contracts, T days, K buyers (in the order of their names)."""

    day: Array  # [M]
    round: Array  # [M]
    partner: Array  # [M] place among the buyers
    x: Array  # [M, D]
    mask: Array  # [M, entries], bool
    choices: Array  # [M, heads]
    sale: Array  # [C, 4]: day, round, partner, worth in shares of the opening balance
    evening: Array  # [T] what a day brought beside the contracts signed on it
    buyers: tuple[str, ...]  # [K]


class Drawing(Learned):
    """The network's choices, drawn and noted."""

    def __init__(self, net: files.AroundNet, options: RuleOptions, draw: np.random.Generator) -> None:
        super().__init__(net, options)
        self._draw = draw
        self.notes: list[tuple[int, list[int], list[str], Array, around.Turn]] = []

    def turn(self, at: Situation, alpha: Array) -> around.Turn:
        """What is drawn when the turn of each selling thread comes."""
        sale, x = self.looked(at, alpha)
        logits = self._net(x)
        noise = -np.log(np.maximum(self._draw.exponential(size=logits.shape), np.finfo(np.float64).tiny))
        turn = around.Turn(sale, logits + noise, self._net.freedom)
        here = [at.threads[i] for i in at.of_side(True)]
        self.notes.append((int(at.state.day), [t.round for t in here], [t.partner for t in here], x[0], turn))
        return turn


class LearningAgent(LitaAgentHRL):
    """Plays `weights` (a file of `marlab market online`), drawing with a seed of its own."""

    def __init__(self, *args: Any, weights: str = "", seed: int = 0, **more: Any) -> None:
        super().__init__(*args, mode="learned", weights=weights or None, **more)
        self._seed = seed
        self._mornings: list[tuple[DayState, float]] = []  # and the balance
        self._sales: list[tuple[int, int, str, float]] = []

    def _begin(self) -> None:
        super()._begin()
        net = files.load(find_learned(self.settings.weights))
        draw = np.random.default_rng([self._seed, *(ord(letter) for letter in str(self.id))])
        self.drawing = Drawing(net, RuleOptions(**net.rule), draw)
        self.layers = self.layers.with_decider(self.drawing)

    def before_step(self) -> None:
        """A new day: what contracts and stock are worth."""
        super().before_step()
        self._mornings.append((self._ledger.state, float(self._ledger.state.balance)))

    def on_negotiation_success(self, contract: Any, mechanism: Any) -> None:
        """A sale is noted with the round of the choice that led to it."""
        note, deal = contract.annotation, contract.agreement
        thread = self._threads.get(note["buyer"])
        if note["seller"] == self.id and thread is not None and self._mornings:
            state = self._mornings[-1][0]
            terms = (deal["quantity"], deal["unit_price"], deal["time"] - self._last_day)
            gain = worth.contract(_batch(state), *(np.array([[float(term)]]) for term in terms))
            self._sales.append((self._last_day, self._chosen_round(thread.partner), thread.partner, float(gain[0, 0])))
        super().on_negotiation_success(contract, mechanism)

    def _chosen_round(self, partner: str) -> int:
        """The round of the latest choice in a thread of today."""
        for day, rounds, partners, _, _ in reversed(self.drawing.notes):
            if day != self._last_day:
                break
            if partner in partners:
                return rounds[partners.index(partner)]
        return 0

    def experience(self, balance: float, days: int) -> Experience:
        """What the game was; `balance` is the final one, `days` how many days it had."""
        buyers = tuple(sorted({partner for _, _, partners, _, _ in self.drawing.notes for partner in partners}))
        place = {name: number for number, name in enumerate(buyers)}
        rows: dict[tuple[int, int, str], tuple[Array, Array, Array]] = {}
        for day, rounds, partners, x, turn in self.drawing.notes:
            choices, mask, free = turn.chosen()
            for k in np.flatnonzero(free[0]):
                rows.setdefault((day, rounds[k], partners[k]), (x[k], mask[0, k], choices[0, k]))
        keys = list(rows)
        sales = np.array([(d, r, place.get(p, 0), gain) for d, r, p, gain in self._sales], np.float64).reshape(-1, 4)
        return Experience(
            np.array([day for day, _, _ in keys], np.int64), np.array([turn for _, turn, _ in keys], np.int64),
            np.array([place[partner] for _, _, partner in keys], np.int64),
            _stacked([rows[key][0] for key in keys], np.float32), _stacked([rows[key][1] for key in keys], np.bool_),
            _stacked([rows[key][2] for key in keys], np.int64), sales, self._evenings(balance, days, sales), buyers,
        )  # fmt: skip

    def _evenings(self, balance: float, days: int, sales: Array) -> Array:
        """[T] everything but the contracts signed: settlement, purchases, changes of what contracts are worth."""
        out = np.zeros(days)
        for number, (state, before) in enumerate(self._mornings):
            day = int(state.day)
            last = number == len(self._mornings) - 1  # also of a factory that went bankrupt
            after = balance if last else self._mornings[number + 1][1]
            then = 0.0 if last else float(worth.potential(_batch(self._mornings[number + 1][0]))[0])
            batch, opening = _batch(state), max(1.0, float(state.initial_balance))
            gained = then - float(worth.potential(batch)[0])
            signed = sales[sales[:, 0] == day, 3].sum()
            out[day] = (after - before) / opening + gained + float(worth.sunk(batch)[0]) - signed
        return out


def _batch(state: DayState) -> DayState:
    return DayState(*(field[None] for field in state))


def _stacked(rows: list[Array], dtype: Any) -> Array:
    return np.stack(rows).astype(dtype) if rows else np.zeros((0, 0), dtype)


def played_by(agents: Mapping[str, Any]) -> dict[str, LearningAgent]:
    """The learners among a world's agents, by id."""
    found = {name: getattr(agent, "adapted_object", agent) for name, agent in agents.items()}
    return {name: agent for name, agent in found.items() if isinstance(agent, LearningAgent)}
