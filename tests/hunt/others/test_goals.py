"""Goals, and what a prototype means for a player whose history is known."""

import pytest
import torch

from marlab.hunt.others.goals import Goals, meant_by
from marlab.hunt.others.vae import Code


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
