"""Monte-Carlo tree search for many decisions at once, on any device.

The search knows no game: `expand` plays an action from stored embeddings and says what follows, with prior and value
of the new state. Whatever is random in that step (the other players, say) is drawn inside `expand`. The rules are in
`search_rules`, the growing trees in `search_trees` (tensors) and `search_native` (C, for a CPU).

Letters: B roots, A actions, S simulations, N = S + 1 nodes per tree, K outcomes per action. Node 0 is the root and
simulation s makes node s + 1, or none when it ends in an ended node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.lab.ppo.timing import Stopwatch
from marlab.lab.search.config import SearchConfig
from marlab.lab.search.native import NativeTrees, native_library
from marlab.lab.search.rules import Rows, completed_q, gumbel_root_scores
from marlab.lab.search.trees import (
    Embedding,
    Evaluation,
    Grown,
    RootNoise,
    TensorTrees,
    Transition,
    Trees,
    draw_root_noise,
)

__all__ = [
    "Embedding", "Evaluation", "Expand", "SearchConfig", "SearchResult", "Transition", "Tree", "search",
    "timed_searches",
]  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")
Expand = Callable[[Embedding, Tensor], Transition]
"""(embeddings, actions [B] int64) -> transition. Rows of trees that end early carry arbitrary actions."""


@dataclass(frozen=True)
class Tree:
    """The finished trees of B roots. Ended simulations made no node: those numbers have depth -1."""

    prior: Tensor
    """[B, N, A] prior probabilities, 0 for illegal actions."""
    visits: Tensor
    """[B, N, A] how often each action was tried."""
    q: Tensor
    """[B, N, A] mean return of each action, 0 where never tried."""
    raw_values: Tensor
    """[B, N] value the node was given when it was made."""
    value: Tensor
    """[B, N] mean of a node's own value and of the returns through it."""
    reward: Tensor
    """[B, N] reward on entering the node."""
    discount: Tensor
    """[B, N] weight of what comes after entering, 0 where the episode ended."""
    depth: Tensor
    """[B, N] steps from the root; -1 for nodes never made."""
    children: Tensor
    """[B, N, A, K] node that follows, -1 where there is none."""
    embedding: Embedding
    """Each [B, N, ...]."""

    def line(self, length: int, roots: Tensor, first: Tensor) -> Tensor:
        """[D, length] the plan in the trees `roots` [D] that begins with the actions `first` [D].

        From there on the most visited actions; -1 after the tree's end.
        """
        node, going = torch.zeros_like(roots), torch.ones_like(roots, dtype=torch.bool)
        actions = [first]
        for _ in range(length - 1):
            child = self.children[roots, node, actions[-1].clamp_min(0)].amax(-1)  # the outcome seen last
            going = going & (child >= 0)
            node = torch.where(going, child, node)
            visits = self.visits[roots, node]
            going = going & (visits.sum(-1) > 0)
            actions.append(torch.where(going, visits.argmax(-1), -1))
        return torch.stack(actions, 1)

    def plan_value(self) -> Tensor:
        """[B] what the plan is worth: the value of the root without the exploration that a mean over simulations has.

        From the deepest nodes up, an action is worth the mean of reward + discount * child over its drawn outcomes,
        each of which is one independent draw, and a node is worth as much as its most visited action, the better one
        of equals. The best of all actions would be the one that errors of the values and rare outcomes flatter most.
        A node tried less often than it has actions keeps its own value: its first tries are no choice yet.
        """
        worth, tries = self.raw_values.clone(), self.visits.sum(-1)  # [B, N]
        chosen = (self.depth >= 0) & (tries >= (self.prior > 0).sum(-1).clamp_min(1))
        for depth in range(int(self.depth.max()) - 1, -1, -1):
            root, node = (chosen & (self.depth == depth)).nonzero(as_tuple=True)  # [R]
            child = self.children[root, node]  # [R, A, K]
            drawn, tree, child = child >= 0, root.view(-1, 1, 1), child.clamp_min(0)
            after = self.reward[tree, child] + self.discount[tree, child] * worth[tree, child]
            q = (after * drawn).sum(-1) / drawn.sum(-1).clamp_min(1)  # [R, A]
            visits = self.visits[root, node]
            worth[root, node] = q.masked_fill(visits < visits.amax(-1, keepdim=True), -torch.inf).amax(-1)
        return worth[:, 0]


