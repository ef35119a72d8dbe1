"""Networks side by side: folding batches, and spreading weights."""

import torch

from marlab.hunt.others.copies import BatchedLinear, Recurrent, copy_generators, fold, spread, unfold
from tests.hunt.helpers import seeded


def test_folding_groups_rows_by_seed_and_seat_and_back():
    x = torch.arange(2 * 3 * 4 * 5).view(6, 4, 5)  # two seeds of three games, four players
    by_pair = fold(x, 2, 8)
    assert by_pair.shape == (8, 3, 5) and torch.equal(by_pair[5], x[3:, 1])
    for copies in (2, 8):
        assert torch.equal(unfold(fold(x, 2, copies), 2, 4), x)
    assert fold(x[..., :0], 2, 2).shape == (2, 12, 0)


def test_a_recurrent_unit_is_torchs():
    ours, torchs = Recurrent(5, 3, copy_generators((0,), 1, "t")), torch.nn.GRUCell(5, 3)
    with torch.no_grad():
        for layer, weight, bias in (
            (ours.new, torchs.weight_ih, torchs.bias_ih),
            (ours.old, torchs.weight_hh, torchs.bias_hh),
        ):
            weight.copy_(layer.weight[0].T)
            bias.copy_(layer.bias[0, 0].normal_(generator=seeded(1)))
    x, h = torch.randn(7, 5, generator=seeded(2)), torch.randn(7, 3, generator=seeded(3))
    torch.testing.assert_close(ours.step(ours.new(x.unsqueeze(0)), h.unsqueeze(0))[0], torchs(x, h))


def test_copies_of_a_seed_do_not_depend_on_other_seeds():
    both, alone = (BatchedLinear(3, 2, copy_generators(seeds, 2, "t"), 1.0).weight for seeds in ((0, 1), (1,)))
    assert torch.equal(both[2:], alone)
    assert torch.equal(spread(torch.tensor([[1.0], [2.0]]), 4).flatten(), torch.tensor([1.0, 1.0, 2.0, 2.0]))
