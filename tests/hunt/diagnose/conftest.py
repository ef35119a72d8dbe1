"""One small run of every kind, made once for all tests of this room."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.game.config import game_config
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.train import train_ppo
from marlab.hunt.pretraining.run import pretrain_goals
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.pretrain import pretrain_world
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.runs.files import write_json
from marlab.lab.runs.run import Run, RunOptions

TINY = game_config("msh_tiny")
PPO = PPOTrainConfig(game=TINY, total_steps=256, num_envs=8, ppo=PPOConfig(n_steps=8, batch_size=64), eval_episodes=8)


class Runs:
    """One small run of every kind on the smallest game, each made when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._made: dict[str, Path] = {}

    def __getitem__(self, kind: str) -> Path:
        if kind not in self._made:
            options = RunOptions(output_dir=self.root / kind)
            self._made[kind] = getattr(self, f"_{kind}")(options).path
        return self._made[kind]

    def _data(self, options: RunOptions) -> Run:
        return collect(HuntCollectConfig(TINY, rows=1500), options, quiet=True)

    def _goals(self, options: RunOptions) -> Run:
        config = PretrainGoalsConfig(
            data=self["data"], epochs=2, vae_epochs=1, prototype_epochs=0, belief_games=4, overfit_check=False
        )
        run = pretrain_goals(config, options, quiet=True)
        write_json(run.path / "eval" / "overfit.json", {"loss": 0.305, "floor": 0.3})  # spares 200 steps a diagnosis
        return run

    def _told(self, options: RunOptions) -> Run:
        """Models that are told the shortest ways, as those of the large preset are."""
        config = PretrainGoalsConfig(
            data=self["data"],
            epochs=2,
            vae_epochs=1,
            prototype_epochs=0,
            belief_games=0,
            overfit_check=False,
            paths=True,
        )
        return pretrain_goals(config, options, quiet=True)

    def _world(self, options: RunOptions) -> Run:
        config = PretrainWorldConfig(data=self["data"], rows=0, model="dense", epochs=1)
        return pretrain_world(config, options, quiet=True)

    def _ppo(self, options: RunOptions) -> Run:
        return train_ppo(replace(PPO, seeds="0..1"), options, quiet=True)

    def _reply(self, options: RunOptions) -> Run:
        return train_ppo(replace(PPO, agent_roles="PPO,NS"), options, quiet=True)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def rule_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Offline rows of rule-based players in msh_4x4."""
    out = tmp_path_factory.mktemp("faults") / "data"
    return collect(HuntCollectConfig(rows=8000), RunOptions(output_dir=out), quiet=True).path
