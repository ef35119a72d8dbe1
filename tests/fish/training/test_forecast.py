"""How long a training will take is said before it starts, and what makes it a quarter of an hour."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.fish.training import forecast
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.forecast import Pace, gradients, no_time_for_one, pace, probes, told, ways
from marlab.fish.training.networks import make_net
from marlab.fish.training.train import train
from marlab.lab.config import altered
from marlab.lab.runs.budget import Budget
from marlab.lab.runs.run import RunOptions
from tests.fish.cases import SMALL
from tests.fish.training.test_config import V32_COMMAND, command

LOG = command(V32_COMMAND).config
"""What the log's own command asks for."""
IDLE = Pace(step=0.012, gradient=0.013, probe=40.0, ending=0.0)


def test_the_logs_command_has_25_times_the_gradients_of_the_original() -> None:
    original = altered(LOG, compat=True)
    assert gradients(LOG, 25) == 5 * 400 and gradients(original, 25) == 5 * 16
    assert probes(LOG) == 3


def test_a_forecast_adds_up_phase_by_phase() -> None:
    hand = sum(n * (128 * 0.012 * fish / 25 + 5 * 16 * fish * 0.013) for fish, n in ((15, 9), (20, 10), (25, 41)))
    assert IDLE.whole(LOG) == pytest.approx(hand + 3 * 40.0)


def test_whoever_pastes_the_logs_command_hears_how_to_have_it_in_15_minutes() -> None:
    first, second = told(LOG, IDLE, Budget())
    assert first.startswith("this training takes about 26 min") and "60 iterations" in first
    assert "--time-limit 15" in second and "--num-envs 64" in second and "--compat" in second
    for way in ways(LOG, IDLE)[1:]:  # each is a flag that keeps the promise
        flag, value = way.split()[:2]
        shorter = altered(LOG, compat=True) if flag == "--compat" else altered(LOG, num_envs=int(value))
        cost = IDLE.whole(shorter)
        if flag == "--num-envs":
            cost = 3 * 40.0 + IDLE.iterations(LOG) * int(value) / LOG.num_envs
        assert cost <= 15 * 60


def test_a_limit_says_how_far_it_lets_the_training_come() -> None:
    _, second = told(LOG, IDLE, Budget(600.0))
    assert second.startswith("the time limit of 10 min stops it after about 25 of them")
    assert told(LOG, Pace(1e-4, 1e-5, 0.0, 0.0), Budget()) == []


def test_what_fits_is_counted_phase_by_phase_with_its_probes() -> None:
    """9 iterations of 16.5 s, 10 of 22.0 s and then 27.5 s each; a probe of 40 s after the 16th."""
    done = {seconds: IDLE.done_in(LOG, seconds) for seconds in (16.0, 17.0, 9 * 16.53, 310.0, 369.0, 409.5, 1e6)}
    assert list(done.values()) == [0, 1, 9, 16, 17, 19, 60]


def test_an_iteration_that_cannot_end_in_time_does_not_begin() -> None:
    slow = Pace(step=0.5, gradient=0.1, probe=0.0, ending=0.0)
    assert no_time_for_one(LOG, slow, Budget()) is None
    assert no_time_for_one(LOG, slow, Budget(3600.0)) is None
    assert "one iteration takes about" in (no_time_for_one(LOG, slow, Budget(60.0)) or "")


def test_a_training_stops_before_an_iteration_that_cannot_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = Pace(step=10.0, gradient=1.0, probe=0.0, ending=0.0)
    monkeypatch.setattr("marlab.fish.training.train.pace", lambda *_: slow)
    run = train(
        altered(SMALL, skip_final_eval=True), RunOptions(output_dir=tmp_path / "run", time_limit=1.0), quiet=True
    )
    assert run.status == "interrupted" and not list(run.path.glob("checkpoints/*"))
    assert "longer than what the time limit leaves" in capsys.readouterr().out


def test_the_pace_is_measured_for_long_trainings_only(monkeypatch: pytest.MonkeyPatch) -> None:
    net = make_net(SMALL, torch.Generator().manual_seed(0))
    cpu = torch.device("cpu")
    assert pace(SMALL, net, cpu) is None
    monkeypatch.setattr(forecast, "SMALL_WORK", 0.0)
    config: FishTrainConfig = altered(SMALL, tail_replay_count=1)
    found = pace(config, net, cpu)
    assert found is not None and min(found.step, found.gradient, found.probe, found.ending) > 0
