"""A joint decision says the same for one factory in numpy and for a batch of factories in torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from marlab.market.agent.threads import Situation
from marlab.market.rules import round_state
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.round_state import RoundState
from tests.market.thread_cases import RULES, open_days, situation, some_threads

NUMBERS = (
    "issue", "cap", "mask", "base", "accepts", "days", "priorities", "thread_features", "context", "aux",
)  # fmt: skip


def tensors(values: Any, batch: bool = True) -> Any:
    if isinstance(values, tuple):
        return type(values)(*(None if part is None else tensors(part, batch) for part in values))
    if type(values) is int:
        return values
    whole = torch.as_tensor(np.asarray(values))
    return whole[None] if batch else whole


class Batch(RoundState):
    """The same decision as one row of a batch."""

    def __init__(self, at: Situation) -> None:
        self.at = at
        for name in ("l1_options", "feature_options"):
            setattr(self, name, getattr(at, name))
        names = ("state", "caps", "goal", "x_static", "there", "selling", "rounds", "relative_time", "length")
        for name in (*names, "table", "latest", "slots", "signed"):
            setattr(self, name, tensors(getattr(at, name)))
        self.batch, self.batch_caps = self.state, self.caps
        self.sides = {selling: tensors(threads, batch=False) for selling, threads in at.sides.items()}

    def part(self, values: Any, selling: bool) -> Any:
        if isinstance(values, tuple):
            return type(values)(*(self.part(part, selling) for part in values))
        return values[:, torch.as_tensor(self.at.of_side(selling))]


def same(one: Any, batch: Any) -> None:
    if isinstance(one, tuple):
        for a, b in zip(one, batch):
            same(a, b)
    elif one is not None:
        found = np.asarray(batch, np.float64).reshape(np.asarray(one).shape)
        np.testing.assert_allclose(found, np.asarray(one, np.float64), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rules", list(RULES))
def test_a_batch_in_torch_is_the_single_decision(rules: str) -> None:
    for state, rng in open_days(12, 5):
        at = situation(state, some_threads(state, 6, rng), RULES[rules])
        batch = Batch(at)
        for name in NUMBERS:
            same(getattr(at, name), getattr(batch, name))
        for weigh in (round_state.heuristic_weights, round_state.uniform_weights):
            same(weigh(at), weigh(batch))
        alpha = round_state.heuristic_weights(at)
        rows = tensors(alpha)
        for decide in (round_state.plain_decision, round_state.thumb_decision):
            ours = round_state.wishes_of(at, alpha, decide(at))
            theirs = round_state.wishes_of(batch, rows, decide(batch))
            assert ours.keys() == theirs.keys() == at.sides.keys()
            for side, wishes in ours.items():
                same(tuple(wishes), tuple(theirs[side]))
        mine, worth = round_state.rule_wishes(at, alpha, RuleOptions())
        others, their_worth = round_state.rule_wishes(batch, rows, RuleOptions())
        for side, wishes in mine.items():
            same(tuple(wishes), tuple(others[side]))
        if worth is not None:
            same(worth, their_worth)


def test_weights_of_nobody_and_of_everybody() -> None:
    for state, rng in open_days(1, 6):
        for count in (0, 4):
            alpha = round_state.uniform_weights(situation(state, some_threads(state, count, rng), RULES["guide"]))
            assert alpha.tolist() == [0.25] * count
