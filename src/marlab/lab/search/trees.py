"""The trees of a search in the making, as tensors on any device.

How it is fast: what a node tries next depends on its own statistics alone, and these change only when a simulation
passes through. So every node remembers its choice, walking down a tree is following stored links, and the choices on
a path are renewed together after the backup, for all roots and depths in one pass. An action without a child links
back to its own node, so a walk that has arrived stays where it is and no masks are needed.

Letters: B roots, A actions, S simulations, N = S + 1 nodes per tree, K outcomes per action, L steps of a walk. Within
this file a node of a root has the number node * B + root, and tables keep actions first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from marlab.lab.search.config import SearchConfig
from marlab.lab.search.rules import (
    Rows,
    dirichlet_prior,
    gumbel_noise,
    gumbel_root_scores,
    gumbel_scores,
    halving_table,
    puct_scores,
)

Embedding = tuple[Tensor, ...]
"""What `expand` needs to know of a state: any number of tensors [B, ...]."""


class Evaluation(NamedTuple):
    """A state as the player sees it."""

    logits: Tensor
    """[B, A] logits of the prior."""
    value: Tensor
    """[B] expected discounted return from here on."""
    legal: Tensor
    """[B, A] whether an action is legal; a state without legal actions is not searched further."""


class Transition(NamedTuple):
    """What follows an action."""

    reward: Tensor
    """[B] reward of the step."""
    discount: Tensor
    """[B] weight of what comes after; 0 where the episode ends for the player."""
    evaluation: Evaluation
    """The new state; ignored where the episode has ended."""
    embedding: Embedding
    """The new state, for later steps."""
    outcome: Tensor | None = None
    """[B] integer name of what was drawn; equal outcomes of an action share one child (`outcomes` above 1)."""


class Grown(NamedTuple):
    """All statistics of the trees of B roots, as views where possible."""

    rows: Rows
    """Of all nodes: [A, N, B] where `Rows` says [A, R]."""
    steps: Tensor
    """[2, N, B] reward and discount on entering."""
    depth: Tensor
    """[N, B] steps from the root; meaningless for numbers that no simulation made."""
    children: Tensor
    """[K, A, N, B] node that follows, -1 where there is none."""
    ends: Tensor
    """[S, B] node where each simulation ended; simulation s made node s + 1 if that is its end."""


class Trees(Protocol):
    """Trees that grow by one simulation at a time."""

    def walk(self, simulation: int) -> tuple[Tensor, Tensor]:
        """Follow the rules from every root: numbers (node * B + root) [B] of where they lead, and what to do there."""

    def grow(self, node: int, new: Transition) -> None:
        """Make node number `node` of every tree from what followed, and take its value into the statistics."""

    def extremes(self) -> tuple[Tensor, Tensor]:
        """[B] lowest and highest mean return of any action tried in each tree, infinite where none was."""

    def grown(self) -> Grown:
        """The statistics of all nodes."""


class RootNoise(NamedTuple):
    """Chance at the root, drawn once before a search."""

    prior: Tensor | None
    """[A, B] PUCT with Dirichlet noise: the priors of the root."""
    gumbel: Tensor | None
    """[A, B] Gumbel noise."""
    considered: Tensor | None
    """[S, B] Gumbel: visits of the actions considered in each simulation."""


def draw_root_noise(
    root: Evaluation, config: SearchConfig, generator: torch.Generator | None, noise: Tensor | None
) -> RootNoise:
    """`noise` [B, A], if given, replaces the Gumbel noise."""
    if config.root == "gumbel":
        drawn = gumbel_noise(root.logits, config, generator) if noise is None else noise
        return RootNoise(None, drawn.t().to(root.value.dtype), halving_table(root.legal.t(), config))
    if config.dirichlet_share > 0:
        return RootNoise(dirichlet_prior(prior_rows(root, config), config, generator), None, None)
    return RootNoise(None, None, None)


def prior_rows(evaluation: Evaluation, config: SearchConfig) -> Tensor:
    """[A, B] priors as `Rows` has them."""
    illegal = ~evaluation.legal.t()
    logits = evaluation.logits.t().masked_fill(illegal, -torch.inf)
    prior = logits.log_softmax(0) if config.root == "gumbel" else logits.softmax(0)
    return prior.masked_fill_(illegal, -torch.inf)


@lru_cache(maxsize=32)
def slot_table(outcomes: int, simulations: int, device: torch.device) -> Tensor:
    """[S + 1] which outcome the n-th further visit of an action follows.

    A new one whenever there are fewer than the root of the visits, up to `outcomes`; else the one followed least.
    """
    used: list[int] = []
    order = []
    for visit in range(simulations + 1):
        if len(used) < min(outcomes, int(visit**0.5) + 1):
            used.append(0)
            slot = len(used) - 1
        else:
            slot = used.index(min(used))
        used[slot] += 1
        order.append(slot)
    return torch.tensor(order, device=device)


class TensorTrees:
    """Trees as tensors. Everything is allocated at the start, and nothing waits for a device other than a CPU."""

    def __init__(self, root: Evaluation, config: SearchConfig, noise: RootNoise) -> None:
        batch, actions = root.logits.shape
        nodes = config.simulations + 1
        size, like = nodes * batch, root.value
        self.config, self.noise = config, noise
        self.batch, self.actions, self.size = batch, actions, size
        self.cpu = like.device.type == "cpu"
        self.table = like.new_zeros(3 * actions + 1, size)
        """prior, visits, returns and own value of every node: the columns that `Rows` cuts apart."""
        self.steps = like.new_zeros(2, size + 1)
        """reward and discount on entering; at the end the step of a walk that stays: it earns and loses nothing."""
        self.steps[1] = 1.0
        self.open = torch.zeros(size, dtype=torch.bool, device=like.device)
        """Whether a node may get children."""
        self.depth = torch.zeros(size, dtype=torch.int64, device=like.device)
        own_number = torch.arange(size, device=like.device)
        self.numbers = own_number.view(nodes, batch)
        self.roots = self.numbers[0]
        self.children = own_number.repeat(config.outcomes * actions)  # [K, A, size], flat
        self.next = own_number.clone()
        """Where a simulation goes from each node: a child, or the node itself if it has to be made or there is none."""
        self.choice = torch.zeros_like(own_number)
        """The action tried next at each node."""
        self.outcome = torch.full_like(own_number, -1) if config.outcomes > 1 else None
        self.slots = slot_table(config.outcomes, config.simulations, like.device) if config.outcomes > 1 else None
        self.low, self.high = root.value.clone(), root.value.clone()
        self.ends: list[Tensor] = []
        self.path = own_number.new_empty(config.depth_limit + 2, batch)
        self.path[0] = self.roots
        self.path_levels = self.path.unbind(0)
        self.returns = like.new_empty(config.depth_limit + 1, batch)
        self.return_levels = self.returns.unbind(0)
        self.length = 0
        """Steps of the last walk."""
        self._place(0, root)
        if noise.prior is not None:
            self.table[:actions, :batch] = noise.prior
        self.open[:batch] = root.legal.any(1)
        self._renew(self.roots, 0)

    # --- one simulation -----------------------------------------------------------------------------------------

    def walk(self, simulation: int) -> tuple[Tensor, Tensor]:
        """All walks take as many steps as the longest may need; those that arrive earlier stay where they are.

        On a CPU that number is known. Elsewhere asking for it would make the host wait, so it is the most possible.
        """
        longest = min(simulation, self.config.depth_limit)
        length = min(self.length + 1, longest) if self.cpu else longest
        path = self.path_levels
        for level in range(length):
            torch.index_select(self.next, 0, path[level], out=path[level + 1])
        if self.cpu and length and torch.equal(path[length], path[length - 1]):
            length -= 1  # the longest walk did not grow
        self.length = length
        return path[length], self.choice.index_select(0, path[length])

    def grow(self, node: int, new: Transition) -> None:
        config, parent = self.config, self.path_levels[self.length]
        action = self.choice.index_select(0, parent)
        grows = self.open.index_select(0, parent)
        here = slice(node * self.batch, (node + 1) * self.batch)
        self._place(node, new.evaluation)
        goes_on = new.discount != 0
        self.steps[0, here] = new.reward * ~goes_on if config.legacy_terminal_reward else new.reward
        self.steps[1, here] = new.discount
        goes_on = goes_on & new.evaluation.legal.any(1)
        depth = self.depth.index_select(0, parent) + 1
        self.depth[here] = depth
        limited = config.depth_limit < config.simulations
        self.open[here] = goes_on & (depth < config.depth_limit) if limited else goes_on
        number, link = self.numbers[node], self._edge(parent, action)
        if self.slots is not None:
            first, link = link, link + self._slot(parent, action) * (self.actions * self.size)
            number = self._known(first, number, new.outcome, here)
        end = torch.where(grows, number, parent, out=self.path_levels[self.length + 1])
        self.children.scatter_(0, link, end)
        self.ends.append(end.clone())
        self._renew(self._back_up(self.length + 1), node)

    def _place(self, node: int, evaluation: Evaluation) -> None:
        here = slice(node * self.batch, (node + 1) * self.batch)
        self.table[: self.actions, here] = prior_rows(evaluation, self.config)
        self.table[-1, here] = evaluation.value

    def _known(self, first: Tensor, number: Tensor, outcome: Tensor | None, here: slice) -> Tensor:
        """[B] the child that an equal outcome of the same action already has, else the node just made, `number`.

        `first` [B] is where the action's first outcome is linked.
        """
        if outcome is None:
            return number
        assert self.outcome is not None
        self.outcome[here] = outcome
        stride = self.actions * self.size
        slots = torch.arange(self.config.outcomes, device=first.device).unsqueeze(1) * stride
        siblings = self.children.index_select(0, (first + slots).reshape(-1)).view(-1, self.batch)  # [K, B]
        made = siblings != first % self.size  # an outcome without a child links back to the node
        same = made & (self.outcome.index_select(0, siblings.reshape(-1)).view_as(siblings) == outcome)
        twin = siblings.gather(0, same.to(torch.int8).argmax(0, keepdim=True)).squeeze(0)
        return torch.where(same.any(0), twin, number)

    def _back_up(self, length: int) -> Tensor:
        """Carry the value at the end of each path up to its root and into the statistics of its actions.

        A path ends in a new node or in an old one (an end, or an outcome seen before), whose value stands as it is.
        Returns the numbers of the nodes whose statistics changed, and of the new nodes.
        """
        path = self.path[: length + 1]
        parents, children, end = path[:-1], path[1:], self.path_levels[length]
        moved = parents != children  # [L, B]
        entered = torch.where(moved, children, self.size)
        reward, discount = self.steps.index_select(1, entered.view(-1)).view(2, length, -1).unbind(0)
        value = self.table[-1].index_select(0, end) if self.slots is None else self._rows(end).value()
        for level, earned, kept in zip(range(length - 1, -1, -1), reward.flip(0), discount.flip(0)):
            value = torch.addcmul(earned, kept, value, out=self.return_levels[level])
        numbers, gained, once = parents.reshape(-1), self.returns[:length].reshape(-1), moved.view(-1)
        if self.cpu:  # leave out those that stayed; elsewhere their number would have to be awaited
            walked = once.nonzero().squeeze(1)
            numbers, gained = numbers.index_select(0, walked), gained.index_select(0, walked)
            count = torch.ones_like(gained)
        else:
            count = once.to(gained.dtype)
            gained = gained * count
        edges = self._edge(numbers, self.choice.index_select(0, numbers))
        flat, block = self.table.view(-1), self.actions * self.size
        flat.scatter_add_(0, edges + block, count)
        flat.scatter_add_(0, edges + 2 * block, gained)
        return torch.cat((numbers, end))

    # --- choices ------------------------------------------------------------------------------------------------

    def _renew(self, numbers: Tensor, simulation: int) -> None:
        """Choose anew at nodes `numbers` [R], for the given simulation on."""
        rows = self._rows(numbers)
        if self.config.root == "gumbel":
            scores = gumbel_scores(rows, self.config)
        elif self.config.normalise == "tree":
            tree = self._widen(rows, numbers)
            scores = puct_scores(rows, self.config, self.low.index_select(0, tree), self.high.index_select(0, tree))
        else:
            scores = puct_scores(rows, self.config)
        self._link(numbers, scores.max(0).indices)
        if self.noise.considered is not None and simulation < self.config.simulations:
            # last, because a path that has not left its root holds the root more than once
            assert self.noise.gumbel is not None
            root_rows = Rows.of(self.table[:, : self.batch])
            scores = gumbel_root_scores(root_rows, self.noise.gumbel, self.noise.considered[simulation], self.config)
            self._link(self.roots, scores.max(0).indices)

    def _link(self, numbers: Tensor, choice: Tensor) -> None:
        """Remember the choices of nodes and where they lead."""
        links = self._edge(numbers, choice)
        if self.slots is not None:
            links = links + self._slot(numbers, choice) * (self.actions * self.size)
        self.choice.scatter_(0, numbers, choice)
        self.next.scatter_(0, numbers, self.children.index_select(0, links))

    def _rows(self, numbers: Tensor) -> Rows:
        return Rows.of(self.table.index_select(1, numbers))

    def _edge(self, numbers: Tensor, choice: Tensor) -> Tensor:
        """Where an action of a node lies in a flat [A, size] table."""
        return torch.add(numbers, choice, alpha=self.size)

    def _slot(self, numbers: Tensor, choice: Tensor) -> Tensor:
        """Which outcome of an action a simulation follows next."""
        assert self.slots is not None
        visits = self.table.view(-1).index_select(0, self._edge(numbers, choice) + self.actions * self.size)
        return self.slots.index_select(0, visits.to(torch.int64))

    def _widen(self, rows: Rows, numbers: Tensor) -> Tensor:
        """Take the values of nodes into the range of their trees [R], whose numbers are returned."""
        tree = numbers % self.batch
        value = rows.value()
        q = rows.q(rows.untried(), value)
        self.low.scatter_reduce_(0, tree, torch.minimum(q.amin(0), value), "amin")
        self.high.scatter_reduce_(0, tree, torch.maximum(q.amax(0), value), "amax")
        return tree

    # --- the end ------------------------------------------------------------------------------------------------

    def extremes(self) -> tuple[Tensor, Tensor]:
        rows = Rows.of(self.table)
        untried = rows.untried()
        q, never = rows.returns[:-1] / (rows.visits + untried), untried.bool()
        low = q.masked_fill(never, torch.inf).view(-1, self.batch).amin(0)
        return low, q.masked_fill_(never, -torch.inf).view(-1, self.batch).amax(0)

    def grown(self) -> Grown:
        nodes, batch = self.numbers.shape
        children = self.children.view(-1, self.actions, nodes, batch)
        return Grown(
            Rows.of(self.table.view(-1, nodes, batch)), self.steps[:, :-1].view(2, nodes, batch),
            self.depth.view(nodes, batch), torch.where(children == self.numbers, -1, children // batch),
            torch.stack(self.ends) // batch,
        )  # fmt: skip
