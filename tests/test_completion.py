"""Shell completion: a real bash asks for words, flags, presets and choices."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from marlab.cli import main


def complete(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    capsys.readouterr()
    assert main(["--complete", *words]) == 0
    return capsys.readouterr().out.split()


def test_words_flags_presets_and_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"fish", "hunt", "market", "runs"} <= set(complete(capsys, ""))
    assert complete(capsys, "hunt", "pretrain", "w") == ["world"]
    assert {"--preset", "--resume", "--learning-rate"} <= set(complete(capsys, "fish", "train", "--"))
    assert complete(capsys, "fish", "train", "--preset", "be") == ["best"]
    assert complete(capsys, "market", "play", "--design", "") == ["rotation", "seats"]
    assert complete(capsys, "fly", "") == [] and complete(capsys, "fish", "train", "a_file") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", shell]) == 0
    assert "marlab --complete" in capsys.readouterr().out


def test_an_unknown_shell_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", "tcsh"]) == 2
    assert "expected one of: bash, zsh, fish" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_real_bash_completes(tmp_path: Path) -> None:
    command = tmp_path / "marlab"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m marlab "$@"\n')
    command.chmod(0o755)
    typed = f"""
        PATH="{tmp_path}:$PATH"
        eval "$(marlab --completion bash)"
        complete -p marlab
        COMP_WORDS=(marlab hunt w) COMP_CWORD=2; _marlab; echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(marlab fish train --preset q) COMP_CWORD=4; _marlab; echo "${{COMPREPLY[@]}}"
        COMP_WORDS=(marlab fish train some_file) COMP_CWORD=3; _marlab; echo "files: ${{#COMPREPLY[@]}}"
    """
    shown = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True, timeout=120).stdout
    assert shown.splitlines() == ["complete -o default -F _marlab marlab", "watch", "quickstart", "files: 0"]