@dataclass(frozen=True)
class SearchResult:
    """What a search found, one row per root."""

    visits: Tensor
    """[B, A] visits of the root's actions."""
    q: Tensor
    """[B, A] their mean returns; an action never tried has the value of the root."""
    value: Tensor
    """[B] mean return from the root, explored actions included; `tree.plan_value()` leaves them out."""
    policy: Tensor
    """[B, A] improved policy: shares of visits (PUCT) or softmax(logits + completed Q) (Gumbel); 0 if illegal."""
    action: Tensor
    """[B] most visited action (PUCT) or winner of the halving (Gumbel)."""
    depth: Tensor
    """[B] mean length of the simulations in steps."""
    deepest: Tensor
    """[B] longest line of play."""
    ended: Tensor
    """[B] share of simulations that came to an end of the episode."""
    low: Tensor
    """[B] lowest mean return of any action tried in the tree."""
    high: Tensor
    """[B] highest such mean return."""
    grown: Grown
    """All statistics as the search kept them."""
    embedding: Embedding
    """Those of all nodes, each [N, B, ...]."""
    logarithmic: bool
    """Whether `grown` has priors as logarithms."""

    @cached_property
    def tree(self) -> Tree:
        """The finished trees in full; made when first asked for."""
        return _tree(self)


@torch.no_grad()
def search(
    root: Evaluation, embedding: Embedding, expand: Expand, config: SearchConfig,
    generator: torch.Generator | None = None, noise: Tensor | None = None,
) -> SearchResult:  # fmt: skip
    """Search from B roots. `noise` [B, A] replaces the Gumbel noise that would be drawn from `generator`."""
    _check(root, embedding, noise)
    drawn = draw_root_noise(root, config, generator, noise)
    trees = _plant(root, config, drawn)
    store = tuple(part.new_empty(config.simulations + 1, *part.shape) for part in embedding)  # [N, B, ...] each
    flat = tuple(part.view(-1, *part.shape[2:]) for part in store)
    places = list(zip(*(part.unbind(0) for part in store))) if store else [()] * (config.simulations + 1)
    _keep(places[0], embedding)
    watch = _watch.get()
    if watch is not None and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        watch = None  # what is recorded now runs later
    walk, grow = _timed(trees.walk, "select", watch), _timed(trees.grow, "backup", watch)
    expand, finish = _timed(expand, "expand", watch), _timed(_result, "final", watch)
    for simulation in range(config.simulations):
        parent, action = walk(simulation)
        new = expand(tuple([part.index_select(0, parent) for part in flat]), action)
        _keep(places[simulation + 1], new.embedding)
        grow(simulation + 1, new)
    return finish(trees, store, config, drawn)


_watch: ContextVar[Stopwatch | None] = ContextVar("stopwatch of searches", default=None)


@contextmanager
def timed_searches(watch: Stopwatch) -> Iterator[None]:
    """Searches made inside add to the watch what they spend in `select`, `expand`, `backup` and `final`."""
    before = _watch.set(watch)
    try:
        yield
    finally:
        _watch.reset(before)


def _timed(function: Callable[P, R], part: str, watch: Stopwatch | None) -> Callable[P, R]:
    if watch is None:
        return function

    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with watch(part):
            return function(*args, **kwargs)

    return inside


def _keep(place: Embedding, parts: Embedding) -> None:
    """Write the embeddings of all roots' new nodes to their place."""
    for kept, part in zip(place, parts):
        kept.copy_(part)


def _plant(root: Evaluation, config: SearchConfig, noise: RootNoise) -> Trees:
    if config.engine != "tensors" and root.value.device.type == "cpu":
        library = native_library(root.value.dtype, root.logits.shape[1], required=config.engine == "native")
        if library is not None:
            return NativeTrees(library, root, config, noise)
    if config.engine == "native" and root.value.device.type != "cpu":
        raise UserError(f"search engine native runs on a CPU, the roots are on {root.value.device}; use tensors.")
    return TensorTrees(root, config, noise)


def _check(root: Evaluation, embedding: Embedding, noise: Tensor | None) -> None:
    shape = root.logits.shape
    if len(shape) != 2 or not root.value.shape == shape[:1] or not root.legal.shape == shape:
        raise UserError(
            f"A search needs logits [B, A], values [B] and legal actions [B, A] of its roots, "
            f"got {list(shape)}, {list(root.value.shape)} and {list(root.legal.shape)}."
        )
    if any(part.shape[:1] != shape[:1] for part in embedding):
        raise UserError(
            f"Every tensor of a search's embedding needs {shape[0]} rows, one per root, "
            f"got shapes {[list(part.shape) for part in embedding]}."
        )
    if noise is not None and noise.shape != shape:
        raise UserError(f"The root noise of a search needs shape {list(shape)}, got {list(noise.shape)}.")


