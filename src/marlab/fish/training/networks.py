"""The shoal's networks: making them from settings, and finding and loading them from checkpoints."""

from __future__ import annotations

from pathlib import Path

import torch

from marlab.fish.sea.constants import ACTION_COUNT
from marlab.fish.training import assemble
from marlab.fish.training.config import FishTrainConfig
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.runs.checkpoint import CheckpointStore, load_checkpoint

KIND = FishTrainConfig.KIND
PATTERN = "model_iter_{step}.pt"


def make_net(config: FishTrainConfig, generator: torch.Generator | None = None) -> ActorCritic:
    """The policy and value networks of a config, on the CPU."""
    size, hidden = assemble.sea_config(config).observation_size, assemble.hidden_sizes(config)
    return ActorCritic(size, (ACTION_COUNT,), hidden, activation=config.activation, generator=generator)


def find_checkpoint(text: str) -> Path:
    """A checkpoint file as named, or the best (else the last) one of a run directory."""
    path = Path(text)
    if not path.exists() and (Path("runs/fish") / text).is_dir():
        path = Path("runs/fish") / text
    if path.is_dir():
        folder = path / "checkpoints" if (path / "checkpoints").is_dir() else path
        store = CheckpointStore(folder, KIND, PATTERN)
        best, steps = store.best(), store.steps()
        if not steps:
            raise UserError(f"{path} holds no checkpoint called {PATTERN.format(step='N')}.")
        return store.path(best[0] if best is not None and best[0] in steps else steps[-1])
    return path


def load_policy(path: Path, device: torch.device) -> tuple[ActorCritic, FishTrainConfig]:
    """The network of a checkpoint, ready to play, and the settings it was trained with."""
    state = load_checkpoint(path, KIND).state
    config = from_dict(FishTrainConfig, state["config"], f"the config in {path}")
    net = make_net(config)
    net.load_state_dict(state["ppo"]["net"])
    return net.to(device).eval(), config
