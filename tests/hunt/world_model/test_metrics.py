"""World-model metrics: the original's figures, a perfect model, and one planted fault per metric."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from marlab.hunt.data.collect import play_batches
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Rows
from marlab.hunt.game.build import restore
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.game.views import View
from marlab.hunt.world_model.data import Transitions, outcomes, reward_classes
from marlab.hunt.world_model.metrics import (
    baselines,
    calibration,
    describe,
    drift,
    evaluate,
    evaluate_split,
    header,
    psnr,
)
from marlab.hunt.world_model.model import Prediction, WorldModel

GAME = game_config("msh_4x4")
NOTE_CHANNELS = (6.775978e-3, 1.623118e-2, 1.559676e-2, 8.610861e-3, 4.749758e-8, 7.902491e-4, 3.805568e-3)


@pytest.fixture(scope="module")
def data() -> Transitions:
    rows: Rows = next(play_batches(HuntCollectConfig(game=GAME, seed=1))).rows
    rows = rows.select(torch.arange(3000))
    last = rows.t == rows.steps - 1
    follow = torch.where(last, -1, torch.arange(1, rows.size + 1))
    follow[-1] = -1
    return Transitions(
        obs=rows.obs, joint=rows.joint_a, t=rows.t, reward=rows.r, next_obs=rows.next_obs,
        done=torch.stack([rows.done_i, rows.done_all], 1), outcome=outcomes(GAME, rows.obs, rows.next_obs),
        reward_class=reward_classes(GAME, rows.a, rows.r), follow=follow,
    )  # fmt: skip


def perfect(data: Transitions) -> Prediction:
    return Prediction(data.next_obs.float(), data.reward.clone(), data.done.float())


def measure(data: Transitions, found: Prediction) -> dict[str, Any]:
    return evaluate(GAME, found, data.obs.float(), data)


def test_psnr_of_the_note() -> None:
    assert psnr(0.007402) == pytest.approx(21.31, abs=0.005)
    assert sum(NOTE_CHANNELS) / 7 == pytest.approx(0.0074015, abs=1e-6)


def test_both_psnr_definitions() -> None:
    """Errors 0.1 and 0.001: the PSNR of their mean is not the mean of their PSNRs."""
    zeros = torch.zeros(2, 4, 4, 7)
    row = Transitions(
        obs=zeros.to(torch.uint8), joint=torch.full((2, 4), 7), t=torch.zeros(2, dtype=torch.int64),
        reward=torch.zeros(2), next_obs=zeros.to(torch.uint8), done=torch.zeros(2, 2, dtype=torch.bool),
        outcome=torch.full((2, 4), -1), reward_class=torch.zeros(2, dtype=torch.int64), follow=torch.full((2,), -1),
    )  # fmt: skip
    planes = torch.stack([torch.full((4, 4, 7), 0.1**0.5), torch.full((4, 4, 7), 0.001**0.5)])
    found = measure(row, Prediction(planes, torch.zeros(2), None))
    assert found["psnr_global"] == pytest.approx(psnr(0.0505), abs=1e-4)
    assert found["psnr_sample"] == pytest.approx(20.0, abs=1e-4)
    assert found["channel_mse"] == pytest.approx([0.0505] * 7)
    assert found["position_accuracy"] == [None] * 4  # nobody is alive
    assert found["done_accuracy"] is None


def test_a_perfect_prediction(data: Transitions) -> None:
    found = measure(data, perfect(data))
    assert found["obs_mse"] == 0 and found["psnr_global"] == 100.0
    assert found["position_accuracy"] == [1.0] * 4
    for name in ("teleport_rate", "vanish_rate", "ghost_rate"):
        assert found[name] == [0.0] * 4, name
    for name in ("prey_appears_rate", "prey_missed_rate", "prey_lost_rate", "reward_mse", "reward_off_share"):
        assert found[name] == 0.0, name
    for name in ("done_accuracy", "done_all_accuracy", "done_recall", "done_all_recall", "mask_accuracy"):
        assert found[name] == 1.0, name
    assert found["reward_mse_by_class"] == {"none": 0.0, "hare": 0.0, "stag": 0.0}


def test_planted_faults_show_in_their_own_metric(data: Transitions) -> None:
    good = measure(data, perfect(data))

    def faults(planes: Tensor | None = None, reward: Tensor | None = None) -> set[str]:
        base = perfect(data)
        found = measure(data, base._replace(planes=planes if planes is not None else base.planes,
                                            reward=reward if reward is not None else base.reward))  # fmt: skip
        return {name for name, value in found.items() if value != good[name]}

    pixels = {"obs_mse", "channel_mse", "psnr_global", "psnr_sample"}
    true = data.next_obs.float()

    vanished = true.clone()
    vanished[..., 1] = 0.4 * true[..., 1]  # rounds to nothing, but the cell is still the highest
    assert faults(vanished) == pixels | {"vanish_rate"}

    jumped = true.clone()
    jumped[..., 2] = true[..., 2].roll((2, 2), (1, 2))
    assert faults(jumped) == pixels | {"position_accuracy", "teleport_rate"}

    ghosts = true.clone()
    gone = true[..., 3].flatten(1).amax(1) == 0
    ghosts[gone, 0, 0, 3] = 0.9
    assert faults(ghosts) == pixels | {"ghost_rate"}
    assert measure(data, perfect(data)._replace(planes=ghosts))["ghost_rate"] == [0.0, 0.0, 0.0, 1.0]

    grown = true.clone()
    grown[..., 5] = (data.obs[..., 5] == 0) & (data.next_obs[..., 5] == 0) | data.next_obs[..., 5].bool()
    assert faults(grown) >= {"prey_appears_rate"}
    kept = true.clone()
    kept[..., 5:] = data.obs[..., 5:].float()
    assert {"prey_missed_rate"} <= faults(kept) <= pixels | {"prey_missed_rate", "mask_accuracy"}

    assert faults(reward=data.reward + 0.3 * (data.reward_class == 0)) == {
        "reward_mse",
        "reward_mse_by_class",
        "reward_off_share",
    }


class Oracle(WorldModel):
    """The true game as a world model; with `stuck` it shows the last frame again."""

    def __init__(self, game: GameConfig, stuck: bool = False) -> None:
        super().__init__(game)
        self.stuck = stuck

    def predict(self, planes: Tensor, joint: Tensor, t: Tensor) -> Prediction:
        game, state = restore(self.game, planes.round(), t)
        after, out = game.step(state, joint)
        seen = View(game, after).board.float()  # rows are ego-first, so the row's player sits in seat 0
        done = torch.stack([out.done[:, 0], out.over], 1).float()
        return Prediction(planes.float() if self.stuck else seen, out.reward[:, 0], done)

    def loss(self, row: Transitions) -> Tensor:
        raise NotImplementedError

    def settle(self, planes: Tensor) -> Tensor:
        return planes


def test_drift_of_the_true_game_is_zero(data: Transitions) -> None:
    found = drift(Oracle(GAME), data, (1, 2, 3, 5, 10))
    assert list(found) == ["1", "2", "3", "5", "10"]
    rows = [report["rows"] for report in found.values()]
    assert rows[0] == data.size and rows == sorted(rows, reverse=True)
    assert rows[-1] == int((data.t >= 9).sum())  # a row 9 steps later exists for exactly these starts
    for report in found.values():
        assert report["obs_mse"] == 0 and report["reward_mse"] == 0
        assert report["done_accuracy"] == report["done_all_accuracy"] == 1.0


def test_drift_compares_with_the_right_moment(data: Transitions) -> None:
    """A model that shows the first frame for ever is off by exactly what changed since."""
    found = drift(Oracle(GAME, stuck=True), data, (1, 3))
    start = row = torch.arange(data.size)
    for _ in range(2):
        on = data.follow[row] >= 0
        start, row = start[on], data.follow[row[on]]
    changed = (data.obs[start].float() - data.next_obs[row].float()).square().mean()
    assert found["3"]["rows"] == len(row)
    assert found["3"]["obs_mse"] == pytest.approx(changed.item())


def test_calibration_counts_every_cell(data: Transitions) -> None:
    halves = 0.25 + 0.5 * data.next_obs.float()
    table = calibration(GAME, halves, data.next_obs)
    player = table["channels"]["player 1"]
    assert sum(player["empty"]) + sum(player["occupied"]) == data.size * 16
    assert sum(player["occupied"]) == int(data.next_obs[..., 0].sum())
    low, high = (next(i for i, e in enumerate(table["edges"]) if e > x) - 1 for x in (0.25, 0.75))
    assert player["empty"][low] == sum(player["empty"]) and player["occupied"][high] == sum(player["occupied"])
    assert player["mean_predicted"][high] == pytest.approx(0.75) and player["share_occupied"][high] == 1.0
    wild = calibration(GAME, torch.full_like(halves, 7.0), data.next_obs)
    assert wild["channels"]["hares"]["empty"][-1] > 0  # beyond the edges is counted at the edge


def test_baselines(data: Transitions) -> None:
    """One player anywhere on 16 cells: predicting the mean of every cell leaves 1/16 x 15/16 = 0.0586."""
    start = data.select((data.t == 0).nonzero().squeeze(1))
    found = baselines(GAME, data, start)
    assert found["mean_of_every_cell"]["channel_mse"][1] == pytest.approx(0.0586, abs=0.006)
    assert found["copy_last_frame"]["channel_mse"][4] == 0.0
    moved = (start.outcome[:, 0] < 4).float().mean().item()
    assert found["copy_last_frame"]["position_accuracy"][0] < 1.0 - 0.9 * moved


def test_texts(data: Transitions) -> None:
    assert header(GAME, 50_000) == ("loaded obs shape (4, 4, 7), action_dim 7, dataset size 50000, inferred n_agents 4")
    found = evaluate_split(Oracle(GAME), data, (1,))
    text = describe(GAME, "test split", found.metrics)
    assert "100.00 dB (global)" in text and "player 4 0.00e+00" in text and "teleport 0.000%" in text
