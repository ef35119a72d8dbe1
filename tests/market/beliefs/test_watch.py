"""Recorded worlds as an observer sees them."""

from __future__ import annotations

import itertools

import torch

from marlab.market.beliefs.watch import NOBODY, UNKNOWN, gather, kinds, numbers, partner_types
from marlab.market.rules.beliefs import CONTEXT
from tests.market.beliefs_cases import named_worlds


def test_seats_know_their_types_and_partners_each_other() -> None:
    worlds = named_worlds()
    assert numbers(worlds[0], ("A", "B")).tolist()[:3] == [UNKNOWN, 1, 0]
    seats = kinds(worlds, ("A", "B"))
    there = sum(len(world.scores) for world in worlds)
    assert int((seats != NOBODY).sum()) == there
    partner = partner_types(seats)
    sizes = [world.config.sizes[0] for world in worlds]
    pairs = sum(int(a * b) for size in sizes for a, b in itertools.pairwise(size))
    assert int((partner != NOBODY).sum()) == 2 * pairs


def test_every_answer_of_a_type_is_a_sample() -> None:
    worlds = named_worlds()[:3]
    samples = gather(worlds, ("A", "B"), 1.0, 0)
    mine = sum(
        int((numbers(world, ("A", "B"))[world.tables["decisions"]["agent"]] >= 0).sum()) for world in worlds
    )  # fmt: skip
    # openings that were not made are seen and no decisions; the last round has decisions that nobody sees
    assert 0.8 * mine < len(samples) < 1.5 * mine
    assert samples.context.shape == (len(samples), CONTEXT) and set(samples.type.tolist()) == {0, 1}
    half = gather(worlds, ("A", "B"), 0.5, 0)
    assert 0.4 * len(samples) < len(half) < 0.6 * len(samples)
    assert torch.equal(half.context, gather(worlds, ("A", "B"), 0.5, 0).context)
    parts = samples.split(100)
    assert sum(map(len, parts)) == len(samples) and torch.equal(parts[0].type, samples.take(torch.arange(100)).type)
