"""Teachers: who they are, what they would choose, and what cannot be taught together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.distill.teachers import Teacher, entry_shares, find
from marlab.market.networks import around as files
from marlab.market.rules import around


def a_net(lot: int) -> files.AroundNet:
    """Always the lot with this entry."""
    bias = np.zeros(around.CHOICES)
    bias[4 + lot] = 9.0
    return files.AroundNet(((np.zeros((around.CHOICES, around.INPUTS)), bias),), 2.0)


def test_the_rule_is_certain_and_a_network_says_what_it_would_draw() -> None:
    x, mask = torch.zeros(3, around.INPUTS), torch.ones(3, around.CHOICES, dtype=torch.bool)
    rule = find("rule").shares(x, mask)
    assert rule[:, [0, 4, 11, 15]].min() > 0.999 and float(rule.sum()) == pytest.approx(12)
    shares = Teacher("a", a_net(2)).shares(x, mask)
    assert float(shares[0, 6]) > 0.99
    mask[:, 6] = False
    assert float(Teacher("a", a_net(2)).shares(x, mask)[0, 6]) == 0.0


def test_networks_are_found_in_files_and_missing_ones_refused(tmp_path: Path) -> None:
    files.save(tmp_path / "a.npz", a_net(1))
    assert find(str(tmp_path / "a.npz")).net is not None
    (tmp_path / "habits.json").write_text('{"kind": "market/habits", "middle": {"large": 9.0}}')
    found = find(str(tmp_path / "habits.json")).habits
    assert found is not None and found.middle != found.first and find("habits").answers
    with pytest.raises(UserError, match="Nothing learnt is at"):
        find(str(tmp_path / "b.npz"))
    with pytest.raises(UserError):
        find(f"hrl:{tmp_path}")


def test_an_entry_that_is_not_open_means_as_the_rule() -> None:
    mask = torch.ones(2, around.CHOICES, dtype=torch.bool)
    mask[1, 4 + 3] = False
    shares = entry_shares(torch.tensor([[1, 3, 0, 2], [1, 3, 0, 2]]), mask)
    assert shares[0].nonzero()[:, 0].tolist() == [1, 7, 11, 17] and shares[1].nonzero()[:, 0].tolist() == [1, 4, 11, 17]
