"""The settings of a planning agent: its shape, how it plans, how its beliefs move."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from marlab.hunt.others.config import TRAINING_DISCOUNT, BeliefConfig
from marlab.lab.checks import WIDEST, at_least, at_most
from marlab.lab.errors import UserError
from marlab.lab.search.config import SearchConfig

VariantName = Literal[
    "hop", "hopplus", "hopplus-mcts", "hopplus-mcts-wm", "direct-om", "wo-inter", "wo-intra", "mcts-random", "mcts-self"
]


Engine = Literal["auto", "tensors", "native", "graph"]


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


@dataclass(frozen=True)
class PlanConfig:
    """How a player plans."""

    trees: int = 5
    """Goal combinations drawn from the belief per decision; each gets its own tree."""
    search: SearchConfig = field(default_factory=lambda: SearchConfig(simulations=64, max_depth=12))
    """The search of one tree."""
    draws: int = 16
    """One-step look-ahead: draws of goals and of the others' actions for every action of its own."""
    gamma: float = 0.95
    """Discount per step."""
    target: Literal["improved", "boltzmann"] = "improved"
    """The planned policy is softmax(log prior + beta Q), or softmax(beta Q) as in the paper."""
    beta_end: float = 25.0
    """beta at the end of training (it rises from 5) and in evaluation, on Q normalised to 0..1 by the values found in
    the decision's trees."""
    engine: Engine = "auto"
    """How a search imagines: in tensors; native, in C on a CPU at play, where last bits of values may differ (trainings
    keep tensors); graph, as one CUDA graph per size of batch, in trainings too; auto takes native or graph at play."""
    legacy_beta: float = 0.0
    """If above 0: softmax of this times the raw Q, as the original did."""

    def __post_init__(self) -> None:
        if self.trees < 1 or self.draws < 1:
            raise UserError(f"trees is {self.trees} and draws is {self.draws}, expected 1 or more of both.")
        if not 0 < self.gamma <= 1:
            raise UserError(f"gamma is {self.gamma:g}, expected a value above 0 and at most 1.")
        if min(self.beta_end, self.legacy_beta) < 0:
            raise UserError("beta_end and legacy_beta must be 0 or more.")


@dataclass(frozen=True)
class MindConfig:
    """Everything that decides the shape and the use of a mind."""

    variant: VariantName = "hopplus-mcts"
    """What is planned with, whom the others are taken for, what is believed."""
    hidden: int = 128
    """Width of the networks' two hidden layers."""
    paths: bool = False
    """Networks are also told the shortest ways to stag and hare; otherwise they read them off the map, or do not."""
    plan: PlanConfig = field(default_factory=PlanConfig)
    """How a player plans."""
    belief: BeliefConfig = field(default_factory=lambda: BeliefConfig(discount=TRAINING_DISCOUNT))
    """How beliefs move (intra and inter are the variant's); evaluation forgets faster, see `load_hop`."""
    exact_step: bool = False
    """Use the game itself where the variant has a world model: what is left of a difference is the model's error."""

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise UserError(f"variant is '{self.variant}', expected one of {', '.join(VARIANTS)}.")
        at_least(self, 1, "hidden")
        at_most(self, WIDEST, "hidden")

    @property
    def parts(self) -> Variant:
        return VARIANTS[self.variant]

    @property
    def beliefs(self) -> BeliefConfig:
        return replace(self.belief, inter=self.parts.inter, intra=self.parts.intra)

    def with_trees(self, trees: int) -> PlanConfig:
        """How it plans with so many trees; who looks one step ahead makes as many draws."""
        return replace(self.plan, trees=trees, draws=trees if self.parts.one_step else self.plan.draws)
