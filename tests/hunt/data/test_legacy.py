"""Faults of the original in data: stale global actions, rows after exit."""

import torch

from marlab.hunt.data.legacy import global_actions, with_rows_after_exit
from marlab.hunt.game.rules import STAY
from tests.hunt.offline import offline_data


def test_global_actions_are_in_seat_order_and_stale():
    part = offline_data().part("all")
    rows = part.rows
    seats = global_actions(part, 4)
    ego = (torch.arange(4) - rows.player.unsqueeze(1)) % 4
    there = rows.alive.gather(1, ego)
    assert torch.equal(seats[there], rows.joint_a.gather(1, ego)[there])
    assert set(seats[~there].unique().tolist()) == {5, 6}, "players who left keep the hunt that they left with"
    first = rows.player == 0
    assert torch.equal(seats[first][there[first]], rows.joint_a[first][there[first]]), "for seat 0 both orders agree"


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
