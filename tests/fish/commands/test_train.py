"""The fish commands end to end, and wrong flags in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.cli import main as cli


def test_the_commands_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    small = (
        "--curriculum 2:1,3:1 --total-iterations 2 --num_envs 4 --n-steps 16 --policy_hidden_sizes 8 "
        "--skip_final_eval --run_name a --no_neighbor_features"
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
    said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("preparing: ")]
    assert len(said) == 1 and says in said[0]  # on a slow machine a line says what took longer than a second
    assert not (tmp_path / "runs").exists()
