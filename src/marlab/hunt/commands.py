"""`marlab hunt check | collect | pretrain vae | pretrain world | train`: what they take, and which function works."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.exact.config import CheckConfig
from marlab.hunt.game.config import GAMES
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.planner.config import VARIANTS
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.lab.command import RunCommand, RunVariants
from marlab.lab.flags import parse
from marlab.lab.progress import stage

TRAININGS = Path(__file__).parent / "presets" / "train"
"""Presets of planning agents: sizes of a training together with its game."""

collect = RunCommand("hunt collect", HuntCollectConfig, "marlab.hunt.data.collect:collect", GAMES)
pretrain_goals = RunCommand(
    "hunt pretrain vae", PretrainGoalsConfig, "marlab.hunt.pretraining.run:pretrain_goals", positional=("data",)
)
pretrain_world = RunCommand(
    "hunt pretrain world", PretrainWorldConfig, "marlab.hunt.world_model.pretrain:pretrain_world", positional=("data",)
)
QUICK = "hop_quick"
_ppo = RunCommand("hunt train", PPOTrainConfig, "marlab.hunt.ppo.train:train_ppo", (GAMES, TRAININGS), default=QUICK)
_planners = RunCommand(
    "hunt train", HopTrainConfig, "marlab.hunt.training.run:train_hop", (GAMES, TRAININGS), default=QUICK
)
train = RunVariants("variant", {"ppo": _ppo, "ps-ppo": _ppo, **dict.fromkeys(VARIANTS, _planners)})


def check(argv: Sequence[str]) -> int:
    """0 if every figure agrees, 1 if one differs."""
    config = parse(CheckConfig, argv, prog="marlab hunt check")
    with stage("starting"):  # torch takes its time
        from marlab.hunt.exact.check import check as measure

    report = measure(config, quiet=False)
    print(report.text())
    return 0 if report.passed else 1
