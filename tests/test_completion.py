"""Shell completion: a script for every shell, and a real bash that completes words, flags, presets and choices."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import shtab

from marlab.cli import main


@pytest.mark.parametrize("shell", shtab.SUPPORTED_SHELLS)
def test_each_shell_has_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", shell]) == 0
    shown = capsys.readouterr().out
    assert "usage:" not in shown
    for word in ("pretrain", "hop_quick", "rotation", "learning-rate"):
        assert word in shown


def test_an_unknown_shell_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", "ksh"]) == 2
    assert "expected one of: bash, zsh" in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_real_bash_completes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", "bash"]) == 0
    (tmp_path / "marlab.sh").write_text(capsys.readouterr().out)

    def completed(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in words)
        typed = f"""
            source {tmp_path / "marlab.sh"}
            COMP_WORDS=({line}) COMP_CWORD={len(words) - 1}
            _shtab_marlab 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        shown = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True, timeout=60).stdout
        return {word.strip() for word in shown.splitlines()}

    assert {"fish", "hunt", "market", "runs"} <= completed("marlab", "")
    assert completed("marlab", "hunt", "pretrain", "w") == {"world"}
    assert {"--preset", "--resume", "--learning-rate"} <= completed("marlab", "fish", "train", "--")
    assert {"best", "quickstart"} <= completed("marlab", "fish", "train", "--preset", "")
    assert completed("marlab", "market", "play", "--design", "") == {"rotation", "seats"}
