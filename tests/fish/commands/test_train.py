"""The fish commands end to end, and wrong flags in one sentence."""

from __future__ import annotations

import os
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import marlab.fish as fish
import marlab.fish.training.train as train_module
from marlab.cli import main as cli
from marlab.fish.commands.train import main as command
from marlab.fish.training.config import PRESETS, FishTrainConfig
from marlab.fish.training.ending import Ending
from marlab.fish.training.forecast import Pace
from marlab.lab.command import RunCommand
from marlab.lab.config import from_dict, load_preset
from tests.fish.training.test_config import V32_COMMAND


def test_the_commands_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = (
        "--preset v32 --no-compat --curriculum 2:1,3:1 --total-iterations 2 --num_envs 4 --n-steps 16 "
        "--policy_hidden_sizes 8 --penalty_gate_phase_allowance 1 --skip_final_eval --run_name a --no_neighbor_features"
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
        (["--tail-seed-stage-spec", "3:nowhere.json"], "nowhere.json"),
        (["--device", "tpu"], "device is 'tpu'"),
        (["--device", "cuda"], "no usable GPU"),
        (
            ["--preset", "best", "--no-penalty-gate-subtract-doomed", "--penalty_gate_success_step_one", "0"],
            "step-one deaths",
        ),
        (["--num-envs", "0"], "num_envs is 0"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    if "cuda" in words and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.chdir(tmp_path)
    assert cli(["fish", "train", *words]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("preparing: ")]
    assert len(said) == 1 and says in said[0]  # on a slow machine a line says what took longer than a second
    assert not (tmp_path / "runs").exists()


def bare(name: str, **settings: Any) -> FishTrainConfig:
    return from_dict(FishTrainConfig, {**load_preset(name, PRESETS).values, **settings}, name)


def test_it_starts_from_the_best_preset_and_the_fields_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = command.parse(["--num-envs", "96"])
    assert parsed.config == bare("best", num_envs=96) and parsed.preset == load_preset("best", PRESETS)
    assert command.parse(["--preset", "pull"]).config == bare("pull")
    seen: list[FishTrainConfig] = []
    monkeypatch.setattr(RunCommand, "function", lambda self: lambda config, options, **more: seen.append(config))
    fish.train(num_envs=96)
    fish.train(preset="pull")
    fish.train(preset=None, num_envs=96)
    fish.train(FishTrainConfig(seed=5))
    assert seen == [parsed.config, bare("pull"), FishTrainConfig(num_envs=96), FishTrainConfig(seed=5)]


def test_the_logs_command_alone_is_given_back_with_its_preset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pasted = shlex.split(V32_COMMAND)
    assert cli(["fish", "train", *pasted]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and not list(tmp_path.iterdir())
    again = shlex.split(said.partition("type: ")[2])
    assert again == ["marlab", "fish", "train", "--preset", "v32", *pasted]
    config = command.parse(again[3:]).config
    assert config.compat and config.iterations == 60 and config.sea.predator_pre_roll_steps == 20
    for words in (["--num_envs=64"], ["--run_name", "a"]):
        assert cli(["fish", "train", *words]) == 2 and "--preset v32 --" in capsys.readouterr().err


SLOW = Pace(step=1.0, gradient=0.1, probe=10.0, ending=10.0)


@pytest.mark.parametrize(("answer", "code"), [("n", 2), ("No", 2), (EOFError(), 2), ("", 0), ("y", 0)])
def test_a_long_training_asks_on_a_terminal_before_anything_is_written(
    answer: str | Exception, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Whoever agrees goes on; here up to the first thing that is done for a training that began."""
    asked: list[str] = []

    def reply(question: str) -> str:
        asked.append(question)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def began(*args: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("marlab.fish.training.train.pace", lambda *_: SLOW)
    monkeypatch.setattr("marlab.fish.training.train.on_a_terminal", lambda: True)
    monkeypatch.setattr("marlab.fish.training.train.drive", began)
    monkeypatch.setattr("builtins.input", reply)
    words = ["fish", "train", "--preset", "quickstart", "--name", "a"]
    assert cli(words) == (code or 130) and asked == ["Start it? [Y/n] "]
    said = capsys.readouterr()
    assert "this training takes about" in said.out and (tmp_path / "runs").exists() is (code == 0)
    assert ("nothing was written; with --yes it is not asked." in said.err) is (code == 2)


@pytest.mark.parametrize("words", [["--yes"], ["--time-limit", "9"]])
def test_who_said_yes_or_a_limit_is_not_asked(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("marlab.fish.training.train.pace", lambda *_: SLOW)
    monkeypatch.setattr("marlab.fish.training.train.on_a_terminal", lambda: True)
    monkeypatch.setattr("marlab.fish.training.train.drive", no)
    monkeypatch.setattr("builtins.input", lambda _: pytest.fail("asked"))
    assert cli(["fish", "train", "--preset", "quickstart", "--name", "a", *words]) == 130
    assert (tmp_path / "runs/fish/a/run.json").exists()


def test_the_question_on_a_real_terminal(tmp_path: Path) -> None:
    """A hundred thousand iterations are long on every machine; Ctrl-D is a no."""
    ours, theirs = os.openpty()
    words = "fish train --preset quickstart --total-iterations 100000 --skip-final-eval --device cpu".split()
    with subprocess.Popen(
        [sys.executable, "-m", "marlab", *words], cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        said, until = b"", time.monotonic() + 120
        while b"Start it?" not in said and time.monotonic() < until:
            if select.select([ours], [], [], 1.0)[0]:
                said += os.read(ours, 4096)
        os.write(ours, b"\x04")
        assert process.wait(60) == 2, said
    os.close(ours)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_the_quickstart_comes_level_with_the_best_script_on_every_seed(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 200 held-out arenas the paired interval reaches 0; figures cost less than half of what learning does."""
    cost = dict.fromkeys(("drive", "_draw"), 0.0)

    def timed(owner: Any, name: str) -> None:
        work = getattr(owner, name)

        def measured(*args: Any, **more: Any) -> Any:
            began = time.process_time()
            try:
                return work(*args, **more)
            finally:
                cost[name] += time.process_time() - began

        monkeypatch.setattr(owner, name, measured)

    monkeypatch.chdir(tmp_path)
    timed(train_module, "drive")
    timed(Ending, "_draw")
    run = fish.train(preset="quickstart", seed=seed, eval_multi_episodes=200, video_num_fish=0, quiet=True)
    difference = run.results["final model: minus side-step"]
    assert difference["high"] >= 0 and run.results["final model: survival"]["value"] > 0.98
    assert cost["_draw"] < 0.5 * cost["drive"]
