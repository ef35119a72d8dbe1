"""The exhibits show what they say, and the faults they plant go away again."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import HUNT_HARE, HUNT_STAG, RIGHT, STAY, UP
from marlab.hunt.game.views import View
from marlab.hunt.museum.behaviour import BETAS, ENTROPIES, ENTROPY_TOLERANCE, ValuePlayers, behaviour
from marlab.hunt.museum.command import MuseumConfig, exhibits, visit
from marlab.hunt.museum.data import TWICE_PERFECT, moved
from marlab.hunt.museum.training import Training, as_the_original, planted
from marlab.hunt.selfplay import learn as hop_learn
from marlab.hunt.selfplay.play import SelfPlay
from marlab.hunt.selfplay.trainer import HopTrainer
from marlab.lab.errors import UserError
from tests.hunt.helpers import placed, seeded, small_game
from tests.hunt.hop_cases import small_training

FOUR = game_config("msh_4x4")


def test_the_floor_of_a_double_softmax_is_the_loss_of_a_perfect_predictor() -> None:
    certain = torch.eye(7)
    loss = torch.nn.functional.cross_entropy(certain, torch.arange(7))
    assert float(loss) == pytest.approx(TWICE_PERFECT, abs=1e-6)
    assert abs(TWICE_PERFECT - 1.165) < 1e-3


def test_motion_is_read_off_the_planes() -> None:
    game, state = placed(FOUR, players=[(1, 1), (2, 2), (0, 0), None], stags=[(3, 3)], hares=[(0, 3)])
    before = View(game, state).board
    after, _ = game.step(state, torch.tensor([[UP, RIGHT, STAY, STAY]]))
    assert moved(before, View(game, after).board).tolist() == [[UP, RIGHT, -1, -1]]


def test_values_are_exact() -> None:
    game, state = placed(FOUR, players=[(0, 0), (0, 2), (3, 3), (3, 3)], stags=[(3, 3)], hares=[(0, 2)])
    hare = ValuePlayers(game, 1.0, "hare").values(View(game, state))[0]
    assert hare[0, RIGHT].item() == pytest.approx(0.95**2) and hare[0, STAY].item() == pytest.approx(0.95**3)
    assert hare[1, HUNT_HARE].item() == 1.0
    hope = ValuePlayers(game, 1.0, "stag").values(View(game, state))[0]
    assert hope[2, HUNT_STAG].item() == 5.0  # somebody else stands there too
    assert hope[0, RIGHT].item() == pytest.approx(0.95 * max(0.95, 5 * 0.95**5))


@pytest.mark.parametrize("place", [2, 5])
def test_behaviour_has_the_expected_entropy(place: int) -> None:
    game = small_game(FOUR)
    found = behaviour(game, ValuePlayers(game, BETAS[place], "hare"), 384, seeded(3))
    assert found.entropy == pytest.approx(ENTROPIES[place], abs=ENTROPY_TOLERANCE)
    scaled = behaviour(game, ValuePlayers(game, BETAS[place], "hare", scaled=True), 64, seeded(3))
    assert scaled.entropy < found.entropy - 0.2


def test_planted_faults_are_gone_afterwards() -> None:
    loss, write = hop_learn.action_loss, SelfPlay._write
    with pytest.raises(RuntimeError), planted(double_softmax=True, post_exit_rows=True):
        assert hop_learn.action_loss is not loss and SelfPlay._write is not write
        raise RuntimeError
    assert hop_learn.action_loss is loss and SelfPlay._write is write


def test_players_who_left_go_on_in_a_spoilt_replay() -> None:
    """Clean: as many rows as steps of living players. Spoilt: everybody has a row at every step."""

    def rows(fault: bool) -> tuple[HopTrainer, torch.Tensor]:
        with planted(post_exit_rows=fault):
            trainer = HopTrainer(small_training(game=FOUR, num_envs=4, steps=40, total_steps=160))
            for _ in range(trainer.config.steps):
                trainer.play.step(trainer.replay, 0, 5.0)
        return trainer, trainer.replay.written

    clean, spoilt = rows(False)[1], rows(True)
    assert len(set(spoilt[1].tolist())) == 1  # the same number for all seats
    assert len(set(clean.tolist())) > 1
    kept = spoilt[0].replay.store
    gone = kept.rows[0, : int(spoilt[1][0])]
    layout = FOUR.height * FOUR.width * FOUR.channels
    absent = gone[:, -layout:].view(-1, FOUR.cells, FOUR.channels)[..., 0].sum(1) == 0  # own plane is empty
    assert bool(absent.any())
    assert bool((kept.action[0, : len(gone)][absent] == STAY).all()) and bool(gone[absent][:, : FOUR.actions].all())


def test_the_original_habits_are_all_switched_on() -> None:
    config = as_the_original(small_training())
    assert config.plan.legacy_beta == 2.0 and config.plan.search.legacy_q and config.learn.follow == 0.0
    assert config.guard.drop == 0.0 and config.learn.replay <= config.num_envs * config.steps * 5


def test_a_training_knows_its_peak_and_end() -> None:
    rise = Training([*([0.5] * 10), *([2.0] * 10), *([1.0] * 10)], [1.0] * 30, [1.0] * 30)
    assert rise.peak == pytest.approx(2.0) and rise.end == pytest.approx(1.0)
    assert math.isfinite(Training([math.nan, 1.0, 1.0, 1.0], [1.0] * 4, [1.0] * 4).peak)


def test_a_visit_leaves_figures_and_a_page(tmp_path: Path) -> None:
    found = visit(MuseumConfig("stale-actions", rows=800, out=tmp_path))
    assert found["stale-actions"].appeared
    assert (tmp_path / "stale-actions.png").is_file()
    told = json.loads((tmp_path / "museum.json").read_text())
    wrong = told["stale-actions"]["figures"]["agreement"]["global order, as the original"]
    assert wrong[0] == 1.0 and max(wrong[1:]) < 0.6
    assert "stale-actions.png" in (tmp_path / "museum.md").read_text()


def test_the_original_remembers_successes_only_and_one_player_learns(tmp_path: Path) -> None:
    found = visit(MuseumConfig("successes-only", rows=1500, out=tmp_path))["successes-only"]
    assert found.appeared
    shares = found.figures["left_with"]
    assert shares["all steps"][0] > 0.3 and shares["steps that the original kept"][0] == 0
    assert sum(shares["steps that the original kept"]) == pytest.approx(1)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UserError, match="not an exhibit"):
        MuseumConfig("mona-lisa")
    with pytest.raises(UserError, match="rows is 3"):
        MuseumConfig(rows=3)
    assert MuseumConfig().chosen == tuple(exhibits())
