"""Faults of the original in data: stale global actions, rows after exit."""

import torch

from marlab.hunt.data.legacy import with_rows_after_exit
from marlab.hunt.game.rules import STAY
from tests.hunt.offline import offline_data


def test_rows_after_exit_continue_every_sequence_to_the_end():
    part = offline_data().part("validation")
    more = with_rows_after_exit(part, 4)
    rows = more.rows
    lengths = more.offsets.diff()
    for s in range(0, len(lengths), 7):
        own = rows.select(torch.arange(int(more.offsets[s]), int(more.offsets[s + 1])))
        assert own.t.tolist() == list(range(len(own.t))) and own.done_all.tolist()[-1]
        assert own.player.unique().numel() == 1 and own.episode.unique().numel() == 1
    gone = ~rows.alive[:, 0]
    assert gone.any() and (rows.a[gone] == STAY).all()
    assert (rows.obs[gone][..., 0] == 0).all(), "who left is on no cell of its own view"
    assert torch.equal(rows.obs[gone][..., 1:4].flatten(1, 2).sum(1) > 0, rows.alive[gone][:, 1:])
    assert int((~gone).sum()) == part.rows.size
