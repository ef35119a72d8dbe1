"""What is in the codes: probes, clouds, prototypes."""

import pytest
import torch

from marlab.hunt.others.codes import (
    Goals,
    judged_by_deeds,
    k_means,
    linear_probe,
    make_codebook,
    meant_by,
    two_dimensions,
)
from marlab.hunt.others.vae import Code
from tests.hunt.helpers import seeded


def test_linear_probe_reads_what_is_there_and_nothing_else():
    x, noise = torch.randn(2000, 6, generator=seeded(0)), torch.randn(2000, 6, generator=seeded(1))
    y = (x @ torch.tensor([1.0, -2, 0, 0, 0, 1]) > 0.5).long()
    good = linear_probe(x[:1500], y[:1500], x[1500:], y[1500:])
    bad = linear_probe(noise[:1500], y[:1500], noise[1500:], y[1500:])
    assert good.accuracy > 0.97 and good.balanced > 0.96 and good.rows == 500
    assert bad.accuracy < 0.70 and bad.balanced < 0.56
    assert good.majority == pytest.approx((y[1500:] == 0).float().mean().item())


def test_k_means_finds_separate_clouds():
    centres = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = (centres.repeat_interleave(50, 0) + 0.3 * torch.randn(150, 2, generator=seeded(0)))[
        torch.randperm(150, generator=seeded(1))
    ]
    found = k_means(points, 3, seeded(2))
    assert torch.cdist(centres, found).amin(1).max() < 0.3
    assert len(k_means(torch.ones(5, 2), 3, seeded(0))) == 3, "equal points must not break it"


def test_codebook_knows_what_its_prototypes_lead_to():
    codes = torch.cat([torch.zeros(40, 2), torch.full((40, 2), 8.0)])
    outcomes = torch.cat([torch.ones(40), torch.full((40,), 2.0)]).long()
    outcomes[0] = 0
    book = make_codebook(codes, outcomes, 2, seeded(0))
    at_zero = int(book.nearest(torch.zeros(2)))
    assert book.outcome[1, at_zero] > 0.95 and book.outcome[2, 1 - at_zero] > 0.97
    assert book.goal[0, at_zero] > 0.95 and book.goal.sum(0).tolist() == pytest.approx([1, 1])
    assert book.usage.tolist() == [0.5, 0.5] and book.spread.abs().max() == 0


def test_players_without_a_capture_are_judged_by_what_they_did():
    """Three prototypes: stag hunters, hare catchers, and players who never capture anything but act as the first do."""
    codes = torch.tensor([0.0, 4.0, 8.0]).repeat_interleave(40).unsqueeze(1)
    outcomes = torch.tensor([1, 2, 0]).repeat_interleave(40)
    book = make_codebook(codes, outcomes, 3, seeded(0))
    hunter, catcher, waiter = (int(book.nearest(torch.tensor([x]))) for x in (0.0, 4.0, 8.0))
    assert book.goal[0, waiter] == 0.5, "captures say nothing about them"
    deeds = torch.zeros(120, 3)
    deeds[80:110, catcher] = -1.0  # most of them act a little more as stag hunters do
    deeds[110:, hunter] = -1.0
    judged = judged_by_deeds(book, codes, outcomes, deeds)
    assert judged.goal[0, hunter] > 0.98 and judged.goal[1, catcher] > 0.98
    assert judged.goal[0, waiter] > 0.85, "one player's deeds are faint, those of thirty in forty are not"
    assert judged.goal.sum(0).tolist() == pytest.approx([1, 1, 1])


def test_two_dimensions_keep_the_largest_variation():
    codes = torch.randn(300, 5, generator=seeded(0)) * torch.tensor([0.1, 5.0, 0.1, 2.0, 0.1])
    flat = two_dimensions(codes)
    assert flat.var(0).tolist() == pytest.approx([codes[:, 1].var().item(), codes[:, 3].var().item()], rel=0.05)


def test_how_much_of_a_goal_is_about_the_stag():
    assert Goals.hunt().stag.tolist() == [1.0, 0.0] and Goals.none().count == 1
    common = torch.tensor([[0.3, 0.1], [0.1, 0.5]])
    assert Goals(torch.eye(2), torch.ones(3, 2), common).stag.tolist() == pytest.approx([0.75, 1 / 6])
    with pytest.raises(ValueError, match="does not fit"):
        Goals(torch.eye(2), torch.ones(3, 4))


def test_a_prototype_and_a_history_meet_where_their_variances_say():
    code = Code(torch.tensor([4.0]), torch.tensor([0.0]))
    meant = meant_by(code, torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [0.0]]))
    assert meant.tolist() == [[2.0], [2.0]], "halfway between equal variances, and a sure prototype stays"
