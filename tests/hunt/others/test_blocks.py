import math

import pytest
import torch

from marlab.hunt.others.blocks import Trunk, kaiming_linear
from tests.hunt.helpers import seeded

SHAPE = (4, 4, 7)


def some_planes(*lead: int) -> torch.Tensor:
    return torch.randint(0, 2, (*lead, *SHAPE), generator=seeded(0), dtype=torch.uint8)


def test_trunk_keeps_leading_dimensions_and_sees_every_cell():
    trunk = Trunk(SHAPE, seeded(1))
    planes = some_planes(3, 2).float().requires_grad_()
    out = trunk(planes)
    assert out.shape == (3, 2, 32 * 16) and trunk.size == 512
    out[1, 1].sum().backward()
    touched = planes.grad.abs().sum(-1) > 0  # [3, 2, H, W]
    assert touched[1, 1].all() and touched.sum() == 16, "a row must depend on all of its own cells and on no other row"


def test_trunk_is_the_convolution_of_the_grid():
    """Moving a lonely mark by one cell moves the answer by one cell (away from the border)."""
    trunk = Trunk((9, 9, 1), seeded(1))
    planes = torch.zeros(2, 9, 9, 1)
    planes[0, 4, 4], planes[1, 4, 5] = 1, 1
    a, b = trunk(planes).view(2, 9, 9, 32)
    assert torch.allclose(a[4, 4], b[4, 5]) and not torch.allclose(a[4, 4], b[4, 4])


def test_kaiming_scale_and_seed():
    a, b = (kaiming_linear(400, 500, seeded(4)) for _ in range(2))
    assert torch.equal(a.weight, b.weight) and a.bias.abs().max() == 0
    assert a.weight.std().item() == pytest.approx(math.sqrt(2 / 400), rel=0.02)
