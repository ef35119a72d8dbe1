"""The original's buffer: which trajectories it keeps, how it labels them, and who learns."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.museum.legacy import LegacyMoaBuffer, episodes_of
from tests.hunt.offline import offline_data


def test_legacy_buffer_keeps_only_rewarded_trajectories_and_labels_all_their_steps() -> None:
    part = offline_data().part("train")
    buffer = LegacyMoaBuffer(1, 4, capacity=10**9)
    for sequences in episodes_of(part):
        assert buffer.end_episode(part, sequences) == {}
    for slot, model in enumerate(buffer.model_ids):
        rows = torch.cat(buffer.rows[slot])
        assert len(rows) == len(buffer.labels[slot]) and (part.rows.player[rows] == model).all()
        assert (part.rows.outcome[rows] > 0).all(), "failed hunts, the informative case, are never seen"
        assert torch.equal(torch.tensor(buffer.labels[slot]) + 1, part.rows.outcome[rows])
    own = part.rows.player != 0
    assert sum(len(x) for x in buffer.labels) < int(own.sum())


def test_legacy_counters_and_places() -> None:
    part = offline_data().part("train")
    buffer = LegacyMoaBuffer(2, 4)
    assert buffer.model_ids == [0, 2, 3] and [buffer.place_id(m) for m in range(3)] == [3, 1, 2]
    stag = hare = 0.0
    for sequences in episodes_of(part)[:30]:
        outcome = int(part.rows.outcome[part.offsets[sequences[0]]])
        if outcome:
            stag, hare = 0.995 * stag + (outcome == 1), 0.995 * hare + (outcome == 2)
        buffer.end_episode(part, sequences)
    assert (buffer.stag_times[0], buffer.hare_times[0]) == pytest.approx((stag, hare))


@pytest.mark.parametrize("my_id", [1, 3])
def test_only_player_1_ever_learns_in_the_original(my_id: int) -> None:
    part = offline_data().part("train")
    buffer = LegacyMoaBuffer(my_id, 4, capacity=200)
    updates = 0
    for sequences in episodes_of(part):
        due = buffer.end_episode(part, sequences)
        updates += len(due)
        for rows, labels in due.values():
            assert len(rows) == len(labels) > 200
    assert (updates > 0) == (my_id == 1)
    assert all(len(x) <= 200 + 35 for x in buffer.labels), "the others throw theirs away"
