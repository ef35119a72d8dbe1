"""`marlab hunt train` takes the settings of the variant that is named, by a flag or by a preset."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from marlab.hunt.commands import train
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
    from marlab.hunt.ppo.config import PPOTrainConfig
    from marlab.hunt.selfplay.config import HopTrainConfig

    assert chosen(monkeypatch) == (PPOTrainConfig, "ppo")
    assert chosen(monkeypatch, "--preset", "msh_8x8") == (PPOTrainConfig, "ppo")
    assert chosen(monkeypatch, "--variant=ps-ppo", "--total-steps", "9") == (PPOTrainConfig, "ps-ppo")
    assert chosen(monkeypatch, "--preset", "hop_quick") == (HopTrainConfig, "hop")
    assert chosen(monkeypatch, "--preset=hop_quick", "--variant", "mcts-self") == (HopTrainConfig, "mcts-self")
    assert chosen(monkeypatch, "--variant", "hop", "--preset", "msh_8x8") == (HopTrainConfig, "hop")


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
