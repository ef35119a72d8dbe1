"""Monte-Carlo tree search for many decisions at once, as functions over tensors on any device.

The search knows no game: `expand` plays an action from stored embeddings and says what follows, with prior and value
of the new state. Whatever is random in that step (the other players, say) is drawn inside `expand`.

How it is fast: what a node tries next depends on its own statistics alone, and these change only when a simulation
passes through. So every node remembers its choice, walking down a tree is following stored links, and the choices on
a path are renewed together after the backup, for all roots and depths in one pass. An action without a child links
back to its own node, so a walk that has arrived stays where it is and no masks are needed.

Letters: B roots, A actions, S simulations, N = S + 1 nodes per tree, K outcomes per action. Node 0 is the root and
simulation s makes node s + 1, or none when it ends in an ended node. Within this file a node of a root has the number
node * B + root and tables keep actions first; `Tree` shows them as [B, N, A].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.hunt.search_config import SearchConfig
from marlab.hunt.search_rules import (
    Rows,
    completed_q,
    dirichlet_prior,
    gumbel_noise,
    gumbel_root_scores,
    gumbel_scores,
    halving_table,
    puct_scores,
)
from marlab.lab.errors import UserError

__all__ = ["Embedding", "Evaluation", "Expand", "SearchConfig", "SearchResult", "Transition", "Tree", "search"]

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

    def line(self, length: int) -> Tensor:
        """[B, length] most visited actions from the root on, -1 after the tree's end: the plan."""
        roots = torch.arange(len(self.visits), device=self.visits.device)
        node, going = torch.zeros_like(roots), torch.ones_like(roots, dtype=torch.bool)
        actions = []
        for _ in range(length):
            visits = self.visits[roots, node]
            going = going & (visits.sum(-1) > 0)
            action = visits.argmax(-1)
            actions.append(torch.where(going, action, -1))
            child = self.children[roots, node, action].amax(-1)  # the outcome seen last
            going = going & (child >= 0)
            node = torch.where(going, child, node)
        return torch.stack(actions, 1)


@dataclass(frozen=True)
class SearchResult:
    """What a search found, one row per root."""

    visits: Tensor
    """[B, A] visits of the root's actions."""
    q: Tensor
    """[B, A] their mean returns; an action never tried has the value of the root."""
    value: Tensor
    """[B] mean return from the root."""
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
    tree: Tree


