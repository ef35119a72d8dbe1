"""The named variants of planning agents: what they plan with, whom they take the others for, what they believe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

VariantName = Literal[
    "hop", "hopplus", "hopplus-mcts", "hopplus-mcts-wm", "direct-om", "wo-inter", "wo-intra", "mcts-random", "mcts-self"
]


@dataclass(frozen=True)
class Variant:
    """One row of the table of variants."""

    one_step: bool = False  # look one step ahead instead of searching a tree
    world_model: bool = False  # imagine with the world model instead of the game itself
    coplayers: Literal["learned", "random", "self"] = "learned"
    goals: Literal["hunt", "latent", "none"] = "hunt"  # stag and hare, prototypes of codes, or no goals
    inter: bool = True  # beliefs carry over from episode to episode
    intra: bool = True  # beliefs move within an episode


VARIANTS: dict[VariantName, Variant] = {
    "hop": Variant(),
    "hopplus": Variant(one_step=True, world_model=True, goals="latent"),
    "hopplus-mcts": Variant(goals="latent"),
    "hopplus-mcts-wm": Variant(world_model=True, goals="latent"),
    "direct-om": Variant(goals="none"),
    "wo-inter": Variant(inter=False),
    "wo-intra": Variant(intra=False),
    "mcts-random": Variant(coplayers="random", goals="none"),
    "mcts-self": Variant(coplayers="self", goals="none"),
}
