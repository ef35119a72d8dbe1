"""The kernel for GPUs against the rule that it stands for."""

from __future__ import annotations

import pytest
import torch

from marlab.market.rules.bargain import Today, worth_waiting
from marlab.market.rules.prospects import Fitting

pytest.importorskip("triton")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_kernel_weighs_as_the_rule() -> None:
    from marlab.market.vector.quick.worth import worth

    draw, device = torch.Generator().manual_seed(0), torch.device("cuda")
    rows, partners, known, slots, cells, heard = 50, 4, 37, 11, 400, 6

    def rand(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=draw, dtype=torch.float64)

    least, order = (-100 * rand(rows, partners, known)).sort(-1)
    del order
    fits = (rand(rows, partners, known) < 0.6).double()
    sums = [torch.nn.functional.pad(v.cumsum(-1), (1, 0)) for v in (-least * fits, fits)]
    before = Fitting(*(v.to(device) for v in (least, *sums, torch.full((rows, partners), float(known)))))
    units, price, ahead = ((top * rand(40, cells)).int() for top in (6, 30, 11))
    place = (cells * rand(rows, partners)).long()
    room, cost = (8 * rand(rows, slots)).floor(), 10 * rand(rows)
    chances = (rand(rows, partners) / 2, 50 * rand(rows, partners), rand(rows, partners) / 3)
    mine = [v[1 : 2 * heard : 2][:, place].permute(1, 2, 0).double() for v in (units, price, ahead)]
    free = room[:, None, None].expand(*mine[2].shape, slots).gather(-1, mine[2].long()[..., None])[..., 0]
    brings = torch.where((mine[0] > 0) & (mine[0] <= free), mine[0] * (mine[1] - cost[:, None, None]), 0.0)
    today = Today(brings.to(device), (mine[0] > 0).double().to(device))
    taken, lot, leaving = (v.to(device) for v in chances)
    right = worth_waiting(before, today, taken, lot, torch.full_like(taken, 9.0), leaving, 9)
    offers = tuple(v.to(device) for v in (units, price, ahead))
    found = worth(
        offers, place.to(device), 1, heard, room.to(device), cost.to(device), before, (taken, lot, leaving), 9
    )
    assert torch.allclose(found, right, rtol=1e-12)
