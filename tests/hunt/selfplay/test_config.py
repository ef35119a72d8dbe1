"""Settings of a training of planning agents, and the presets of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.hunt.commands import TRAININGS
from marlab.hunt.commands import train as command
from marlab.hunt.game.config import game_config
from marlab.hunt.selfplay.config import HopTrainConfig, parse_phases
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.lab.config import from_dict, load_preset
from marlab.lab.errors import UserError
from tests.hunt.hop_cases import small_training


def test_phases() -> None:
    assert parse_phases("P0..P2,P6") == ("P0", "P1", "P2", "P6")
    assert parse_phases("auto") is None
    for wrong in ("", "P9", "P3..P1", "1"):
        with pytest.raises(UserError, match="phases is"):
            parse_phases(wrong)
    assert HopTrainConfig(variant="hop").chosen == ("P1", "P2", "P6")  # the models of others are made first
    assert HopTrainConfig(variant="hopplus-mcts-wm").chosen == ("P1", "P2", "P3", "P6")
    assert HopTrainConfig(variant="hopplus-mcts", load_moa=Path("a"), load_data=Path("b")).chosen == ("P6",)


def test_wrong_words(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--variant is 'hip', expected one of ppo, ps-ppo, hop"):
        command(["--variant", "hip"])
    with pytest.raises(UserError, match="believes in codes"):
        SelfPlayTrainer(small_training(variant="hopplus-mcts"))
    with pytest.raises(UserError, match="rollout_share needs the game itself"):
        small_training(variant="hopplus-mcts-wm", rollout_share=0.5)
    with pytest.raises(UserError, match="has no HOP"):
        small_training(agent_roles="NS,NS")


LEARNT_ON = {"hop_far": "msh_far_loose"}
"""Presets that learn on another board than the one they are named after."""


@pytest.mark.parametrize("name", sorted(path.stem for path in TRAININGS.glob("hop_*.toml")))
def test_presets_of_trainings(name: str) -> None:
    preset = load_preset(name, TRAININGS)
    config = from_dict(HopTrainConfig, preset.values, name)
    assert config.guests.share >= 0.5 and "P6" in config.chosen
    assert config.plan.search.max_depth is not None  # a recorded walk always takes as many steps as it may
    if name != "hop_quick":
        assert game_config(LEARNT_ON.get(name, name.replace("hop", "msh"))) == config.game


def test_presets_bring_the_faults_of_the_original_back() -> None:
    habits, faults = (
        from_dict(HopTrainConfig, load_preset(name, TRAININGS).values, name)
        for name in ("original_habits", "original_faults")
    )
    assert habits.plan.legacy_beta == faults.plan.legacy_beta == 2.0 and habits.plan.search.legacy_q
    assert habits.learn.final_learning_rate == habits.learn.learning_rate
    assert habits.learn.replay == habits.num_envs * habits.steps // 2  # about what an iteration brings of each player
    assert faults.game.legacy_global_prev_actions and faults.learn.legacy_double_softmax
    assert faults.learn.legacy_moa_buffer == "rows-after-exit"
    assert not (habits.guard.drop or faults.guard.drop or habits.guests.share or faults.guests.share)
