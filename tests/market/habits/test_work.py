"""The command: a run with habits that play, results and a verdict."""

from __future__ import annotations

from pathlib import Path

from marlab.lab.report.draw import draw
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.market.agent.layers import load_layers
from marlab.market.agent.settings import AgentSettings
from marlab.market.habits.work import learn, verdict
from tests.market.habits_cases import tiny


def test_a_training_leaves_habits_a_figure_and_a_verdict(tmp_path: Path) -> None:
    run = learn(tiny(steps=1, shapes=("2x3",)), RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert run.exit_code == 0 and run.verdict[0].startswith("The learner ") and "learner minus rule" in run.results
    assert load_layers(AgentSettings(mode="learned", weights=tmp_path / "run")).l3 is not None
    assert "First of two levels" in (tmp_path / "run" / "habits.md").read_text()
    figure = tmp_path / "run" / "figures" / "habits.png"
    figure.unlink()
    again = draw(read_run(tmp_path / "run"))
    assert again.verdict == run.verdict and figure.exists()


def test_the_verdict_says_on_which_side_the_interval_lies() -> None:
    gain = {"learner minus rule": {"value": 0.02, "low": 0.01, "high": 0.03}}
    assert verdict(gain, True)[0].key == "market.online_above"
    assert verdict({}, False)[1].key == "lab.go_on"
