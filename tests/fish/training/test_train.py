"""The whole training, small: resumption, repetition, compat, files, errors, and the commands around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from marlab.cli import main as cli
from marlab.fish.measure.config import EvalConfig
from marlab.fish.measure.probe import greedy, run_probe
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.evaluate import evaluate, evaluate_checkpoint
from marlab.fish.training.networks import KIND, PATTERN, find_checkpoint
from marlab.fish.training.train import FishTrainer, train
from marlab.lab.config import altered
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointStore
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.testing import assert_resume_equal

SMALL = altered(
    FishTrainConfig(),
    total_iterations=8,
    num_envs=6,
    curriculum="4:3,6:5",
    n_steps=64,
    batch_size=256,
    n_epochs=2,
    policy_hidden_sizes="16",
    escape_boost_phase_speeds="2:0.78",
    escape_boost_phase_floors="",
    density_penalty_phase_targets="0.0,0.04",
    density_penalty_ramp_phases="2",
    density_penalty_phase_plateaus="",
    density_penalty_lock_until=0,
    penalty_gate_phase_allowance="1,2",
    penalty_gate_success_step_one=-1,
    multi_eval_interval=4,
    multi_eval_probe_episodes=2,
    multi_eval_fixed_episodes=2,
    eval_multi_fish=8,
    eval_multi_episodes=3,
    checkpoint_interval=3,
    tail_seed_stage_spec="2:best_ne.json|type=ne;2:best_sw.json|type=sw",
    tail_force_reset_steps=40,
    tail_replay_count=1,
    video_max_steps=20,
    video_num_fish=5,
    device="cpu",
    threads=1,
)
COMPAT = altered(
    SMALL,
    compat=True,
    num_envs=64,
    n_steps=16,
    tail_force_reset_steps=0,
    tail_replay_count=0,
    multi_eval_fixed_episodes=0,
)


def test_resume_in_the_middle_of_a_phase_with_a_half_used_queue(tmp_path: Path) -> None:
    trainer = FishTrainer(SMALL)
    for _ in range(5):
        trainer.iterate()
    assert 0 < trainer.queue.remaining < trainer.queue.capacity
    assert_resume_equal(lambda: FishTrainer(SMALL), 5, 3, tmp_path, ignore=("time/",))


def test_compat_resumes_too(tmp_path: Path) -> None:
    # The original seeds only its probes; to compare two objects everything has to be seeded.
    config = altered(COMPAT, seed_scope="everything")
    assert_resume_equal(lambda: FishTrainer(config), 2, 2, tmp_path, ignore=("time/",))


def test_compat_is_not_seeded_and_ours_is() -> None:
    def first_rows(config: FishTrainConfig) -> list[dict[str, Any]]:
        rows = []
        for _ in range(2):
            metrics = FishTrainer(config).iterate()
            rows.append({k: v for k, v in metrics.items() if not k.startswith("time/")})
        return rows

    same, different = first_rows(SMALL), first_rows(COMPAT)
    assert same[0] == same[1]
    assert different[0] != different[1]


def test_phase_changes_lose_nothing_and_compat_loses_the_queue() -> None:
    ours, theirs = FishTrainer(SMALL), FishTrainer(COMPAT)
    for _ in range(4):
        ours.iterate()
        theirs.iterate()
    assert ours.queue.lost == 0 and theirs.queue.lost > 0
    assert int(ours.world.state.exists.sum(1).min()) >= 4
    assert theirs.world.state.exists.sum(1).tolist() == [6] * 64


def test_every_row_has_its_iteration_and_survival_is_learned_from_living_fish_only() -> None:
    trainer = FishTrainer(SMALL)
    metrics = trainer.iterate()
    assert metrics["ppo/samples"] <= 64 * 6 * 4
    assert metrics["custom/prewarm_override_episodes"] >= 6  # the initial reset counts


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "small"
    train(SMALL, RunOptions(output_dir=path), quiet=True)
    return path


def test_all_files_of_a_run_exist(finished: Path) -> None:
    info = read_run(finished)
    assert info.status == "finished"
    assert [s["name"] for s in info.stages] == ["phase 1: 4 fish", "phase 2: 6 fish"]
    assert "best model: survival" in info.results or "final model: survival" in info.results
    for name in (
        "config.json", "metrics.jsonl", "stats.jsonl", "stats.parquet", "schedule_trace.json",
        "eval_multi_history.jsonl", "penalty_stage_debug.jsonl", "pre_roll_stats.jsonl", "step_one_clusters.jsonl",
        "step_one_worst_seeds.json", "step_one_stage_summary.json", "log.txt",
    ):  # fmt: skip
        assert (finished / name).stat().st_size > 0, name
    figures = {p.name.removeprefix("small_") for p in (finished / "figures").iterdir()}
    for name in ("survival", "first_death", "penalty_vs_first_death", "penalty_vs_entropy", "multi_eval_timeline",
                 "step_one_heading_polar", "iter004_death_hist", "iter008_death_hist", "step_one_by_type"):  # fmt: skip
        assert f"{name}.png" in figures
    films = sorted(p.name for p in (finished / "media").iterdir())
    assert "small_curve.gif" in films
    assert sum(name.startswith("small_iter008_tail_rank0") for name in films) == 1
    assert sum(p.name == "multi_fish_eval.mp4" for p in (finished / "eval").rglob("*")) >= 1


def test_one_row_per_iteration_from_one_on(finished: Path) -> None:
    rows = read_metrics(finished / "stats.jsonl")
    assert [r["iteration"] for r in rows] == list(range(1, 9))
    assert pq.read_table(finished / "stats.parquet")["iteration"].to_pylist() == list(range(1, 9))
    assert [r["num_fish"] for r in rows] == [4] * 3 + [6] * 5


def test_tensorboard_has_every_tag(finished: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished / "tb"))
    events.Reload()
    tags = set(events.Tags()["scalars"])
    for tag in (
        "episode/length", "episode/reward", "time/steps_per_second", "ppo/approx_kl", "ppo/clip_fraction",
        "ppo/explained_variance", "ppo/learning_rate", "ppo/loss", "ppo/policy_loss",
        "ppo/value_loss", "custom/avg_survival_rate", "custom/final_num_alive", "custom/avg_num_alive",
        "custom/density_penalty_coef", "custom/entropy_coef", "custom/escape_boost_speed",
        "custom/step_one_death_count", "custom/prewarm_override_ratio", "custom/tail_stage_index",
        "custom/tail_queue_remaining", "multi_eval/avg_final_survival_rate", "multi_eval_death/p10",
    ):  # fmt: skip
        assert tag in tags, tag


def test_a_film_shows_exactly_the_probed_episode(finished: Path) -> None:
    probe = read_metrics(finished / "eval_multi_history.jsonl")[-1]
    [film] = probe["tail_replays"]
    worst = min(e["final_num_alive"] for e in probe["episodes"])
    assert film["final_num_alive"] == worst == probe["episodes"][film["episode"]]["final_num_alive"]
    assert film["frames"] == 21 and (finished / film["path"]).stat().st_size > 1000


def test_two_probes_of_one_policy_are_identical() -> None:
    trainer = FishTrainer(SMALL)
    cfg = altered(trainer.sea, num_fish=8)
    a, b = (run_probe(greedy(trainer.net), cfg, [3, 4, 5]) for _ in range(2))
    assert (a.death_steps == b.death_steps).all() and (a.total_reward == b.total_reward).all()


def test_interrupted_and_resumed_equals_smooth(finished: Path, tmp_path: Path) -> None:
    """The time limit stops the run after an iteration; resuming gives the tables of the run that never stopped."""
    run = train(SMALL, RunOptions(output_dir=tmp_path / "small", time_limit=0.001), quiet=True)
    assert read_run(run.path).status == "interrupted"
    train(SMALL, RunOptions(output_dir=tmp_path / "small", resume=True), quiet=True)
    assert read_run(run.path).status == "finished"
    for file in ("stats.jsonl", "penalty_stage_debug.jsonl"):
        a, b = (read_metrics(path / file) for path in (finished, run.path))
        for row in (*a, *b):
            row.pop("time")
        assert a == b, file


def test_eval_compares_with_the_ladder_and_the_ceiling(finished: Path, tmp_path: Path) -> None:
    settings = EvalConfig(str(finished), episodes=4, fish=6)
    report = evaluate_checkpoint(find_checkpoint(str(finished)), settings, tmp_path)
    assert set(report.scores) == {"policy", "random", "hold", "brake", "flee", "south", "sidestep"}
    assert report.bounds is not None and 0.5 < report.bounds[0] <= report.bounds[1] <= 1.0
    for score in report.scores.values():
        assert score.survival.mean() <= report.bounds[1] + 1e-9
    saved = json.loads((tmp_path / "eval_multi_summary.json").read_text())
    assert saved["policies"]["policy"]["survival"] == pytest.approx(float(report.scores["policy"].survival.mean()))


@pytest.mark.parametrize("neighbours", [False, True])
def test_watch_films_checkpoints_of_both_widths(
    tmp_path: Path, neighbours: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = FishTrainer(altered(SMALL, include_neighbor_features=neighbours))
    store = CheckpointStore(tmp_path, KIND, PATTERN)
    path = store.save(1, trainer.state_dict())
    words = [str(path), "--film", str(tmp_path / "a.mp4"), "--steps", "30", "--fish", "5", "--size", "200"]
    assert cli(["fish", "watch", *words]) == 0
    assert "31 frames" in capsys.readouterr().out
    assert (tmp_path / "a.mp4").stat().st_size > 1000


def test_the_commands_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = (
        "--total_iterations 2 --num_envs 4 --n-steps 16 --num_fish 3 --policy_hidden_sizes 8 --skip_final_eval "
        "--run_name a --no_neighbor_features --penalty_gate_required_successes 0 --curriculum="
    ).split()
    assert cli(["fish", "train", *small]) == 0
    assert cli(["fish", "train", *small]) == 2  # it is there already
    assert "add --resume" in capsys.readouterr().err
    assert cli(["fish", "eval", "a", "--episodes", "2", "--fish", "3", "--no-ceiling"]) == 0
    assert "sidestep" in capsys.readouterr().out
    assert cli(["note", "fish/a"]) == 0
    assert "--no_neighbor_features" in capsys.readouterr().out
    assert cli(["runs"]) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--curriculum", "15:9", "--total-iterations", "60"], "60"),
        (["--tail_seed_stage_spec", "3:nowhere.json"], "nowhere.json"),
        (["--device", "tpu"], "device is 'tpu'"),
        (["--device", "cuda"], "no usable GPU"),
        (
            ["--preset", "best", "--no-penalty-gate-subtract-doomed", "--penalty_gate_success_step_one", "0"],
            "step-one deaths",
        ),
        (["--num_envs", "0"], "num_envs is 0"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    if "cuda" in words and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.chdir(tmp_path)
    assert cli(["fish", "train", *words]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_foreign_checkpoint_is_refused(tmp_path: Path) -> None:
    CheckpointStore(tmp_path, "hunt/ppo", PATTERN).save(1, {})
    with pytest.raises(UserError, match="written by 'hunt/ppo'"):
        evaluate(EvalConfig(str(tmp_path / "model_iter_1.pt")), RunOptions(output_dir=tmp_path / "eval"))
    assert not (tmp_path / "eval").exists()
