"""Named generators: independent of each other, saved and restored."""

from __future__ import annotations

from pathlib import Path

import torch

from marlab.lab.runs.checkpoint import load_checkpoint, save_checkpoint
from marlab.lab.runs.rng import Rngs, stream_seed


def test_streams_are_independent_of_order_and_of_each_other() -> None:
    a, b = Rngs(3), Rngs(3)
    a.torch("world")
    first = torch.rand(4, generator=a.torch("policy"))
    assert torch.equal(first, torch.rand(4, generator=b.torch("policy")))
    assert not torch.equal(first, torch.rand(4, generator=Rngs(4).torch("policy")))
    assert not torch.equal(first, torch.rand(4, generator=Rngs(3).torch("world")))
    assert stream_seed(3, "policy") == 6293250283976880596  # the same on every machine and in every version


def test_state_survives_a_checkpoint(tmp_path: Path) -> None:
    rngs = Rngs(5)
    torch.rand(7, generator=rngs.torch("a"))
    rngs.numpy("b").random(3)
    rngs.numpy("b").integers(0, 2**31, dtype="uint32")  # leaves half a word behind in the generator
    save_checkpoint(tmp_path / "r.pt", "k", 0, rngs.state_dict())
    expected = (torch.rand(5, generator=rngs.torch("a")), rngs.numpy("b").random(5))
    other = Rngs(0)
    kept = other.torch("a")
    other.load_state_dict(load_checkpoint(tmp_path / "r.pt").state)
    assert other.torch("a") is kept
    assert torch.equal(torch.rand(5, generator=kept), expected[0])
    assert (other.numpy("b").random(5) == expected[1]).all()