class _Store:
    """The trees in the making. Everything is allocated here, once."""

    def __init__(self, root: Evaluation, embedding: Embedding, config: SearchConfig) -> None:
        batch, actions = root.logits.shape
        nodes = config.simulations + 1
        size, like = nodes * batch, root.value
        self.config, self.batch, self.actions, self.size = config, batch, actions, size
        self.table = like.new_zeros(3 * actions + 1, size)
        """prior, visits, returns and own value of every node: the columns that `Rows` cuts apart."""
        self.steps = like.new_zeros(2, size + 1)
        """reward and discount on entering; at the end the step of a walk that stays: it earns and loses nothing."""
        self.steps[1] = 1.0
        self.open = torch.zeros(size, dtype=torch.bool, device=like.device)
        """Whether a node may get children."""
        self.depth = torch.zeros(size, dtype=torch.int64, device=like.device)
        own_number = torch.arange(size, device=like.device)
        self.children = own_number.repeat(config.outcomes * actions)  # [K, A, size], flat
        self.next = own_number.clone()
        """Where a simulation goes from each node: a child, or the node itself if it has to be made or there is none."""
        self.choice = torch.zeros_like(own_number)
        """The action tried next at each node."""
        self.numbers = own_number.view(nodes, batch)
        self.roots = self.numbers[0]
        self.embedding = tuple(part.new_empty(nodes, *part.shape) for part in embedding)
        self.outcome = torch.full_like(own_number, -1) if config.outcomes > 1 else None
        self.slots = _slot_table(config.outcomes, config.simulations, like.device) if config.outcomes > 1 else None
        self.low, self.high = root.value.clone(), root.value.clone()
        self.ends: list[Tensor] = []
        """[B] the node where each simulation ended."""
        self.path = own_number.new_empty(config.depth_limit + 2, batch)
        self.path[0] = self.roots
        self.path_levels = self.path.unbind(0)
        self.returns = like.new_empty(config.depth_limit + 1, batch)
        self.return_levels = self.returns.unbind(0)
        self.length = 0
        """On a CPU: the longest walk so far, in steps."""

    # -- nodes --

    def place(self, node: int, evaluation: Evaluation, embedding: Embedding) -> None:
        """Write node number `node` of every root."""
        here = slice(node * self.batch, (node + 1) * self.batch)
        illegal = ~evaluation.legal.t()
        logits = evaluation.logits.t().masked_fill(illegal, -torch.inf)
        prior = logits.log_softmax(0) if self.config.root == "gumbel" else logits.softmax(0)
        self.table[: self.actions, here] = prior.masked_fill_(illegal, -torch.inf)
        self.table[-1, here] = evaluation.value
        for store, part in zip(self.embedding, embedding):
            store[node] = part

    def rows(self, numbers: Tensor) -> Rows:
        return Rows.of(self.table.index_select(1, numbers))

    def root_rows(self) -> Rows:
        return Rows.of(self.table[:, : self.batch])

    # -- choices --

    def renew(self, numbers: Tensor, root_choice: Callable[[Rows], Tensor] | None) -> None:
        """Choose anew at nodes `numbers` [R]; with Gumbel the root has a rule of its own."""
        rows = self.rows(numbers)
        if self.config.root == "gumbel":
            scores = gumbel_scores(rows, self.config)
        elif self.config.normalise == "tree":
            tree = self._widen(rows, numbers)
            scores = puct_scores(rows, self.config, self.low.index_select(0, tree), self.high.index_select(0, tree))
        else:
            scores = puct_scores(rows, self.config)
        self.link(numbers, scores.max(0).indices)
        if root_choice is not None:  # last, because a path that has not left its root holds the root more than once
            self.link(self.roots, root_choice(self.root_rows()))

    def link(self, numbers: Tensor, choice: Tensor) -> None:
        """Remember the choices of nodes and where they lead."""
        links = self.edge(numbers, choice)
        if self.slots is not None:
            links = links + self.slot(numbers, choice) * (self.actions * self.size)
        self.choice.scatter_(0, numbers, choice)
        self.next.scatter_(0, numbers, self.children.index_select(0, links))

    def edge(self, numbers: Tensor, choice: Tensor) -> Tensor:
        """Where an action of a node lies in a flat [A, size] table."""
        return torch.add(numbers, choice, alpha=self.size)

    def slot(self, numbers: Tensor, choice: Tensor) -> Tensor:
        """Which outcome of an action a simulation follows next."""
        assert self.slots is not None
        visits = self.table.view(-1).index_select(0, self.edge(numbers, choice) + self.actions * self.size)
        return self.slots.index_select(0, visits.to(torch.int64))

    def _widen(self, rows: Rows, numbers: Tensor) -> Tensor:
        """Take the values of nodes into the range of their trees [R], whose numbers are returned."""
        tree = numbers % self.batch
        value = rows.value()
        q = rows.q(rows.untried(), value)
        self.low.scatter_reduce_(0, tree, torch.minimum(q.amin(0), value), "amin")
        self.high.scatter_reduce_(0, tree, torch.maximum(q.amax(0), value), "amax")
        return tree


@torch.no_grad()
def search(
    root: Evaluation,
    embedding: Embedding,
    expand: Expand,
    config: SearchConfig,
    generator: torch.Generator | None = None,
    noise: Tensor | None = None,
) -> SearchResult:
    """Search from B roots. `noise` [B, A] replaces the Gumbel noise that would be drawn from `generator`."""
    _check(root, embedding, noise)
    store = _Store(root, embedding, config)
    store.place(0, root, embedding)
    store.open[: store.batch] = root.legal.any(1)
    root_choice = _root_rule(store, root, generator, noise)
    store.renew(store.roots, root_choice and root_choice(0))
    for simulation in range(config.simulations):
        length = _walk(store, simulation)
        _extend(store, length, expand, simulation + 1)
        renewed = _back_up(store, length + 1)
        store.renew(renewed, root_choice and root_choice(simulation + 1))
    return _result(store, root_choice)


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


RootRule = Callable[[int], Callable[[Rows], Tensor]]
"""For a simulation: the choice of the root from its statistics."""


