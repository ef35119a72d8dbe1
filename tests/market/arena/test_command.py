"""The flags and presets of `marlab market play`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("scml")
from marlab.cli import main
from marlab.market.arena.command import PRESETS, PlayCommand
from marlab.market.arena.plan import Arena


def test_unknown_agents_are_told_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["market", "play", "--agents", "RandomStdAgent", "PenguinAgnt", "--output-dir", str(tmp_path / "run")]
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("marlab: There is no agent PenguinAgnt")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("preset", sorted(file.stem for file in PRESETS.glob("*.toml")))
def test_presets_can_be_planned(preset: str) -> None:
    pytest.importorskip("scml_agents")
    from marlab.lab.config import from_dict, load_preset

    command = from_dict(PlayCommand, load_preset(preset, PRESETS).values, preset)
    config = command.run_config()
    if config.design == "seats":
        from dataclasses import replace

        config = replace(config, agents=("RandomStdAgent",))
    assert len(Arena(config).games(0)) >= len(config.everybody) - 1
