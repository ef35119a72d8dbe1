"""What `import marlab.fish` offers beside its commands: train or load a shoal, and make the environment it knows.

run = fish.train(preset="quickstart")        # or a FishTrainConfig, or settings on top of `best`: fish.train(seed=1)
shoal = fish.load("best")                    # shipped with the package; also a run directory or a checkpoint
env, policy = shoal.env(num_fish=48), shoal.policy()
observation, info = env.reset(seed=0)
observation, reward, terminated, truncated, info = env.step(policy(observation))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from marlab.fish.commands.train import main as train_command
from marlab.fish.sea.config import SeaConfig
from marlab.fish.training.networks import Trained, find_checkpoint, load_policy, save_policy
from marlab.lab.command import OWN_PRESET
from marlab.lab.errors import UserError
from marlab.lab.runs.run import Run

if TYPE_CHECKING:
    from marlab.fish.envs.gym import FishEscapeEnv

Play = Callable[[np.ndarray], np.ndarray]
"""Observations [N, D] to actions [N]."""


@dataclass(frozen=True)
class Shoal:
    """A trained policy with the sea it knows: what it plays and where it plays fit each other."""

    trained: Trained

    @property
    def sea(self) -> SeaConfig:
        return self.trained.sea

    def policy(self, *, greedy: bool = True, seed: int = 0) -> Play:
        """What every fish does: its likeliest action, or one drawn from the policy's distribution."""
        net, generator = self.trained.net, torch.Generator().manual_seed(seed)
        inputs = self.sea.observation_size

        def play(observation: np.ndarray) -> np.ndarray:
            if np.shape(observation)[-1:] != (inputs,):
                raise UserError(
                    f"The policy sees {inputs} numbers per fish, but the observation has the shape "
                    f"{list(np.shape(observation))}; `.env()` makes the environment that fits it."
                )
            with torch.no_grad():
                logits = net.logits(torch.as_tensor(observation, dtype=torch.float32))
            if greedy:
                return logits.argmax(-1).numpy()
            rows = logits.softmax(-1).reshape(-1, logits.shape[-1])
            return torch.multinomial(rows, 1, generator=generator).reshape(logits.shape[:-1]).numpy()

        return play

    def env(self, **settings: Any) -> FishEscapeEnv:
        """The Gymnasium environment of its sea; `settings` are fields of `SeaConfig` and `render_mode`."""
        return make_env(self.sea, **settings)

    def save(self, path: str | Path) -> None:
        """The policy alone as a small file that `fish.load` reads."""
        save_policy(self.trained, Path(path))


@dataclass(frozen=True)
class TrainedRun:
    """A finished training: its run directory, and the shoal that came out of it."""

    run: Run

    @property
    def path(self) -> Path:
        return self.run.path

    @property
    def results(self) -> dict[str, Any]:
        return self.run.results

    @property
    def shoal(self) -> Shoal:
        """The best model by its probes (the last one where nothing was probed)."""
        return load(self.path)

    def policy(self, *, greedy: bool = True, seed: int = 0) -> Play:
        """Observations of `env` to actions."""
        return self.shoal.policy(greedy=greedy, seed=seed)

    def env(self, **settings: Any) -> FishEscapeEnv:
        """The environment that `policy` was trained for."""
        return self.shoal.env(**settings)


def train(*config: Any, preset: str | None = OWN_PRESET, quiet: bool = False, **settings: Any) -> TrainedRun:
    """Train a shoal as `marlab fish train` does, by a `FishTrainConfig`, or by a preset and settings: those of `best`
    where no preset is named, the bare fields with `preset=None`.

    `options`, a `RunOptions`, says where the run is kept; without it below runs/fish/.
    """
    return TrainedRun(train_command.call(*config, preset=preset, quiet=quiet, **settings))


def load(name: str | Path | Run | TrainedRun) -> Shoal:
    """A shoal by the name of a shipped policy, a run (its directory, name or object), or a checkpoint file."""
    text = str(name.path if isinstance(name, Run | TrainedRun) else name)
    return Shoal(load_policy(find_checkpoint(text)))


def make_env(sea: SeaConfig | None = None, *, render_mode: str | None = None, **settings: Any) -> FishEscapeEnv:
    """The whole shoal as a Gymnasium environment: of a sea, of settings, or of a sea with some settings changed."""
    from marlab.fish.envs.gym import FishEscapeEnv

    known = {} if sea is None else {f.name: getattr(sea, f.name) for f in fields(sea)}
    return FishEscapeEnv(render_mode=render_mode, **{**known, **settings})
