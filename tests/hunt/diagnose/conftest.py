"""One small run of every kind, made once for all tests of this room."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.game.config import game_config
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.others.pretrain import pretrain_goals
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.train import train_ppo
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.pretrain import pretrain_world
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.runs.run import RunOptions

TINY = game_config("msh_tiny")


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One small run of every kind on the smallest game."""
    root = tmp_path_factory.mktemp("runs")
    data = collect(HuntCollectConfig(TINY, rows=1500), RunOptions(output_dir=root / "offline"), quiet=True).path
    goals = PretrainGoalsConfig(data=data, epochs=2, vae_epochs=1, belief_games=4, overfit_check=False)
    dense = PretrainWorldConfig(data=data, rows=0, model="dense", epochs=1)
    ppo = PPOConfig(n_steps=8, batch_size=64)
    alone = PPOTrainConfig(game=TINY, seeds="0..1", total_steps=256, num_envs=8, ppo=ppo, eval_episodes=8)
    reply = PPOTrainConfig(game=TINY, agent_roles="PPO,NS", total_steps=256, num_envs=8, ppo=ppo, eval_episodes=8)
    return {
        "data": data,
        "goals": pretrain_goals(goals, RunOptions(output_dir=root / "codes"), quiet=True).path,
        "world": pretrain_world(dense, RunOptions(output_dir=root / "dense"), quiet=True).path,
        "ppo": train_ppo(alone, RunOptions(output_dir=root / "ppo"), quiet=True).path,
        "reply": train_ppo(reply, RunOptions(output_dir=root / "reply"), quiet=True).path,
    }
