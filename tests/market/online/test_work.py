"""The command: a run with weights that play, results and a verdict."""

from __future__ import annotations

from pathlib import Path

from marlab.lab.report.draw import draw
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.market.networks import around
from marlab.market.online.work import learn, results_of, verdict
from tests.market.online_cases import tiny


def test_a_training_leaves_weights_figures_and_a_verdict(tmp_path: Path) -> None:
    run = learn(tiny(start="weak", steer_every=1, generations=1), RunOptions(output_dir=tmp_path / "run"), quiet=True)
    net = around.load(tmp_path / "run" / "checkpoints" / "around.npz")
    assert net.inputs == 91 and (tmp_path / "run" / "checkpoints" / "around_last.npz").exists()
    assert (tmp_path / "run" / "figures" / "online_learning.png").exists()
    assert (tmp_path / "run" / "checkpoints" / "around_start.npz").exists()  # what the tournament compares it with
    assert {"start minus rule", "learner minus rule"} <= set(run.results)
    assert run.exit_code == 0 and "raining" in run.verdict[0]
    (tmp_path / "run" / "figures" / "online_learning.png").unlink()
    again = draw(read_run(tmp_path / "run"))
    assert again.verdict == run.verdict and (tmp_path / "run" / "figures" / "online_learning.png").exists()


def test_the_verdict_says_on_which_side_the_interval_lies() -> None:
    told = {f"steer/gain{end}": value for end, value in (("", 0.02), ("_low", 0.01), ("_high", 0.03))}
    results = results_of(told | {"steer/score": 1.2, "steer/rule_score": 1.18})
    assert verdict(results, tiny(), 0, True)[0].key == "market.online_above"
    assert verdict({}, tiny(), 0, False)[1].key == "lab.go_on"


def test_a_bad_start_is_what_a_training_from_it_is_measured_by() -> None:
    def value(mean: float) -> dict[str, float]:
        return {"value": mean, "low": mean - 0.02, "high": mean + 0.02}

    for now, key in ((0.0, "market.online_back"), (-0.28, "market.online_not_back")):
        results = {"start minus rule": value(-0.3), "learner minus rule": value(now)}
        assert verdict(results, tiny(start="weak"), 0, True)[0].key == key
