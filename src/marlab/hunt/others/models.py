"""The models of other agents that belong together (codes and action predictor), and their file.

`models.pt` in a run directory holds the averaged weights of the best epoch, the game they were made for, and the
codebook; loading it into another game or with another goal width is refused in one sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from marlab.hunt.game.config import GameConfig, game_config, game_names
from marlab.hunt.others.codes import Codebook, Goals
from marlab.hunt.others.config import GoalSource
from marlab.hunt.others.history import MEMORY, HistoryEncoder
from marlab.hunt.others.moa import Moa
from marlab.hunt.others.vae import GoalVAE, PlaneDecoder
from marlab.lab.config import from_dict, to_dict
from marlab.lab.runs.checkpoint import CheckpointError, building, check_sizes, load_checkpoint, save_checkpoint

FILE = "models.pt"
KIND = "hunt/goals"


@dataclass(frozen=True)
class ModelSpec:
    """Everything that decides the shape of the models."""

    game: GameConfig
    goal_source: GoalSource
    code_width: int
    hidden: int  # width of the networks' hidden layers
    paths: bool  # whether they are told the shortest ways

    @property
    def goal_width(self) -> int:
        """Width of the goal that the action predictor takes."""
        return {"none": 0, "type": 2, "outcome": 2}.get(self.goal_source, self.code_width)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.game.height, self.game.width, self.game.channels

    @property
    def map_plane(self) -> int | None:
        """The plane of obstacles, which codes need not show; None where there are none."""
        return self.game.players if self.game.max_block_comp else None

    def to_dict(self) -> dict[str, Any]:
        return {**to_dict(self), "preset": preset_of(self.game), "goal_width": self.goal_width}


class GoalModels(nn.Module):
    """Autoencoder and history encoder (where codes are used) and the predictor of actions."""

    def __init__(self, spec: ModelSpec, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.spec = spec
        chance = [generator or torch.Generator()]
        latent = spec.goal_source in ("history", "state")
        self.vae = GoalVAE(spec.shape, spec.code_width, generator) if latent else None
        self.history: HistoryEncoder | None = None
        self.decoder: PlaneDecoder | None = None  # situations from codes and memories: a lesson of the history encoder
        if spec.goal_source == "history":
            self.history = HistoryEncoder(spec.game, spec.code_width, spec.hidden, chance, spec.paths)
            self.decoder = PlaneDecoder(spec.shape, spec.code_width + MEMORY, generator)
        self.moa = Moa(spec.game, spec.goal_width, spec.hidden, chance, paths=spec.paths, free=True)


@dataclass(frozen=True)
class LoadedModels:
    """What `models.pt` holds, ready to use."""

    models: GoalModels
    codebook: Codebook | None
    epoch: int

    @property
    def spec(self) -> ModelSpec:
        return self.models.spec

    @property
    def has_goals(self) -> bool:
        """Whether there are goals that beliefs can be about."""
        return self.codebook is not None or self.spec.goal_source in ("type", "outcome")

    def goals(self) -> Goals:
        """The candidates for beliefs: stag and hare, the codebook's prototypes, or a single empty goal."""
        if self.spec.goal_width == 0:
            return Goals.none()
        if self.spec.goal_source in ("type", "outcome"):
            return Goals.hunt()
        if self.codebook is None:
            raise CheckpointError(f"Models with the goal source '{self.spec.goal_source}' have no goals to believe in.")
        book = self.codebook
        return Goals(book.prototypes, book.outcome, book.goal * book.usage, book.spread)


def preset_of(game: GameConfig) -> str:
    """The shipped preset that is this game, or "custom"."""
    return next((name for name in game_names() if game_config(name) == game), "custom")


def save_goal_models(path: Path, models: GoalModels, codebook: Codebook | None, epoch: int) -> None:
    """Write models with everything needed to check and rebuild them."""
    state = {
        "spec": models.spec.to_dict(),
        "weights": models.state_dict(),
        "codebook": None if codebook is None else codebook._asdict(),
    }
    save_checkpoint(path, KIND, epoch, state)


def load_goal_models(
    path: Path, game: GameConfig | None = None, goal_width: int | None = None, device: torch.device | str = "cpu"
) -> LoadedModels:
    """Read the models of a run directory (or a models.pt); with `game` or `goal_width` any other is refused."""
    file = path / FILE if path.is_dir() else path
    if path.is_dir() and not file.exists():
        raise CheckpointError(f"{path} holds no {FILE}; finish `marlab hunt pretrain vae` there first.")
    saved = load_checkpoint(file, KIND, device)
    with building(file, "models of others"):
        spec_fields = dict(saved.state["spec"])
        preset, width = spec_fields.pop("preset"), spec_fields.pop("goal_width")
        spec = from_dict(ModelSpec, spec_fields, f"the models {file}")
    if game is not None:
        check_grid(file, spec.game, game, preset)
    if goal_width is not None and width != goal_width:
        raise CheckpointError(
            f"The models {file} take goals of width {width} (goal source '{spec.goal_source}'), expected width "
            f"{goal_width}; pretrain with another --goal-source or --code-width."
        )
    with building(file, "models of others"):
        sizes = (spec.hidden, spec.code_width) if spec.goal_source in ("state", "history") else (spec.hidden,)
        check_sizes(file, saved.state["weights"], sizes)
        models = GoalModels(spec).to(device)
        models.load_state_dict(saved.state["weights"])
        models.eval().requires_grad_(False)
        book = saved.state["codebook"]
        return LoadedModels(models, None if book is None else Codebook(**book), saved.step)


def check_grid(file: Path, has: GameConfig, wanted: GameConfig, preset: str) -> None:
    """Refuse models of a game whose observations, actions or time differ; rewards may differ."""
    for name in ("rules", "height", "width", "players", "final_time"):
        a, b = getattr(has, name), getattr(wanted, name)
        if a != b:
            raise CheckpointError(
                f"The models {file} are for another game ({preset}): their {name} is {a}, expected {b}; pretrain on "
                f"data of {preset_of(wanted)}."
            )
