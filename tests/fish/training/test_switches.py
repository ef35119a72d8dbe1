"""Switches between our rules and the original's."""

from __future__ import annotations

from marlab.fish.sea.switches import switches
from marlab.fish.training import assemble
from marlab.fish.training.config import FishTrainConfig
from marlab.lab.config import altered
from tests.fish.training.test_config import command


def test_compat_turns_every_open_switch() -> None:
    ours, compat = FishTrainConfig(), FishTrainConfig(compat=True)
    for read in (lambda config: config.rules, assemble.sea_config):
        both = read(ours), read(compat)
        assert len(switches(type(both[0]))) in (4, 9)
        for name, choices in switches(type(both[0])).items():
            assert tuple(getattr(config, name) for config in both) == choices


def test_a_switch_that_is_set_wins_over_compat() -> None:
    set_one = altered(FishTrainConfig(), compat=True, vision_reward="continuous")
    assert assemble.sea_config(set_one).vision_reward == "continuous"
    assert altered(FishTrainConfig(), lr_progress="phase").rules.lr_progress == "phase"
    config = command("--preset v32 --action-mode per_fish").config
    assert config.rules.action_mode == "per_fish" and assemble.sea_config(config).episode_end == "terminated"
    assert command("--preset v32 --no-compat").config.rules.action_mode == "per_fish"
