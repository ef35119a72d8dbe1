"""The evaluation as a run: equal results whole, cut anywhere and resumed, in parts, and with agents added."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from marlab.hunt.evaluate import run, work
from marlab.hunt.evaluate.cells import Measurer
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.run import evaluate, read_card, score
from marlab.hunt.game.config import game_config
from marlab.lab.errors import UserError
from marlab.lab.runs.measurements import FOLDER
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions


def small(*agents: str, **changes: object) -> HuntEvalConfig:
    settings = {"scenarios": ("3NH", "visit_mixture"), "runs": 4, "steps": 40, "window": 36, "layouts": 2}
    rest = {"episodes": 4, "figures": False, "device": "cpu"}
    return HuntEvalConfig(agents=agents, **{**settings, **rest, **changes})  # type: ignore[arg-type]


def card_of(config: HuntEvalConfig, out: Path, resume: bool = False) -> dict[str, Any]:
    done = evaluate(config, RunOptions(output_dir=out, resume=resume), engine="serial", quiet=True)
    assert done.status == "finished"
    return read_card(done.path).to_dict()


def files(path: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mtime_ns for file in (path / FOLDER).iterdir()}


@pytest.fixture(scope="module")
def config(hop: Path, ppo: Path) -> HuntEvalConfig:
    return small(f"hop={hop}", f"ppo={ppo}:0", parts=("self-play", "scenarios", "cross-play", "beliefs"))


@pytest.fixture(scope="module")
def whole(config: HuntEvalConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An evaluation that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "Measurer", partial(Measurer, games=6))
        card_of(config, out)
    return out


@pytest.fixture(autouse=True)
def few_games(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beliefs are measured in few games, and rule-based players in batches of two cells."""
    monkeypatch.setattr(run, "Measurer", partial(Measurer, games=6))
    monkeypatch.setattr(work, "MOST_GAMES", 8)


def test_cut_anywhere_and_resumed_it_is_the_same(
    config: HuntEvalConfig, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, written = tmp_path / "run", {}
    for number, cut in enumerate((1, 5, 11, 13, 17)):
        with monkeypatch.context() as stopping:
            stopping.setattr(Run, "should_stop", lambda self, cut=cut: len(files(self.path)) >= cut)
            evaluate(config, RunOptions(output_dir=out, resume=number > 0), engine="serial", quiet=True)
        assert read_run(out).status == "interrupted"
        assert (out / "scorecard.json").exists() == (cut >= 13)  # of what is measured, once a line is whole
        assert written.items() <= files(out).items() and cut <= len(files(out)) < len(files(whole))
        written = files(out)
    with pytest.raises(UserError, match="--resume"):
        evaluate(config, RunOptions(output_dir=out), quiet=True)
    assert card_of(config, out, resume=True) == read_card(whole).to_dict()
    assert written.items() <= files(out).items() and set(files(out)) == set(files(whole))
    for file in files(whole):
        assert (out / FOLDER / file).read_bytes() == (whole / FOLDER / file).read_bytes()
    monkeypatch.setattr(Measurer, "measure", lambda *arguments: pytest.fail("something was measured again"))
    monkeypatch.setattr(Measurer, "rule_scores", lambda *arguments: pytest.fail("something was measured again"))
    assert card_of(config, out, resume=True) == read_card(whole).to_dict()


def test_parts_that_ran_side_by_side_join_to_the_same(
    whole: Path, tmp_path: Path, hop: Path, ppo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under other names of the agents, and in another order; only agents that meet are still to be played."""
    for name, agent in (("a", f"other={ppo}:0"), ("b", f"one={hop}")):
        card_of(small(agent, parts=("self-play", "scenarios", "beliefs")), tmp_path / name)
    both = small(
        f"hop={hop}",
        f"ppo={ppo}:0",
        parts=("self-play", "scenarios", "beliefs"),
        measured=(tmp_path / "a", tmp_path / "b"),
    )
    monkeypatch.setattr(Measurer, "measure", lambda *arguments: pytest.fail("something was measured again"))
    monkeypatch.setattr(Measurer, "rule_scores", lambda *arguments: pytest.fail("something was measured again"))
    joined, expected = card_of(both, tmp_path / "both"), read_card(whole).to_dict()
    assert {**joined, "cross_play": expected["cross_play"]} == expected


def test_another_agent_beside_it_changes_nothing(whole: Path, tmp_path: Path, ppo: Path) -> None:
    config = small("EXPL", f"learner={ppo}:0", parts=("self-play", "scenarios", "cross-play"))
    card, expected = card_of(config, tmp_path / "more"), read_card(whole).to_dict()
    assert card["self_play"]["learner"] == expected["self_play"]["ppo"]
    pairs = [(card["cross_play"]["learner"]["learner"], expected["cross_play"]["ppo"]["ppo"])]
    for line, known in zip(card["blocks"][0]["scenarios"], expected["blocks"][0]["scenarios"], strict=True):
        assert line["reference"] == known["reference"] and line["random"] == known["random"]
        pairs.append((line["agents"]["learner"], known["agents"]["ppo"]))
    for found, known in pairs:
        assert {**found, "agent": "ppo", "scenario": known["scenario"]} == known


def test_other_code_measures_again(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = small("NS", parts=("scenarios",), scenarios=("3NH",), layouts=0)
    first = card_of(config, tmp_path / "run")
    before = files(tmp_path / "run")
    monkeypatch.setattr(run, "code", lambda: "another")
    evaluate(config, RunOptions(output_dir=tmp_path / "run", resume=True), engine="serial")
    after = files(tmp_path / "run")
    assert len(before) == 5 and len(after) == 10 and before.items() <= after.items()
    assert "(5 of other code were measured again)" in capsys.readouterr().out
    assert read_card(tmp_path / "run").to_dict() == first  # the same key draws the same numbers


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
    with pytest.raises(UserError, match="made for stag hunts, msg_4x4 is not one"):
        evaluate(HuntEvalConfig("NS", game="msg_4x4", **small))  # type: ignore[arg-type]
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


def test_the_game_is_the_one_that_was_learnt(hop: Path) -> None:
    for agent, game in (("hop_8x8_b5", "msh_8x8_b5"), (str(hop), "msh_4x4"), ("NS", "msh_4x4")):
        lineup = run.EvaluationPlan(small("NH", agent, scenarios=("3NH",)))
        assert lineup.config.game == game and lineup.bench.game.config == game_config(game)
    assert run.EvaluationPlan(small("NH", game="msh_8x8_b5")).config.game == "msh_8x8_b5"
