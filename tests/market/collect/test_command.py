"""The flags of `marlab market collect`."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("scml")
from marlab.cli import main
from marlab.lab.engine.tasks import EngineConfig
from marlab.market.collect.command import CollectCommand
from marlab.market.collect.command import main as collect_main
from marlab.market.collect.plan import MarketCollectConfig


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--experts Pengiun", "no agent Pengiun"),
        ("--max-worlds-per-config 1 --experts RandomStdAgent GreedyStdAgent", "Cannot guarantee fair assignment"),
        ("--parallelism threads", "Unknown parallelism"),
        ("--engine serial --workers 3", "one worker"),
        ("--preset offical", "did you mean 'official'"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_made(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["market", "collect", *words.split(), "--output-dir", str(tmp_path / "run")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_old_words_mean_the_same() -> None:
    command = CollectCommand(parallelism="loky", workers=3)
    assert command.engine_config() == EngineConfig("local", workers=3)
    assert CollectCommand(parallelism="serial").engine_config() == EngineConfig("serial")
    assert CollectCommand().run_config() == MarketCollectConfig()


def test_the_runbooks_smoke_command_is_understood_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    words = """--configs 1 --runs 1 --max-top-2025 2 --max-top-2024 2 --max-worlds-per-config 11 --steps 50
        --parallelism loky --foreground --no-csv --no-auto-collect --forced-logs-fraction 0.1 --resumable -q"""
    parsed = collect_main.parse(words.split())
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 4 and all("has no effect in marlab market collect: " in line for line in said)
    assert parsed.config.steps == 50 and parsed.config.resumable and parsed.config.quiet
    assert parsed.config.engine_config() == EngineConfig("local")
