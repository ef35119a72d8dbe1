"""What beliefs add to the inputs of a learner."""

from __future__ import annotations

import numpy as np
import torch

from marlab.market.rules import around
from marlab.market.rules.outlook import outlook, outlook_size
from tests.market.beliefs_cases import random_observer, telling_observer
from tests.market.rules.test_around import Around, played


def sales() -> list[around.Sale]:
    rule = played(Around)[1]
    assert isinstance(rule, Around)
    return [sale for sale, _, _ in rule.seen]


def test_chances_are_means_over_the_types_and_empty_places_are_zero() -> None:
    observer = telling_observer((0.8, 0.2, 0.5)).like(torch.zeros(1, dtype=torch.float64))  # type: ignore[arg-type]
    sale = sales()[0]
    belief = torch.log(torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)).expand(*sale.alpha.shape, 3)
    found = outlook(observer, belief, sale)
    assert found.shape[-1] == outlook_size(observer) == 5 and outlook_size(None) == 0
    there = sale.threads.there
    row = torch.tensor([0.5, 0.25, 0.25, 0.575, 0.0], dtype=torch.float64)
    torch.testing.assert_close(found[there], row.expand_as(found[there]))
    assert not found[~there].any()


def test_it_depends_on_the_rules_lot_and_is_finite() -> None:
    observer = random_observer(3).like(torch.zeros(1, dtype=torch.float64))  # type: ignore[arg-type]
    spread = []
    for sale in sales()[:10]:
        belief = torch.full((*sale.alpha.shape, 4), float(np.log(0.25)), dtype=torch.float64)
        found, other = (
            outlook(observer, belief, sale._replace(wishes=sale.wishes._replace(quantity=sale.wishes.quantity * scale)))
            for scale in (1, 3)
        )
        assert bool(found.isfinite().all())
        spread.append(float((found - other).abs().max()))
    assert max(spread) > 0.01
