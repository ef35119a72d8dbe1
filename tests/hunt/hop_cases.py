"""Small planning agents and trainings that the tests share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.others.codes import Codebook, Goals
from marlab.hunt.others.models import GoalModels, ModelSpec, save_goal_models
from marlab.hunt.planner.config import VARIANTS, MindConfig, PlanConfig
from marlab.hunt.planner.mind import PlannerModels
from marlab.hunt.selfplay.config import HopTrainConfig, LearnConfig
from marlab.hunt.world_model.model import make_model
from marlab.lab.search.search import SearchConfig
from tests.hunt.helpers import seeded

PLAN = PlanConfig(trees=2, draws=3, search=SearchConfig(simulations=6, root="gumbel", max_depth=4))
LEARN = LearnConfig(updates=2, batch_size=16, moa_updates=2, moa_batch_size=8, replay=200, warm_updates=3)
TINY = game_config("msh_tiny")


def goals_for(variant: str) -> Goals:
    """Goals of a variant; codes are made up."""
    kind = VARIANTS[variant].goals  # type: ignore[index]
    if kind == "latent":
        return Goals(torch.randn(3, 4, generator=seeded(5)), torch.rand(3, 3, generator=seeded(6)) + 0.1)
    return Goals.hunt() if kind == "hunt" else Goals.none()


def small_mind(
    variant: str = "hop", seeds: tuple[int, ...] = (0,), game: GameConfig = TINY, *, independent: bool = False,
    own_moa: bool = True, **changes: object,
) -> PlannerModels:  # fmt: skip
    config = replace(MindConfig(variant=variant, hidden=8, plan=PLAN), **changes)  # type: ignore[arg-type]
    world = make_model("structured", game, width=8, generator=seeded(3)).eval() if config.parts.world_model else None
    return PlannerModels(game, config, goals_for(variant), seeds, world, independent=independent, own_moa=own_moa)


def small_training(**changes: object) -> HopTrainConfig:
    base = HopTrainConfig(
        variant="hop", phases="P6", game=TINY, num_envs=6, steps=5, total_steps=6 * 5 * 4, hidden=8, plan=PLAN,
        learn=LEARN, eval_episodes=8, load_data=None,
    )  # fmt: skip
    return replace(base, **changes)  # type: ignore[arg-type]


def offline(folder: Path, game: GameConfig = TINY, rows: int = 600) -> Path:
    """A small data set of rule-based players."""
    from marlab.hunt.data.collect import collect
    from marlab.hunt.data.config import HuntCollectConfig
    from marlab.lab.runs.run import RunOptions

    return collect(HuntCollectConfig(game=game, rows=rows), RunOptions(output_dir=folder), quiet=True).path


def small_models(folder: Path, game: GameConfig = TINY) -> Path:
    """Models of others with codes, not trained."""
    models = GoalModels(ModelSpec(game, "history", 4, 8, False), seeded(4))
    third = torch.full((3,), 1 / 3)
    prototypes = torch.randn(3, 4, generator=seeded(5))
    book = Codebook(prototypes, torch.ones(3, 4), third.expand(3, 3), third, torch.full((2, 3), 0.5))
    folder.mkdir(parents=True, exist_ok=True)
    save_goal_models(folder / "models.pt", models, book, 1)
    return folder


def even(batch: int, players: int, goals: int = 2) -> torch.Tensor:
    return torch.full((batch, players, players - 1, goals), 1.0 / goals)