def _root_rule(
    store: _Store, root: Evaluation, generator: torch.Generator | None, noise: Tensor | None
) -> RootRule | None:
    """The root's own rule with Gumbel; with PUCT the noise goes into the root's prior and its rule is the usual."""
    config = store.config
    prior = store.root_rows().prior
    if config.root == "puct":
        if config.dirichlet_share > 0:
            prior.copy_(dirichlet_prior(prior, config, generator))
        return None
    drawn = gumbel_noise(root.logits, config, generator) if noise is None else noise
    gumbel = drawn.t().to(prior.dtype)
    considered = halving_table(root.legal.t(), config).to(prior.dtype)

    def rule(simulation: int) -> Callable[[Rows], Tensor]:
        def choose(rows: Rows) -> Tensor:
            last = simulation == config.simulations  # then the winner is sought
            visits = rows.visits.amax(0) if last else considered[simulation]
            return gumbel_root_scores(rows, gumbel, visits, config).max(0).indices

        return choose

    return rule


def _walk(store: _Store, simulation: int) -> int:
    """Follow the stored choices from the root; the path holds the nodes, its length in steps is returned.

    All walks take as many steps as the longest may need; those that arrive earlier stay where they are. On a CPU
    that number is known. Elsewhere asking for it would make the host wait, so it is the most that is possible.
    """
    longest = min(simulation, store.config.depth_limit)
    cpu = store.next.device.type == "cpu"
    length = min(store.length + 1, longest) if cpu else longest
    path = store.path_levels
    for level in range(length):
        torch.index_select(store.next, 0, path[level], out=path[level + 1])
    if cpu and length and torch.equal(path[length], path[length - 1]):
        length -= 1  # the longest walk did not grow
    store.length = length
    return length


def _extend(store: _Store, length: int, expand: Expand, node: int) -> None:
    """Make node number `node` where paths may grow; those that may not stay where they end."""
    config, parent = store.config, store.path_levels[length]
    action = store.choice.index_select(0, parent)
    grows = store.open.index_select(0, parent)
    parts = tuple(part.view(store.size, *part.shape[2:]).index_select(0, parent) for part in store.embedding)
    new = expand(parts, action)
    here = slice(node * store.batch, (node + 1) * store.batch)
    goes_on = new.discount != 0
    store.place(node, new.evaluation, new.embedding)
    store.steps[0, here] = new.reward * ~goes_on if config.legacy_terminal_reward else new.reward
    store.steps[1, here] = new.discount
    goes_on = goes_on & new.evaluation.legal.any(1)
    depth = store.depth.index_select(0, parent) + 1
    store.depth[here] = depth
    store.open[here] = goes_on if config.depth_limit == config.simulations else goes_on & (depth < config.depth_limit)
    number, link = store.numbers[node], store.edge(parent, action)
    if store.slots is not None:
        first, link = link, link + store.slot(parent, action) * (store.actions * store.size)
        number = _merge(store, first, number, new.outcome, here)
    end = torch.where(grows, number, parent, out=store.path_levels[length + 1])
    store.children.scatter_(0, link, end)
    store.ends.append(end.clone())


def _merge(store: _Store, first: Tensor, number: Tensor, outcome: Tensor | None, here: slice) -> Tensor:
    """[B] the child that an equal outcome of the same action already has, else the node just made, `number`.

    `first` [B] is where the action's first outcome is linked.
    """
    if outcome is None:
        return number
    assert store.outcome is not None
    store.outcome[here] = outcome
    stride = store.actions * store.size
    slots = torch.arange(store.config.outcomes, device=first.device).unsqueeze(1) * stride
    siblings = store.children.index_select(0, (first + slots).reshape(-1)).view(-1, store.batch)  # [K, B]
    made = siblings != first % store.size  # an outcome without a child links back to the node
    same = made & (store.outcome.index_select(0, siblings.reshape(-1)).view_as(siblings) == outcome)
    twin = siblings.gather(0, same.to(torch.int8).argmax(0, keepdim=True)).squeeze(0)
    return torch.where(same.any(0), twin, number)


