"""`marlab sweep`, from its words to its table: on one machine, on a cluster, killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from marlab.cli import main
from marlab.lab.errors import UserError
from marlab.lab.sweep.config import SweepConfig
from marlab.sweeps import joined, training_of

TINY_FISH = (
    "fish train --set learning_rate=1e-4,1e-3,3e-3 --seeds 0..3 --set total_iterations=3 curriculum=3:3 num_envs=2 "
    "--set n_steps=8 batch_size=16 n_epochs=1 policy_hidden_sizes=4 device=cpu checkpoint_interval=1 "
    "--set multi_eval_interval=3 multi_eval_probe_episodes=2 eval_multi_fish=40 tail_replay_count=0 "
    "--set penalty_gate_phase_allowance=1 skip_final_eval=true include_neighbor_features=off "
    "--set entropy_coef_schedule=1:0.02"
).split()  # fmt: skip


def test_settings_may_be_given_several_times() -> None:
    words = joined("fish train --set a=1 b=2 --seeds 0 --set=c=3 --set d=4,5 --quiet".split(), "--set")
    assert words == "fish train --seeds 0 --quiet --set a=1 b=2 c=3 d=4,5".split()
    assert joined(["fish", "train"], "--set") == ["fish", "train"]


def test_words_name_a_command_and_what_it_works_on() -> None:
    market = training_of(SweepConfig(("market", "train", "runs/market/samples"), start_from="fast"))
    assert (market.words, market.plain, market.preset) == (("market", "train"), ("runs/market/samples",), "fast")
    assert training_of(SweepConfig(("hunt", "pretrain", "vae", "data"))).plain == ("data",)
    for words, sentence in ((("fly",), "'marlab fly' is not a command"), (("hunt", "pretrain"), "is no command yet")):
        with pytest.raises(UserError, match=sentence):
            training_of(SweepConfig(words))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "Say what to train"),
        ("fish fry --set a=1", "'marlab fish fry' is not a command"),
        ("fish train", "nothing to compare"),
        ("fish train --set learning_rat=1,2", "did you mean 'learning_rate'"),
        ("fish train --set learning_rate=1,x", "learning_rate' is 'x', expected a number"),
        ("fish train --set num_envs=0,4", "num_envs"),
        ("fish train --set a=1 --set a=2", "names a twice"),
        ("fish train --preset bset --seeds 0,1", "There is no preset 'bset'"),
        ("fish train --seeds 0,1 --rungs 3 --halving loss", "Is a higher or a lower loss better"),
        ("fish train --seeds 0,1 --engine serial --workers 3", "serial engine has one worker"),
        ("runs --set a=1,2", "makes no run"),
    ],
)
def test_wrong_words_get_one_sentence_before_any_work(
    words: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *words.split()]) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1 and list(tmp_path.iterdir()) == []


def table(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "comparison.json").read_text())
    return found


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "marlab", "sweep", *TINY_FISH, "--output-dir", str(folder), "--workers", "2", *more]
    with (folder.parent / f"{folder.name}.log").open("ab") as log:
        return subprocess.Popen(words, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})


def said(folder: Path) -> str:
    return (folder.parent / f"{folder.name}.log").read_text()


@pytest.mark.long
def test_three_settings_with_four_seeds_are_equal_on_a_machine_on_ray_and_killed_in_the_middle(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    smooth, ray, killed = (tmp_path / name for name in ("smooth", "ray", "killed"))
    assert start(smooth).wait() == 0, said(smooth)
    assert len(table(smooth)["rows"]) == 3 and all(len(row["by_training"]) == 4 for row in table(smooth)["rows"])

    assert start(ray, "--engine", "ray").wait() == 0, said(ray)
    assert table(ray) == table(smooth)

    for finished in (3, 8):  # killed twice, each time in the middle of trainings
        process = start(killed, *(["--resume"] if killed.exists() else []))
        while len(list(killed.glob("trials/*/stats.parquet"))) < finished and process.poll() is None:
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, said(killed)
    assert not (killed / "comparison.json").exists()
    assert start(killed, "--resume").wait() == 0, said(killed)
    assert table(killed) == table(smooth)
    attempts = [len(json.loads(file.read_text())["attempts"]) for file in killed.glob("trials/*/run.json")]
    assert len(attempts) == 12 and 1 in attempts  # what was finished was not trained again
