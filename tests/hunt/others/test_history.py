"""The history encoder reads whole sequences as it reads steps, and knows the past only."""

import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rows import row_layout, rows_of_planes
from marlab.hunt.others.copies import copy_generators
from marlab.hunt.others.history import HistoryEncoder, Sequences, sequences_of, subgoal_rows
from tests.hunt.offline import offline_data

GAME = game_config("msh_4x4")


def test_sequences_are_tables_of_their_rows():
    offsets = torch.tensor([0, 2, 7, 8, 11])
    order = sequences_of(offsets, torch.tensor([3, 0, 2]))
    assert order.table.tolist() == [[8, 9, 10], [0, 1, 1], [7, 7, 7]]
    assert order.rows.tolist() == [8, 9, 10, 0, 1, 7] and order.last.tolist() == [2, 2, 2, 4, 4, 5]


def read(encoder: HistoryEncoder, order: Sequences, actions: torch.Tensor):
    rows = offline_data().part("validation").rows
    seen = rows_of_planes(row_layout(GAME), rows.obs, rows.mask)
    return encoder.read(*(x[order.table].unsqueeze(0) for x in (seen, rows.t / 35, actions)))


def test_reading_sequences_equals_going_step_by_step():
    part = offline_data().part("validation")
    rows, encoder = part.rows, HistoryEncoder(GAME, 4, 8, copy_generators((0,), 1, "t"))
    seen, time = rows_of_planes(row_layout(GAME), rows.obs, rows.mask), rows.t / 35
    order = sequences_of(part.offsets, torch.arange(6))
    with torch.no_grad():
        code, memory = read(encoder, order, rows.joint_a)
        for s in range(6):
            state = encoder.begin(1, 1)
            for t, row in enumerate(range(int(part.offsets[s]), int(part.offsets[s + 1]))):
                one = [x[row : row + 1].unsqueeze(0) for x in (seen, time, rows.joint_a)]
                assert torch.allclose(memory[0, s, t], state[0, 0], atol=1e-5)
                assert torch.allclose(code.mean[0, s, t], encoder.code(state, *one[:2]).mean[0, 0], atol=1e-4)
                state = encoder.advance(state, *one)


def test_a_code_knows_the_past_and_not_the_present_action():
    part = offline_data().part("validation")
    sequence = int(part.offsets.diff().argmax())
    order = sequences_of(part.offsets, torch.tensor([sequence]))
    encoder = HistoryEncoder(GAME, 4, 8, copy_generators((0,), 1, "t"))
    actions = part.rows.joint_a.clone()
    before = read(encoder, order, actions)[0].mean[0, 0]
    third = int(order.table[0, 3])
    actions[third, 1] = (actions[third, 1] + 1) % 7
    changed = (before - read(encoder, order, actions)[0].mean[0, 0]).abs().sum(1) > 0
    assert not changed[:4].any() and changed[4:].all()


def test_subgoals_are_the_capture_or_the_horizon():
    offsets = torch.tensor([0, 3, 8])
    assert subgoal_rows(offsets, 2).tolist() == [2, 2, 2, 5, 6, 7, 7, 7]
    assert subgoal_rows(offsets, 10).tolist() == [2] * 3 + [7] * 5
