"""`marlab hunt train --variant NAME`: PPO, or agents that plan with beliefs about the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from marlab.hunt.game.config import GAMES
from marlab.hunt.planner.variants import VARIANTS
from marlab.lab.errors import UserError

TRAININGS = Path(__file__).parents[1] / "presets" / "train"
"""Presets of planning agents: sizes of a training together with its game."""
PPO_VARIANTS = ("ppo", "ps-ppo")


def main(argv: Sequence[str]) -> int:
    """`marlab hunt train [--variant ppo|ps-ppo|hop|hopplus|...] [--preset NAME] ...`; without a variant, PPO."""
    words = list(argv)
    variant = _variant(words)
    if {"-h", "--help"} & set(words):
        known = ", ".join((*PPO_VARIANTS, *VARIANTS))
        print(f"--variant is one of {known}; what follows are the settings of {variant}.\n")
    if variant in PPO_VARIANTS:
        from marlab.hunt.ppo.train import main as train_ppo

        return train_ppo(words)
    if variant not in VARIANTS:
        raise UserError(f"--variant is '{variant}', expected one of {', '.join((*PPO_VARIANTS, *VARIANTS))}.")
    return _planners(words)


def _variant(words: list[str]) -> str:
    """The value of --variant; that of a training preset, where one is named; else ppo."""
    chosen = _value(words, "--variant")
    if chosen is not None:
        return chosen
    preset = _value(words, "--preset")
    if preset is not None and (TRAININGS / f"{preset}.toml").exists():
        from marlab.lab.config import load_preset

        return str(load_preset(preset, TRAININGS).values.get("variant", "hopplus-mcts"))
    return "ppo"


def _value(words: list[str], flag: str) -> str | None:
    """What follows the last `flag` among the words, as its own word or after an equals sign."""
    for place in range(len(words) - 1, -1, -1):
        if words[place] == flag and place + 1 < len(words):
            return words[place + 1]
        if words[place].startswith(f"{flag}="):
            return words[place].partition("=")[2]
    return None


def _planners(words: list[str]) -> int:
    from marlab.hunt.ppo.run import start
    from marlab.hunt.selfplay.config import HopTrainConfig
    from marlab.hunt.training.run import train
    from marlab.lab.flags import parse_run

    preset = _value(words, "--preset")
    folder = TRAININGS if preset is not None and (TRAININGS / f"{preset}.toml").exists() else GAMES
    parsed = parse_run(HopTrainConfig, words, prog="marlab hunt train", presets=folder)
    return start(words, parsed, train)
