"""The evaluation as a run."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from marlab.hunt.evaluate import beliefs, cells, run
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.measurements import FOLDER
from marlab.hunt.evaluate.run import evaluate, read_card, score
from marlab.lab.errors import UserError
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions


def small(*agents: str, **changes: object) -> HuntEvalConfig:
    settings = {"scenarios": ("3NH", "visit_random"), "runs": 4, "steps": 40, "window": 36, "layouts": 2, "episodes": 4}
    return HuntEvalConfig(agents=agents, **{**settings, "figures": False, "device": "cpu", **changes})  # type: ignore[arg-type]


def test_an_evaluation_that_was_stopped_goes_on_and_measures_nothing_twice(
    tmp_path: Path, hop: Path, ppo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small(f"hop={hop}", f"ppo={ppo}:0", parts=("self-play", "scenarios", "cross-play", "beliefs"))
    monkeypatch.setattr(run, "evaluate_beliefs", partial(beliefs.evaluate_beliefs, games=6))
    with monkeypatch.context() as stopping:
        stopping.setattr(Run, "should_stop", lambda self: len(list((self.path / FOLDER).iterdir())) >= 3)
        half = evaluate(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert read_run(half.path).status == "interrupted" and not (half.path / "scorecard.json").exists()
    before = {file.name: file.stat().st_mtime_ns for file in (half.path / FOLDER).iterdir()}
    with pytest.raises(UserError, match="--resume"):
        evaluate(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    resume = RunOptions(output_dir=tmp_path / "run", resume=True)
    card = read_card(evaluate(config, resume, quiet=True).path)
    after = {file.name: file.stat().st_mtime_ns for file in (half.path / FOLDER).iterdir()}
    assert 3 <= len(before) < len(after) and before.items() <= after.items()

    def no_more(*arguments: object, **more: object) -> None:
        raise AssertionError("something was measured again")

    for name in ("play_stream", "play", "start_values"):
        monkeypatch.setattr(cells, name, no_more)
    monkeypatch.setattr(beliefs, "measure_beliefs", no_more)
    assert read_card(evaluate(config, resume, quiet=True).path).to_dict() == card.to_dict()


def test_measurements_of_other_evaluations_are_taken_over(
    tmp_path: Path, hop: Path, ppo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations that ran side by side, joined into one card under other names of the agents."""
    for name, agent in (("a", f"one={hop}"), ("b", f"other={ppo}:0")):
        evaluate(small(agent, parts=("scenarios",)), RunOptions(output_dir=tmp_path / name), quiet=True)
    monkeypatch.setattr(cells, "play_stream", lambda *arguments: pytest.fail("something was measured again"))
    both = small(f"hop={hop}", f"ppo={ppo}:0", parts=("scenarios",), measured=(tmp_path / "a", tmp_path / "b"))
    card = read_card(evaluate(both, RunOptions(output_dir=tmp_path / "both"), quiet=True).path)
    assert set(card.blocks[0].lines[0].scores) == {"hop", "ppo"}


def test_trained_agents_play_and_are_met(ppo: Path, hop: Path) -> None:
    config = HuntEvalConfig(
        f"hop={hop}", (f"ppo={ppo}:3",), parts=("cross-play",), runs=4, steps=40, window=40, device="cpu"
    )
    card = score(config)
    assert set(card.cross) == {"hop", "ppo"}
    assert card.cross["hop"]["ppo"].episodes > 0 and card.cross["ppo"]["hop"].by_seed.keys() == {3}


def test_what_does_not_fit_together_is_refused_before_any_work(
    ppo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small = {"runs": 4, "steps": 40, "window": 40, "device": "cpu"}
    with pytest.raises(UserError, match="4 players"):
        evaluate(HuntEvalConfig("NS", game="msh_2p_4x4", **small))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="4x4 grid"):
        evaluate(HuntEvalConfig(str(ppo), game="msh_8x8_b5", **small))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="TEAM=RUN"):
        evaluate(HuntEvalConfig("NS", references=("3NS",), **small))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="There is no run"):
        evaluate(HuntEvalConfig("NS", measured=(Path("nowhere"),), **small))  # type: ignore[arg-type]
    assert not (tmp_path / "runs").exists()


def test_a_trained_reference_sets_the_scale(ppo: Path) -> None:
    config = HuntEvalConfig(
        "NH", parts=("scenarios",), scenarios=("visit_random",), references=(f"3RAND={ppo}",), runs=8, steps=120,
        window=80, layouts=0, device="cpu",
    )  # fmt: skip
    [line] = score(config).blocks[0].lines
    assert line.reference.mean == max(line.reference.mean, line.scores["NH"].mean, line.random.mean)
