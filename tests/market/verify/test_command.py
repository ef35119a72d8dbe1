"""The commands' flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.market.verify.command import configs_main, main


def test_wrong_flags_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="worlds"):
        main(["--worlds", "0"])
    with pytest.raises(UserError, match="days"):
        configs_main([str(tmp_path / "c.npz"), "--days", "9", "2"])
    assert not list(tmp_path.iterdir())


def test_configs_are_written_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scml")
    words = ["--count", "1", "--levels", "2", "2", "--factories", "1", "1", "--days", "5", "5"]
    configs_main([str(tmp_path / "c.npz"), *words])
    assert "1 configs" in capsys.readouterr().out and (tmp_path / "c.npz").exists()
