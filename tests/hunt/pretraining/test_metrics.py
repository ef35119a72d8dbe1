import csv
import json
import math

import numpy as np
import pytest
import torch

from marlab.hunt.pretraining.metrics import class_table, score_actions, write_evaluation

# The confusion matrix of the original's last epoch (rows true, columns predicted) and the table printed beside it.
NOTE_MATRIX = [
    [8423, 1370, 1507, 1581, 171, 98, 698],
    [1270, 9387, 1309, 1236, 86, 35, 590],
    [1831, 1861, 7985, 921, 108, 72, 923],
    [1746, 1797, 1272, 8013, 153, 111, 756],
    [4710, 4409, 2750, 3202, 21513, 118, 286],
    [485, 247, 229, 340, 28, 4097, 92],
    [644, 765, 227, 1088, 14, 39, 6417],
]
NOTE_TABLE = """class,count,ratio,precision,recall,f1
0,13848,0.129408,0.440787,0.608247,0.511151
1,13913,0.130016,0.473230,0.674693,0.556283
2,13701,0.128035,0.522613,0.582804,0.551070
3,13848,0.129408,0.489164,0.578640,0.530153
4,36988,0.345650,0.974630,0.581621,0.728501
5,5518,0.051565,0.896499,0.742479,0.812252
6,9194,0.085917,0.657345,0.697955,0.677042
"""


def test_the_notes_matrix_gives_the_notes_table():
    table = class_table(NOTE_MATRIX)
    assert table.csv() == NOTE_TABLE
    assert table.rows == 107_010
    found = (table.accuracy, table.macro_recall, table.macro_f1, table.weighted_f1, table.majority)
    assert [round(value, 5) for value in found] == [0.61522, 0.63806, 0.62378, 0.62950, 0.34565]
    assert round(float(table.predicted_ratio[4]), 5) == 0.20627


def test_rows_give_back_the_matrix_they_were_made_from():
    """Logits whose best guesses follow a matrix score exactly as the matrix."""
    counts = torch.tensor(NOTE_MATRIX) // 50
    true, guess = torch.cartesian_prod(torch.arange(7), torch.arange(7)).unbind(1)
    true, guess = (x.repeat_interleave(counts.flatten()) for x in (true, guess))
    scores = score_actions(torch.nn.functional.one_hot(guess, 7).float(), true)
    assert np.array_equal(scores.table.confusion, counts.numpy())
    assert scores.top1 == pytest.approx(scores.table.accuracy)


def test_hand_made_scores():
    p = torch.tensor([[0.5, 0.3, 0.2, 0.0], [0.1, 0.2, 0.3, 0.4], [0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4]])
    actions = torch.tensor([0, 0, 3, 1])
    scores = score_actions(p.log().clamp_min(torch.finfo(torch.float32).min), actions, truth=p)
    assert scores.top1 == 0.25 and scores.top3 == 0.5, "equal guesses are ordered by the lowest number: 3 comes fourth"
    expected = -(math.log(0.5) + math.log(0.1) + math.log(0.25) + math.log(0.2)) / 4
    assert scores.cross_entropy == pytest.approx(expected)
    entropy = np.mean([-sum(x * math.log(x) for x in row if x) for row in p.tolist()])
    assert scores.floor == pytest.approx(entropy) == scores.entropy
    assert scores.excess == pytest.approx(expected - entropy)
    # Bins of 1/15: 0.5 right, twice 0.4 wrong, 0.25 wrong.
    assert scores.ece == pytest.approx((0.5 + 0.4 * 2 + 0.25) / 4)


def test_perfect_logits_and_the_alarm():
    actions = torch.arange(7).repeat(4)
    perfect = torch.nn.functional.one_hot(actions, 7) * 20.0
    assert score_actions(perfect, actions).cross_entropy < 0.01 and not score_actions(perfect, actions).alarm
    assert score_actions(perfect, (actions + 1) % 7).alarm


def test_classes_that_never_happen_do_not_spoil_the_means():
    table = class_table([[3, 1, 0], [0, 4, 0], [0, 0, 0]])
    assert table.macro_recall == pytest.approx((0.75 + 1) / 2)
    assert table.recall[2] == 0 and table.precision[2] == 0
    with pytest.raises(ValueError, match="square"):
        class_table([[1, 2, 3]])
    with pytest.raises(ValueError, match="no rows"):
        score_actions(torch.zeros(0, 7), torch.zeros(0, dtype=torch.int64))


def test_scalars_as_metrics():
    scores = score_actions(torch.eye(7) * 9, torch.arange(7), truth=torch.eye(7))
    flat = scores.flat("moa/validation")
    assert flat["moa/validation/top1"] == 1 and flat["moa/validation/recall/5"] == 1
    assert flat["moa/validation/floor"] == 0


def test_evaluation_files(tmp_path):
    logits, actions = torch.eye(7) * 3, torch.arange(7)
    scores = score_actions(logits, actions)
    write_evaluation(tmp_path, 4, scores, logits, actions, "validation", sample=5)
    with (tmp_path / "moa_eval_epoch4.csv").open() as file:
        assert [row["recall"] for row in csv.DictReader(file)] == ["1.000000"] * 7
    told = json.loads((tmp_path / "moa_eval_epoch4.json").read_text())
    assert told["confusion"] == torch.eye(7).long().tolist() and told["split"] == "validation"
    assert told["reliability"]["confidence"].count(None) == 14, "empty bins hold no number"
    with np.load(tmp_path / "moa_eval_epoch4.npz", allow_pickle=False) as arrays:
        assert arrays["logits"].shape == (5, 7) and arrays["labels"].tolist() == [0, 1, 2, 3, 4]
        assert str(arrays["split"]) == "validation"