def _back_up(store: _Store, length: int) -> Tensor:
    """Carry the value at the end of each path up to its root and into the statistics of its actions.

    A path ends in a new node or in an old one (an end, or an outcome seen before), whose value is taken as it stands.
    Returns the numbers of the nodes whose statistics changed, and of the new nodes.
    """
    path, returns = store.path[: length + 1], store.return_levels
    parents, children, end = path[:-1], path[1:], store.path_levels[length]
    moved = parents != children  # [L, B]
    entered = torch.where(moved, children, store.size)
    reward, discount = store.steps.index_select(1, entered.view(-1)).view(2, length, -1).unbind(0)
    if store.slots is None:
        value = store.table[-1].index_select(0, end)
    else:
        value = store.rows(end).value()
    for level, earned, kept in zip(range(length - 1, -1, -1), reward.flip(0), discount.flip(0)):
        value = torch.addcmul(earned, kept, value, out=returns[level])
    numbers, gained, once = parents.reshape(-1), store.returns[:length].reshape(-1), moved.view(-1)
    if numbers.device.type == "cpu":  # leave out those that stayed; elsewhere their number would have to be awaited
        walked = once.nonzero().squeeze(1)
        numbers, gained = numbers.index_select(0, walked), gained.index_select(0, walked)
        count = torch.ones_like(gained)
    else:
        count = once.to(gained.dtype)
        gained = gained * count
    edges = store.edge(numbers, store.choice.index_select(0, numbers))
    flat, block = store.table.view(-1), store.actions * store.size
    flat.scatter_add_(0, edges + block, count)
    flat.scatter_add_(0, edges + 2 * block, gained)
    return torch.cat((numbers, end))


@lru_cache(maxsize=32)
def _slot_table(outcomes: int, simulations: int, device: torch.device) -> Tensor:
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


def _result(store: _Store, root_choice: RootRule | None) -> SearchResult:
    config, batch = store.config, store.batch
    rows = store.root_rows()
    visits = rows.visits.sum(0)
    value = rows.value(visits)
    if root_choice is None:
        policy = rows.visits / visits.clamp_min(1)
        action = rows.visits.max(0).indices
    else:
        policy = (rows.prior + completed_q(rows, config)).softmax(0).nan_to_num(0.0)
        action = root_choice(config.simulations)(rows)
    everything = Rows.of(store.table)
    untried = everything.untried()
    q = everything.returns[:-1] / (everything.visits + untried)
    never = untried.bool()
    low = q.masked_fill(never, torch.inf).view(-1, batch).amin(0)
    high = q.masked_fill(never, -torch.inf).view(-1, batch).amax(0)
    none = visits == 0  # a root without legal actions
    ends = torch.stack(store.ends)  # [S, B]
    depth = store.depth.index_select(0, ends.view(-1)).view_as(ends)
    ended = store.steps[1].index_select(0, ends.view(-1)).view_as(ends) == 0
    return SearchResult(
        visits=rows.visits.t().contiguous(),
        q=rows.q(rows.untried(), value).t().contiguous(),
        value=value,
        policy=policy.t().contiguous(),
        action=action,
        depth=depth.to(value.dtype).mean(0),
        deepest=depth.amax(0),
        ended=ended.to(value.dtype).mean(0),
        low=torch.where(none, value, low),
        high=torch.where(none, value, high),
        tree=_tree(store, everything, q, ends),
    )


def _tree(store: _Store, rows: Rows, q: Tensor, ends: Tensor) -> Tree:
    """The stored tables as [B, N, ...], without copies where that is possible."""
    batch, actions = store.batch, store.actions

    def per_action(table: Tensor) -> Tensor:
        return table.view(actions, -1, batch).permute(2, 1, 0)

    def per_node(table: Tensor) -> Tensor:
        return table.view(-1, batch).t()

    own = torch.arange(store.size, device=q.device)
    children = store.children.view(-1, actions, store.size)
    number = torch.where(children == own, -1, children // batch)
    prior = rows.prior.exp() if store.config.root == "gumbel" else rows.prior.clamp_min(0)
    made = torch.cat((torch.ones_like(ends[:1], dtype=torch.bool), ends == store.numbers[1:]))  # [N, B]
    return Tree(
        prior=per_action(prior),
        visits=per_action(rows.visits),
        q=per_action(q),
        value=per_node(rows.value()),
        reward=per_node(store.steps[0, :-1]),
        discount=per_node(store.steps[1, :-1]),
        depth=torch.where(made, store.depth.view(-1, batch), -1).t(),
        children=number.view(-1, actions, store.config.simulations + 1, batch).permute(3, 2, 1, 0),
        embedding=tuple(part.transpose(0, 1) for part in store.embedding),
    )
