"""How a search is run: its size, its rules, and the faults of the original behind switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from marlab.lab.checks import at_least, positive, share
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class SearchConfig:
    """A tree search of one player. The rules are explained in `marlab.lab.search.rules`."""

    simulations: int = 64
    """Simulations per tree."""
    root: Literal["puct", "gumbel"] = "puct"
    """How actions are tried: PUCT everywhere, or Gumbel sampling with sequential halving at the root."""
    max_depth: int | None = None
    """Longest line of play in a tree; none means as deep as the simulations lead."""
    c1: float = 5.0
    """PUCT: weight of the prior against the normalised values."""
    c2: float = 19652.0
    """PUCT: visits from which on the weight of the prior grows."""
    normalise: Literal["siblings", "tree", "range", "none"] = "siblings"
    """PUCT: bring values to 0..1 by those of a node and its children, of the whole tree, by `value_range`, or not."""
    value_range: tuple[float, float] = (0.0, 1.0)
    """PUCT: the values that become 0 and 1 with `normalise` range."""
    unvisited: Literal["parent", "lowest"] = "parent"
    """PUCT: an action not tried yet counts as much as its node, or as little as the lowest value of the scale."""
    dirichlet_share: float = 0.0
    """PUCT: share of random noise in the priors of the root."""
    dirichlet_alpha: float = 0.03
    """PUCT: concentration of that noise; small values prefer single actions."""
    gumbel_scale: float = 1.0
    """Gumbel: scale of the noise that samples the considered actions; 0 searches without chance."""
    considered: int = 16
    """Gumbel: most actions considered at the root."""
    value_scale: float = 0.1
    """Gumbel: weight of the values against the prior logits."""
    visit_offset: float = 50.0
    """Gumbel: visits added to those of the most visited action in that weight."""
    outcomes: int = 1
    """Sampled outcomes kept per action of a node: 1 freezes the co-players at the first try of an action, more
    resample them as the action is tried again (a new outcome at tries 1, 2, 5, 10, 17, ... up to this many)."""
    engine: Literal["auto", "tensors", "native"] = "auto"
    """Trees as tensors on any device, or in C on a CPU; auto takes C where a compiler is found. The C trees are some
    times faster; the last bits of sums may differ, so a tie may fall otherwise."""
    legacy_q: bool = False
    """The original's Q = W / (1 + N), which shrinks every estimate towards 0 and lets untried actions count 0."""
    legacy_terminal_reward: bool = False
    """The original's backup, which takes a reward only where an episode ends."""

    def __post_init__(self) -> None:
        at_least(self, 1, "simulations", "considered", "outcomes", prefix="search ")
        at_least(self, 0, "gumbel_scale", "value_scale", "visit_offset", prefix="search ")
        if self.max_depth is not None:
            at_least(self, 1, "max_depth", prefix="search ")
        positive(self, "c1", "c2", "dirichlet_alpha", prefix="search ")
        share(self, "dirichlet_share", prefix="search ")
        low, high = self.value_range
        if not low < high:
            raise UserError(f"search value_range is {low:g} to {high:g}, expected a lower and then a higher value.")
        for name, allowed in (
            ("root", ("puct", "gumbel")),
            ("normalise", ("siblings", "tree", "range", "none")),
            ("unvisited", ("parent", "lowest")),
            ("engine", ("auto", "tensors", "native")),
        ):
            if getattr(self, name) not in allowed:
                raise UserError(f"search {name} is {getattr(self, name)!r}, expected one of {', '.join(allowed)}.")
        if self.root == "gumbel" and (self.dirichlet_share or self.legacy_q):
            raise UserError("search root gumbel has its own noise and values: dirichlet_share and legacy_q need puct.")

    @property
    def depth_limit(self) -> int:
        """No line of play is longer than this."""
        return self.simulations if self.max_depth is None else min(self.max_depth, self.simulations)
