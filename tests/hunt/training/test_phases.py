"""The phases of a training: what is made is not made again, and a failing gate stops."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from marlab.hunt.data import collect as collecting
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.planner.agent import load_hop
from marlab.hunt.players.episodes import REWARD
from marlab.hunt.players.rollout import play
from marlab.hunt.selfplay.gates import SINGLE_EXCESS
from marlab.hunt.training import phases
from marlab.hunt.training.phases import stayed
from marlab.hunt.training.run import train_hop
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.testing import assert_same
from tests.hunt.helpers import seeded, small_game
from tests.hunt.hop_cases import TINY, offline, small_training


def test_whole_run_with_phases(tmp_path: Path) -> None:
    """Collect, examine, train, evaluate; load the agents; going through it again does nothing twice."""
    base = small_training(phases="P1,P2,P6")
    config = replace(base, pipeline=replace(base.pipeline, rows=800, gates="warn"))
    path = train_hop(config, RunOptions(output_dir=tmp_path / "run"), quiet=True).path
    record = json.loads((path / "phases.json").read_text())
    assert list(record) == ["P1", "P2", "P6"] and record["P1"]["passed"]
    assert {gate["name"] for gate in record["P6"]["gates"]} and (path / "figures" / "training.png").exists()
    agents = load_hop(path)
    game = small_game(TINY)
    episodes = play(game, agents.agent(game, simulations=4, trees=1), 3, seeded(0))
    assert episodes.reward.shape == (3, 2)
    written = (path / "phases" / "p1_data" / "data" / "rows.parquet").stat().st_mtime_ns
    train_hop(config, RunOptions(output_dir=path, resume=True), quiet=True)
    assert (path / "phases" / "p1_data" / "data" / "rows.parquet").stat().st_mtime_ns == written


@pytest.mark.long
def test_hopplus_makes_all_that_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes and models of others are examined before there is a world model."""
    monkeypatch.setattr(phases, "WORLD_EPOCHS", 1)
    base = small_training(variant="hopplus", phases="auto")
    sizes = replace(base.pipeline, rows=800, goal_epochs=2, gates="warn")
    path = train_hop(replace(base, pipeline=sizes), RunOptions(output_dir=tmp_path / "run"), quiet=True).path
    assert list(json.loads((path / "phases.json").read_text())) == ["P1", "P2", "P3", "P6"]
    assert load_hop(path).config.variant == "hopplus"


def test_a_failing_gate_stops(tmp_path: Path) -> None:
    config = replace(small_training(phases="P1,P2,P6"), pipeline=replace(small_training().pipeline, rows=300))
    with pytest.raises(UserError, match="Phase P2 stopped the training: P2 validation top"):
        train_hop(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert not list((tmp_path / "run").glob("checkpoints/*.pt"))


def test_data_that_the_game_does_not_reproduce_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One reward of one row is not what the game pays: P1 measures it and its gate fails."""
    write = collecting._write_rows

    def damaged(config: HuntCollectConfig, folder: Path, quiet: bool, should_stop: Callable[[], bool]) -> None:
        write(config, folder, quiet, should_stop)
        table = pq.read_table(folder / "rows.parquet")
        rewards = table["r"].to_numpy().copy()
        rewards[7] += 1
        pq.write_table(
            table.set_column(table.schema.get_field_index("r"), "r", pa.array(rewards)), folder / "rows.parquet"
        )

    monkeypatch.setattr(collecting, "_write_rows", damaged)
    config = replace(small_training(phases="P1"), pipeline=replace(small_training().pipeline, rows=300))
    with pytest.raises(
        UserError, match=r"Phase P1 stopped the training: P1 replay equality is 0.99\d*, expected at least 1"
    ):
        train_hop(config, RunOptions(output_dir=tmp_path / "run"), quiet=True)
    share = read_run(tmp_path / "run" / "phases" / "p1_data").results["replay_equality"]
    assert 0.99 < share < 1


def test_one_learner_among_rules_is_judged_by_its_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P5: a gate for every rule-based player that is modelled."""
    monkeypatch.setattr(phases, "SINGLE_STEPS", 60)
    sizes = replace(small_training().pipeline, rows=300, gates="warn")
    path = train_hop(
        small_training(phases="P5", pipeline=sizes), RunOptions(output_dir=tmp_path / "run"), quiet=True
    ).path
    (gate,) = json.loads((path / "phases.json").read_text())["P5"]["gates"]
    assert gate["name"] == "P5 excess cross-entropy about NS in seat 2" and gate["limit"] == SINGLE_EXCESS
    single = path / "phases" / "p5_single"
    assert read_metrics(single / "metrics.jsonl")[-1]["moa/1->2/excess"] == gate["value"]
    assert list(single.glob("checkpoints/state_*.pt"))


@pytest.mark.parametrize("answers", [2, 6], ids=["in its warm start", "in its first iteration"])
def test_a_stopped_p5_goes_on_where_it_was(tmp_path: Path, answers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The phase has checkpoints of its own: what it comes to is equal to the bit, and it is not begun again."""
    monkeypatch.setattr(phases, "SINGLE_STEPS", 60)
    data = offline(tmp_path / "data", rows=300)
    sizes = replace(small_training().pipeline, gates="warn")
    config = small_training(phases="P5", pipeline=sizes, load_data=data)
    whole = train_hop(config, RunOptions(output_dir=tmp_path / "whole"), quiet=True).path
    asked = iter([False] * answers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "should_stop", lambda self: next(asked, True))
        stopped = train_hop(config, RunOptions(output_dir=tmp_path / "cut"), quiet=True)
    assert stopped.status == "interrupted"
    path = train_hop(config, RunOptions(output_dir=tmp_path / "cut", resume=True), quiet=True).path
    records = [json.loads((p / "phases.json").read_text())["P5"]["gates"] for p in (whole, path)]
    assert records[0] == records[1]
    states = [sorted((p / "phases" / "p5_single" / "checkpoints").glob("model_iter_*.pt"))[-1] for p in (whole, path)]
    assert_same(*(load_checkpoint(state).state for state in states))


def test_staying_at_the_best(tmp_path: Path) -> None:
    rewards = [1.0] * 10 + [2.0] * 80 + [1.0] * 10
    lines = [json.dumps({"step": i, REWARD: r}) for i, r in enumerate(rewards)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    assert stayed(tmp_path) == pytest.approx(0.5)
    (tmp_path / "metrics.jsonl").write_text("")
    assert stayed(tmp_path) == 0.0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"variant": "hopplus-mcts", "phases": "P6"}, "believes in codes; give a run of `marlab hunt pretrain vae`"),
        ({"variant": "hopplus-mcts", "phases": "P2,P6"}, "There is no offline data: add P1 to --phases"),
        ({"variant": "hopplus-mcts-wm", "phases": "P1,P2,P6"}, "world model; add P3 to --phases, or give --load-wm"),
    ],
)
def test_a_training_that_lacks_something_is_refused_before_it_takes_its_name(
    tmp_path: Path, changes: dict[str, str], told: str
) -> None:
    with pytest.raises(UserError, match=told):
        train_hop(small_training(**changes), RunOptions(output_dir=tmp_path / "run"), quiet=True)
    assert not (tmp_path / "run").exists()
