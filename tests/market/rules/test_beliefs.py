"""Beliefs about partners: Bayes' rule by hand, floors, days, files; the same in numpy and torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.logs.worldlog import ACCEPT, END, REJECT
from marlab.market.rules import beliefs
from marlab.market.rules.beliefs import Answers, BeliefOptions, Observer
from marlab.market.rules.l1 import Action
from tests.market.beliefs_cases import random_observer, telling_observer

EVERY = BeliefOptions(temper=1.0, carry=1.0, floor=0.0, stranger=0.0)


def answers(count: int = 1, op: int = REJECT, seed: int | None = None, **given: object) -> Answers:
    """Answers in round 1 of day 3; random ones with a seed."""
    draw, one = np.random.default_rng(seed or 0), np.ones(count)

    def offer(there: bool) -> Action:
        if seed is None:
            return Action(one * 4 * there, one * 0.5 * there, one * there)
        return Action(draw.integers(1, 30, count) * 1.0, draw.random(count).round(1), draw.integers(0, 11, count) * 1.0)

    made = Answers(
        one > 0, one > 0, one > 0, 3 * one, 50 * one, one, offer(True), offer(True),
        np.full(count, op) if seed is None else draw.integers(0, 3, count), offer(op == REJECT),
    )  # fmt: skip
    return made._replace(**given)


def as_tensors(made: Answers) -> Answers:
    def one(value: object) -> object:
        return Action(*map(torch.as_tensor, value)) if isinstance(value, Action) else torch.as_tensor(value)

    return Answers(*(one(value) for value in made))  # type: ignore[arg-type]


def test_who_accepts_more_often_is_believed_after_an_acceptance() -> None:
    observer = telling_observer((0.8, 0.2, 0.5))
    start = beliefs.prior((1,), observer, np.zeros(1))
    np.testing.assert_allclose(np.exp(start), 1 / 3)
    found = beliefs.log_likelihoods(observer, answers(op=ACCEPT))
    once = beliefs.posterior(start, found, EVERY)
    np.testing.assert_allclose(np.exp(once), [[0.8 / 1.5, 0.2 / 1.5, 0.5 / 1.5]], rtol=1e-6)
    twice = beliefs.posterior(start, 2 * found, EVERY)
    np.testing.assert_allclose(np.exp(twice), [[0.64 / 0.93, 0.04 / 0.93, 0.25 / 0.93]], rtol=1e-6)
    half = beliefs.posterior(start, 2 * found, BeliefOptions(temper=0.5, floor=0.0))
    np.testing.assert_allclose(half, once)


def test_no_type_is_ever_ruled_out() -> None:
    observer = telling_observer((0.999, 0.001, 0.5))
    start = beliefs.prior((1,), observer, np.zeros(1))
    many = beliefs.posterior(
        start, 1000 * beliefs.log_likelihoods(observer, answers(op=ACCEPT)), BeliefOptions(floor=0.01)
    )
    np.testing.assert_allclose(np.exp(many), [[1 / 1.02, 0.01 / 1.02, 0.01 / 1.02]])
    impossible = beliefs.log_likelihoods(observer, answers(op=END))
    assert np.ptp(beliefs.log_likelihoods(telling_observer((1 - 1e-12, 1e-12, 0.5)), answers(op=ACCEPT))) <= 6.0
    assert np.isfinite(impossible).all()


def test_beliefs_fade_to_the_prior_overnight() -> None:
    belief = np.log([[0.9, 0.05, 0.05]])
    np.testing.assert_allclose(beliefs.next_day(belief, BeliefOptions(carry=1.0)), belief)
    faded = np.exp(beliefs.next_day(belief, BeliefOptions(carry=0.5)))
    assert 1 / 3 < faded[0, 0] < 0.9 and faded.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.exp(beliefs.next_day(belief, BeliefOptions(carry=0.0))), 1 / 3)


def test_answers_are_sorted_into_classes() -> None:
    lots = Action(np.array([1.0, 10, 11, 30, 40]), np.array([0.0, 0.2, 0.5, 0.99, 1.0]), np.array([0.0, 1, 2, 4, 10]))
    op, lot, price, day = beliefs.classes(answers(5, offer=lots, op=np.array([ACCEPT, REJECT, END, END, END])))  # type: ignore[arg-type]
    assert op.tolist() == [0, 1, 2, 2, 2] and lot.tolist() == [0, 9, 10, 12, 12]
    assert price.tolist() == [0, 1, 2, 3, 4] and day.tolist() == [0, 1, 2, 3, 4]


def test_an_offer_that_was_not_made_tells_nothing() -> None:
    context = beliefs.contexts(answers(mine=Action(*(np.zeros(1),) * 3)))
    assert context.shape == (1, beliefs.CONTEXT)
    assert not context[0, 13 : 13 + beliefs.OFFER].any() and context[0, 13 + beliefs.OFFER :].any()


def test_terms_count_for_offers_only() -> None:
    observer, other = random_observer(2), Action(np.full(1, 9.0), np.ones(1), np.zeros(1))
    for op, same in ((ACCEPT, True), (REJECT, False)):
        pair = [beliefs.log_likelihoods(observer, a) for a in (answers(op=op), answers(op=op, offer=other))]
        assert np.array_equal(*pair) == same


def test_numpy_and_torch_agree() -> None:
    observer, made = random_observer(4), answers(50, seed=7)
    ours = beliefs.log_likelihoods(observer.like(np.zeros(1)), made)
    theirs = beliefs.log_likelihoods(observer.like(torch.zeros(1, dtype=torch.float64)), as_tensors(made))
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    start = beliefs.prior((50,), observer, np.zeros(1))
    pair = [
        beliefs.posterior(start, ours, BeliefOptions()),
        beliefs.posterior(torch.as_tensor(start), theirs, BeliefOptions()),
    ]
    np.testing.assert_allclose(*pair, atol=1e-9)


def test_an_answer_is_foreseen_by_the_mean_of_the_types() -> None:
    observer = telling_observer((0.8, 0.2, 0.5))
    belief = np.log([[0.5, 0.25, 0.25]])
    np.testing.assert_allclose(beliefs.answering(observer, belief, answers()), [[0.575, 0.0]], atol=1e-9)


def test_a_file_keeps_an_observer(tmp_path: Path) -> None:
    observer = random_observer(3, options=BeliefOptions(0.3, 0.9, 0.001, 0.1))
    beliefs.save_observer(tmp_path / "o.npz", observer)
    again = beliefs.load_observer(tmp_path / "o.npz")
    assert again.types == observer.types and again.options == observer.options
    np.testing.assert_array_equal(again.weights[1], observer.weights[1])


@pytest.mark.parametrize("harm", ["missing", "shape", "types", "nan", "kind", "options"])
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path: Path, harm: str) -> None:
    arrays = {"kind": np.array(beliefs.KIND), **beliefs.to_arrays(random_observer(3))}
    if harm == "missing":
        del arrays["bias1"]
    elif harm == "shape":
        arrays["weight0"] = arrays["weight0"][1:]
    elif harm == "types":
        arrays["types"] = arrays["types"][1:]
    elif harm == "nan":
        arrays["bias0"][0] = np.nan
    elif harm == "kind":
        arrays["kind"] = np.array("something")
    else:
        arrays["options"] = np.array([9.0, 1.0, 0.0, 0.0])
    np.savez(tmp_path / "o.npz", **arrays)
    with pytest.raises(UserError):
        beliefs.load_observer(tmp_path / "o.npz")


def test_sizes_fit() -> None:
    observer: Observer = random_observer(2)
    assert observer.size == 3 and beliefs.logits(observer, np.zeros((5, beliefs.CONTEXT))).shape == (
        5,
        3,
        beliefs.ANSWER,
    )
