"""The whole training, small: resumption, repetition, compat, files, errors, and the commands around it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.utils import parameters_to_vector

from marlab.fish.measure.probe import run_probe
from marlab.fish.sea.stats import MEANS
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.train import FishTrainer, train
from marlab.lab.config import altered
from marlab.lab.errors import UserError
from marlab.lab.report.note import write_note
from marlab.lab.runs.files import read_json
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.testing import assert_resume_equal
from tests.fish.cases import COMPAT, SMALL


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


@pytest.mark.parametrize(("config", "before"), [(SMALL, False), (COMPAT, True)])
def test_probes_play_what_the_update_made_and_in_compat_what_it_found(
    config: FishTrainConfig, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = FishTrainer(altered(config, multi_eval_interval=1))
    played = []

    def watched(*args: Any) -> Any:
        played.append(parameters_to_vector(trainer.net.parameters()).clone())
        return run_probe(*args)

    monkeypatch.setattr("marlab.fish.training.train.run_probe", watched)
    found = parameters_to_vector(trainer.net.parameters()).clone()
    trainer.iterate()
    made = parameters_to_vector(trainer.net.parameters())
    assert torch.equal(played[0], found if before else made) and not torch.equal(found, made)


def test_the_score_of_the_best_model_is_its_survival_and_the_note_has_the_probes(tmp_path: Path) -> None:
    config = altered(
        SMALL, total_iterations=4, curriculum="4:2,6:2", multi_eval_interval=2, best_checkpoint_max_step_one=0,
        best_checkpoint_max_early_death=0, skip_final_eval=True, tail_replay_count=0,
    )  # fmt: skip
    run = train(config, RunOptions(output_dir=tmp_path), quiet=True)
    best = read_json(run.path / "checkpoints" / "best.json", UserError)
    probes = {probe["iteration"]: probe for probe in read_metrics(run.path / "eval_multi_history.jsonl")}
    assert best["score"] == probes[best["step"]]["summary"]["avg_final_survival_rate"]
    note = write_note(run.path)
    assert "## Probes" in note and f"| 4 | {probes[4]['summary']['avg_final_survival_rate']:.4g} |" in note
    told = {"training survival, spread", "first death", "step-one ratio", "last probe step-one ratio"}
    assert told <= set(run.results) and all(f"`{name}`" in note for name in told)
    assert ("last gate stage" in run.results) == ("penalty_gate" in probes[4])


def test_compat_shows_the_latest_hundred_episodes_and_ours_the_iterations() -> None:
    def finished(episodes: int) -> dict[str, Any]:
        counts = [0, episodes] + [0] * 499
        return {**dict.fromkeys(MEANS, float(episodes)), "episodes": episodes, "first_death_histogram": counts}

    ours, theirs = FishTrainer(SMALL), FishTrainer(COMPAT)
    shown = [theirs._window(finished(n))["episodes"] for n in (80, 0, 60, 30, 20)]
    assert shown == [80, 80, 140, 170, 110]
    assert [ours._window(finished(n))["episodes"] for n in (80, 0, 60)] == [80, 0, 60]


def test_phase_changes_lose_nothing_and_compat_loses_the_queue() -> None:
    ours, theirs = FishTrainer(SMALL), FishTrainer(COMPAT)
    for _ in range(4):
        ours.iterate()
        theirs.iterate()
    assert ours.queue.lost == 0 and theirs.queue.lost > 0
    assert int(ours.world.state.exists.sum(1).min()) >= 4
    assert theirs.world.state.exists.sum(1).tolist() == [6] * 64


def test_a_learner_that_is_paid_for_survival_pays_for_its_own_death_and_a_share_of_others() -> None:
    config = altered(SMALL, learning_reward="survival", learning_team=0.25)
    trainer = FishTrainer(config)
    trainer.iterate()
    rollout = trainer.ppo.collect(trainer.learners)
    died = rollout.terminated.float()
    others = (died.sum(-1, keepdim=True) - died) * rollout.acting
    assert died.sum() > 0
    torch.testing.assert_close(rollout.reward, -(died + 0.25 * others))
    assert rollout.reward[~rollout.acting].count_nonzero() == 0


def test_a_share_of_others_deaths_needs_the_reward_for_survival() -> None:
    with pytest.raises(UserError, match="learning_reward=survival"):
        altered(SMALL, learning_team=0.5)


def test_staggered_arenas_end_their_first_episodes_at_different_times() -> None:
    config = altered(SMALL, staggered=True, tail_force_reset_steps=0, n_steps=2)
    trainer, together = FishTrainer(config), FishTrainer(altered(config, staggered=False))
    for each in (trainer, together):
        each.iterate()
    assert len(set(trainer.world.state.t.tolist())) > 3
    assert set(together.world.state.t.tolist()) == {2}


def test_every_row_has_its_iteration_and_survival_is_learned_from_living_fish_only() -> None:
    trainer = FishTrainer(SMALL)
    metrics = trainer.iterate()
    assert metrics["ppo/samples"] <= 64 * 6 * 4
    assert metrics["custom/prewarm_override_episodes"] >= 6  # the initial reset counts


@pytest.mark.long
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
