"""Random shares against chances by hand and against the simulator's own way to distribute."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from marlab.market.vector.shares import MOST, binomial, heaped, order_of, scattered, split

ROWS = 20_000


def rows(value: int) -> torch.Tensor:
    return torch.full((ROWS,), value, dtype=torch.int32)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


@pytest.mark.parametrize(("units", "partners"), [(0, 3), (1, 1), (10, 4), (MOST, 8), (7, 2)])
def test_binomial_numbers_have_their_mean_and_spread(units: int, partners: int) -> None:
    drawn = binomial(rows(units), rows(partners), generator()).double()
    mean, spread = units / partners, (units / partners * (1 - 1 / partners)) ** 0.5
    assert drawn.min() >= 0 and drawn.max() <= units
    assert drawn.mean().item() == pytest.approx(mean, abs=4 * spread / ROWS**0.5 + 1e-12)
    assert drawn.std().item() == pytest.approx(spread, rel=0.03, abs=1e-12)


def test_all_units_fall_on_somebody_who_is_there() -> None:
    to = torch.rand((ROWS, 5), generator=generator()) < 0.6
    units = torch.randint(0, 40, (ROWS,), generator=generator(), dtype=torch.int32)
    shares = scattered(units, to, generator())
    assert (shares[~to] == 0).all() and torch.equal(shares.sum(1), torch.where(to.any(1), units, 0).long())


def test_places_are_a_permutation_with_the_wanted_first() -> None:
    to = torch.rand((ROWS, 4), generator=generator()) < 0.5
    place = order_of(to, generator())
    assert (place.sort(1).values == torch.arange(4)).all()
    assert ((place < to.sum(1, keepdim=True)) == to).all()
    first = place[to.all(1)].argmin(1).bincount(minlength=4) / to.all(1).sum()
    assert (first - 0.25).abs().max() < 0.04


def test_heaps_by_hand() -> None:
    place, partners = torch.tensor([[2, 0, 1]]), torch.tensor([3])
    assert heaped(torch.tensor([40]), place, partners, 30, floor=False).tolist() == [[0, 30, 10]]
    assert heaped(torch.tensor([40]), place, partners, 30, floor=True).tolist() == [[1, 30, 9]]
    assert heaped(torch.tensor([2]), place, partners, 30, floor=True).tolist() == [[0, 1, 1]]


@pytest.mark.parametrize("units", [0, 3, 4, 10, 50, 119, 200])
@pytest.mark.parametrize("how", ["zero", "zero heaped", "equal", "one", "heaped"])
def test_units_are_split_as_the_simulator_does(units: int, how: str) -> None:
    common = pytest.importorskip("scml.common")
    import random

    random.seed(1)
    np.random.seed(1)
    heap, equal = "heaped" in how, None if "zero" in how else how == "equal"
    theirs = np.array(
        [
            common.distribute(units, 4, mx=30, equal=bool(equal), concentrated=heap, allow_zero=equal is None)
            for _ in range(1500)
        ]
    )
    to = torch.tensor([True, False, True, True, False, True]).expand(ROWS, 6)
    given = None if equal is None else torch.full((ROWS,), equal)
    ours = split(rows(units), to, most=30, heap=torch.full((ROWS,), heap), equal=given, generator=generator())
    assert (ours[:, [1, 4]] == 0).all()
    mine = np.sort(ours[:, [0, 2, 3, 5]].numpy(), 1)
    assert set(mine.sum(1)) == set(theirs.sum(1))
    np.testing.assert_allclose(
        mine.mean(0), np.sort(theirs, 1).mean(0), atol=0.25
    )  # the smallest share, ..., the largest
