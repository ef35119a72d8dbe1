"""The shoal's networks: making them from settings, finding and loading them from checkpoints, and saving them alone.

A *checkpoint* holds all that a training needs to go on; a *policy file* (`save_policy`) only what is needed to play,
some tens of kilobytes. Whatever loads the one loads the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch

from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.constants import ACTION_COUNT
from marlab.fish.training import assemble
from marlab.fish.training.attention import AttendingActorCritic
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.own_frame import OwnFrameActorCritic
from marlab.lab.config import defaults_of, from_dict, to_dict
from marlab.lab.door import nothing_called, shipped_file
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import Activation
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.runs.checkpoint import (
    CheckpointStore,
    Keep,
    building,
    check_sizes,
    load_checkpoint,
    save_checkpoint,
)

Frame = Literal["tank", "own"]
KIND = FishTrainConfig.KIND
PATTERN = "model_iter_{step}.pt"
POLICY = "fish/policy"
"""Kind of a file that holds a policy alone."""
SHIPPED = Path(__file__).parents[1] / "shipped"


@dataclass(frozen=True)
class Trained:
    """A network that is ready to play, and the sea it was trained in."""

    net: ActorCritic = field(repr=False)
    sea: SeaConfig  # with as many fish as its training had at most
    hidden: tuple[int, ...]
    activation: Activation
    step: int
    frame: Frame = "tank"


def make_net(config: FishTrainConfig, generator: torch.Generator | None = None) -> ActorCritic:
    """The policy and value networks of a config, on the CPU."""
    sea, hidden = assemble.sea_config(config), assemble.hidden_sizes(config)
    return net_for(sea, hidden, config.activation, generator, config.policy_frame)


def net_for(
    sea: SeaConfig, hidden: tuple[int, ...], activation: Activation, generator: torch.Generator | None = None,
    frame: Frame = "tank",
) -> ActorCritic:  # fmt: skip
    """The networks for what fish see in a sea."""
    if frame == "own":
        return OwnFrameActorCritic(sea.observation_size, (ACTION_COUNT,), hidden, activation, generator, sea.attends)
    if sea.attends:
        return AttendingActorCritic((ACTION_COUNT,), hidden, activation, generator)
    return ActorCritic(sea.observation_size, (ACTION_COUNT,), hidden, activation=activation, generator=generator)


def checkpoints(run_path: Path, config: FishTrainConfig) -> CheckpointStore:
    """The models of a training in a run directory."""
    return CheckpointStore(run_path / "checkpoints", KIND, PATTERN, Keep(last=2, every=config.checkpoint_interval))


def find_checkpoint(text: str) -> Path:
    """A file as named, the best (else the last) model of a run directory, or a shipped policy; files and runs win."""
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
    if not path.exists():
        shipped = shipped_file(text, SHIPPED)
        if shipped is None:
            raise nothing_called(text, SHIPPED, "a model_iter_N.pt, a run directory")
        return shipped
    return path


def load_policy(path: Path, device: torch.device | str = "cpu") -> Trained:
    """The policy of a checkpoint or of a policy file."""
    checkpoint = load_checkpoint(path)
    if checkpoint.kind not in (POLICY, KIND):
        load_checkpoint(path, KIND)  # says what it is
    state = checkpoint.state
    with building(path, "a fish policy"):
        if checkpoint.kind == POLICY:
            sea = from_dict(SeaConfig, state["sea"], f"the sea in {path}")
            hidden, activation, weights = tuple(state["hidden"]), state["activation"], state["net"]
            frame: Frame = state.get("frame", "tank")
        else:
            config = from_dict(FishTrainConfig, state["config"], f"the config in {path}")
            sea, hidden, activation = assemble.sea_config(config), assemble.hidden_sizes(config), config.activation
            weights, frame = state["ppo"]["net"], config.policy_frame
        inputs = sea.observation_size + (frame == "own")
        check_sizes(path, weights, hidden if sea.attends else (inputs, *hidden))
        net = net_for(sea, hidden, activation, frame=frame)
        net.load_state_dict(weights)
        return Trained(net.to(device).eval(), sea, hidden, activation, checkpoint.step, frame)


def save_policy(trained: Trained, path: Path) -> None:
    """A policy file: the weights, the network's shape, and in what its sea differs from the default one."""
    usual = defaults_of(SeaConfig)
    sea = {name: value for name, value in to_dict(trained.sea).items() if value != usual[name]}
    state: dict[str, Any] = {
        "sea": sea, "hidden": list(trained.hidden), "activation": trained.activation, "frame": trained.frame,
        "net": trained.net.state_dict(),
    }  # fmt: skip
    save_checkpoint(path, POLICY, trained.step, state)
