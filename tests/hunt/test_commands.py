"""`marlab hunt train` takes the settings of the variant that is named, by a flag or by a preset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from marlab.cli import main
from marlab.hunt.commands import train
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.lab.command import RunCommand
from marlab.lab.errors import UserError


def chosen(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[type, str]:
    """The config that the words lead to, and its variant."""
    seen = []

    def parse_only(self: RunCommand, argv: Sequence[str]) -> int:  # type: ignore[type-arg]
        seen.append(self.parse(argv).config)
        return 0

    monkeypatch.setattr(RunCommand, "__call__", parse_only)
    assert train(words) == 0
    return type(seen[0]), seen[0].variant


def test_the_variant_decides_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch, "--game.width", "5") == (PPOTrainConfig, "ppo")
    assert chosen(monkeypatch, "--preset", "msh_8x8") == (PPOTrainConfig, "ppo")
    assert chosen(monkeypatch, "--variant=ps-ppo", "--total-steps", "9") == (PPOTrainConfig, "ps-ppo")
    assert chosen(monkeypatch, "--preset", "hop_quick") == (HopTrainConfig, "hop")
    assert chosen(monkeypatch, "--preset=hop_quick", "--variant", "mcts-self") == (HopTrainConfig, "mcts-self")
    assert chosen(monkeypatch, "--variant", "hop", "--preset", "msh_8x8") == (HopTrainConfig, "hop")


def test_who_names_no_start_trains_the_small_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    small = train.choose(["--preset", "hop_quick"]).parse(["--preset", "hop_quick"])
    alone = train.choose(["--seeds", "3"]).parse(["--seeds", "3"])
    assert alone.config == replace(small.config, seeds="3") and alone.preset == small.preset
    for words in (["--variant", "hop"], ["--game.width=5"]):
        named = train.choose(words).parse(words)
        assert named.preset is None and named.config.total_steps == type(named.config).total_steps
    seen: list[tuple[Any, Any]] = []
    work = lambda config, options, *, preset, quiet: seen.append((config, preset))  # noqa: E731
    monkeypatch.setattr(RunCommand, "function", lambda self: work)
    train.call(seeds="3")
    train.call(preset=None)
    train.call(variant="hop")
    assert seen == [(alone.config, small.preset), (PPOTrainConfig(), None), (HopTrainConfig(variant="hop"), None)]


def test_wrong_variants_are_refused() -> None:
    with pytest.raises(UserError, match="--variant is 'hip', expected one of ppo, ps-ppo, hop"):
        train(["--variant", "hip"])
    with pytest.raises(UserError, match="--variant needs one of ppo"):
        train(["--variant"])


def test_help_names_variants_and_both_kinds_of_presets(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train(["--variant", "hop", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "--variant is one of ppo, ps-ppo, hop," in said and "hop_quick" in said and "msh_8x8" in said


@pytest.mark.long
def test_six_players_on_12x12_go_through_all_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is tied to four: data, PPO, planning agents, a score card of both, a film."""
    monkeypatch.chdir(tmp_path)
    game = ("--preset", "msh_12x12_6p")
    assert main(["hunt", "collect", *game, "--rows", "900", "--name", "data"]) == 0
    short = ("--num-envs", "2", "--eval-episodes", "2")
    assert main(["hunt", "train", "--variant", "ppo", *game, "--total-steps", "128", *short, "--name", "ppo"]) == 0
    plan = ("--plan.trees", "1", "--plan.search.simulations", "2", "--learn.updates", "1", "--learn.warm-updates", "2",
            "--learn.moa-updates", "1", "--pipeline.gates", "warn")  # fmt: skip
    mind = ("--variant", "hop", "--load-data", "runs/hunt/data", "--total-steps", "4", "--steps", "2", *plan)
    assert main(["hunt", "train", *game, *mind, *short, "--name", "hop"]) == 0
    protocol = ("--runs", "4", "--steps", "60", "--window", "60", "--episodes", "2", "--no-figures")
    parts = ("--parts", "self-play", "scenarios", "--scenarios", "visit_lone_hunter", "self_play")
    assert main(["hunt", "eval", "hop", "--agents", "ppo", *protocol, *parts, "--name", "card"]) == 0
    assert main(["hunt", "watch", "hop", "--team", "NS+4NH", "--seat", "6", "--seconds", "0.1"]) == 0
    said = capsys.readouterr().out
    assert "Self-play: 6 copies" in said and "visit_lone_hunter" in said
    assert (tmp_path / "runs/hunt/hop/media/episode.json").exists()
    assert main(["hunt", "watch", "hop", "--team", "3NS"]) == 2
    assert "The team '3NS' has 3 members, expected 5." in capsys.readouterr().err