def _result(trees: Trees, embedding: Embedding, config: SearchConfig, noise: RootNoise) -> SearchResult:
    grown = trees.grown()
    rows = Rows(*(part[:, 0].contiguous() for part in grown.rows))  # the roots
    visits = rows.visits.sum(0)
    value = rows.value(visits)
    if noise.gumbel is None:
        policy = rows.visits / visits.clamp_min(1)
        action = rows.visits.max(0).indices
    else:
        policy = (rows.prior + completed_q(rows, config)).softmax(0).nan_to_num(0.0)
        action = gumbel_root_scores(rows, noise.gumbel, rows.visits.amax(0), config).max(0).indices
    low, high = trees.extremes()
    none = visits == 0  # a root without legal actions
    depth = grown.depth.gather(0, grown.ends)  # [S, B]
    ended = grown.steps[1].gather(0, grown.ends) == 0
    return SearchResult(
        visits=rows.visits.t().contiguous(), q=rows.q(rows.untried(), value).t().contiguous(), value=value,
        policy=policy.t().contiguous(), action=action, depth=depth.to(value.dtype).mean(0),
        deepest=depth.amax(0).to(torch.int64), ended=ended.to(value.dtype).mean(0),
        low=torch.where(none, value, low), high=torch.where(none, value, high), grown=grown, embedding=embedding,
        logarithmic=config.root == "gumbel",
    )  # fmt: skip


def _tree(result: SearchResult) -> Tree:
    """The tables as [B, N, ...], without copies where that is possible."""
    rows, ends = result.grown.rows, result.grown.ends
    number = torch.arange(1, len(ends) + 1, device=ends.device).unsqueeze(1)
    made = torch.cat((torch.ones_like(ends[:1], dtype=torch.bool), ends == number))  # [N, B]
    prior = rows.prior.exp() if result.logarithmic else rows.prior.clamp_min(0)
    q = rows.returns[:-1] / rows.visits.clamp_min(1)
    return Tree(
        prior=prior.permute(2, 1, 0), visits=rows.visits.permute(2, 1, 0), q=q.permute(2, 1, 0),
        raw_values=rows.raw_value.t(), value=rows.value().t(), reward=result.grown.steps[0].t(),
        discount=result.grown.steps[1].t(), depth=torch.where(made, result.grown.depth, -1).t(),
        children=result.grown.children.permute(3, 2, 1, 0).to(torch.int64),
        embedding=tuple(part.transpose(0, 1) for part in result.embedding),
    )  # fmt: skip


RecordedSearch = Callable[[Evaluation, Embedding], SearchResult]
"""Searches from roots of the recorded shapes. On a GPU the next call overwrites the result of the last."""


def record_search(
    root: Evaluation, embedding: Embedding, expand: Expand, config: SearchConfig,
    generator: torch.Generator | None = None, drawn_by_expand: Sequence[torch.Generator] = (),
) -> RecordedSearch:  # fmt: skip
    """A search of roots like the given ones. `drawn_by_expand`: generators that `expand` uses besides `generator`.

    Without a GPU this is `search` itself. With one, weights that `expand` reads may change between calls only in
    place. Set `max_depth`: a recorded walk always takes as many steps as it may, so deep limits cost time.
    """
    if root.value.device.type != "cuda":
        return lambda new_root, new_embedding: search(new_root, new_embedding, expand, config, generator)
    inputs: list[Tensor] = [part.clone() for part in (*root, *embedding)]

    def run() -> SearchResult:
        return search(Evaluation(*inputs[:3]), tuple(inputs[3:]), expand, config, generator)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()  # makes lookup tables and lets libraries choose their kernels, which must not happen while recording
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    for source in {id(g): g for g in (generator, *drawn_by_expand) if g is not None}.values():
        graph.register_generator_state(source)
    with torch.cuda.graph(graph):
        result = run()

    def replay(new_root: Evaluation, new_embedding: Embedding) -> SearchResult:
        for old, new in zip(inputs, (*new_root, *new_embedding)):
            old.copy_(new)
        graph.replay()
        return result

    return replay
