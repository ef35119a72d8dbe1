"""Speed of the search: batched trees beside a textbook search in Python on one core, and 4,096 trees on a GPU.

    python benchmarks/hunt_search.py                   # one core, about a minute
    python benchmarks/hunt_search.py --device cuda     # a GPU, about a minute

A simulation is one walk from a root to a new node, with its expansion and backup; a decision is a search of 64
simulations. The tree alone is measured on a game of tables (500 states, 7 actions, one step in twenty ends it), where
a step, a prior and a value are looked up and nearly all time is the search's own; "hunt" steps the real game with
rule-based co-players as the dynamics, "network" also evaluates every new node with a network. The textbook search is
one object per node, dictionaries and a loop over actions, written below; its trees are compared with the batched ones
before anything is timed. The batched search grows its trees in C on a CPU ("tensors": without a compiler) and as
tensors on a GPU. CPU figures are CPU time of one thread, the best of several rounds taken in turn; GPU
figures are wall time with one synchronisation at the end, whole searches recorded as one CUDA graph.
"""

from __future__ import annotations

import argparse
import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from machine import commit, describe
from torch import Tensor, nn

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import State
from marlab.hunt.game.views import View, flat_observation
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import parse_roles
from marlab.lab.search.search import (
    Embedding,
    Evaluation,
    Expand,
    SearchConfig,
    SearchResult,
    Transition,
    record_search,
    search,
)

ROUNDS = 7
STATES, ACTIONS = 500, 7
PUCT = SearchConfig(c1=1.25)
GUMBEL = SearchConfig(root="gumbel")
GPU_ROOTS, GPU_DEPTH = 4096, 16


# --- the game of tables -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tables:
    """A random game; the embedding of a state is its number."""

    next: Tensor
    reward: Tensor
    discount: Tensor
    logits: Tensor
    value: Tensor
    legal: Tensor

    def root(self, states: Tensor) -> Evaluation:
        return Evaluation(self.logits[states], self.value[states], self.legal[states])

    def expand(self, embedding: Embedding, action: Tensor) -> Transition:
        place = embedding[0] * ACTIONS + action
        after = self.next.view(-1).index_select(0, place)
        reward, discount = self.reward.view(-1).index_select(0, place), self.discount.view(-1).index_select(0, place)
        evaluation = Evaluation(
            self.logits.index_select(0, after), self.value.index_select(0, after), self.legal.index_select(0, after)
        )
        return Transition(reward, discount, evaluation, (after,))


def draw_tables(device: str = "cpu") -> Tables:
    g = torch.Generator().manual_seed(0)
    shape = (STATES, ACTIONS)
    legal = torch.rand(shape, generator=g) < 0.7
    legal[torch.arange(STATES), torch.randint(ACTIONS, (STATES,), generator=g)] = True
    tables = (
        torch.randint(STATES, shape, generator=g),
        torch.randn(shape, generator=g) * (torch.rand(shape, generator=g) < 0.3),
        0.95 * (torch.rand(shape, generator=g) >= 0.05),
        torch.randn(shape, generator=g),
        torch.randn(STATES, generator=g),
        legal,
    )
    return Tables(*(table.to(device) for table in tables))


# --- the textbook -------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A node of a tree as a textbook has it."""

    state: int
    priors: dict[int, float]
    value: float
    reward: float = 0.0
    discount: float = 1.0
    visits: dict[int, int] = field(default_factory=dict)
    totals: dict[int, float] = field(default_factory=dict)
    children: dict[int, Node] = field(default_factory=dict)

    def choose(self, c1: float, c2: float) -> int:
        """PUCT with values normalised by those of the node and its children; the node's value for what is untried."""
        tried = sum(self.visits.values())
        mean = (self.value + sum(self.totals.values())) / (tried + 1)
        values = {a: self.totals[a] / self.visits[a] if self.visits.get(a) else mean for a in self.priors}
        low, high = min(mean, *values.values()), max(mean, *values.values())
        weight = (c1 + math.log((tried + 1 + c2 + 1) / c2)) * math.sqrt(tried + 1)
        best, best_score = -1, -math.inf
        for action, prior in self.priors.items():
            score = (values[action] - low) / max(high - low, 1e-8) + weight * prior / (1 + self.visits.get(action, 0))
            if score > best_score:
                best, best_score = action, score
        return best


class TextbookSearch:
    """One tree at a time, one object per node."""

    def __init__(self, tables: Tables) -> None:
        self.next, self.reward, self.discount = tables.next.tolist(), tables.reward.tolist(), tables.discount.tolist()
        self.logits, self.value, self.legal = tables.logits.tolist(), tables.value.tolist(), tables.legal.tolist()

    def node(self, state: int, reward: float = 0.0, discount: float = 1.0) -> Node:
        weights = {a: math.exp(x) for a, x in enumerate(self.logits[state]) if self.legal[state][a]}
        total = sum(weights.values())
        return Node(state, {a: w / total for a, w in weights.items()}, self.value[state], reward, discount)

    def search(self, state: int, config: SearchConfig) -> Node:
        root = self.node(state)
        for _ in range(config.simulations):
            node, path = root, []
            while node.discount != 0:
                action = node.choose(config.c1, config.c2)
                path.append((node, action))
                if action not in node.children:
                    s = node.state
                    after = self.node(self.next[s][action], self.reward[s][action], self.discount[s][action])
                    node.children[action] = after
                    node = after
                    break
                node = node.children[action]
            value, child = node.value, node
            for parent, action in reversed(path):
                value = child.reward + child.discount * value
                parent.visits[action] = parent.visits.get(action, 0) + 1
                parent.totals[action] = parent.totals.get(action, 0.0) + value
                child = parent
        return root


# --- the hunt -----------------------------------------------------------------------------------------------------


class Network(nn.Module):
    """A small policy and value network on flat observations."""

    def __init__(self, inputs: int, actions: int, width: int = 128) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.Linear(width, actions + 1)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        out = self.heads(self.body(observation))
        return out[:, :-1], out[:, -1]


def hunt_problem(roots: int, network: bool, generator: torch.Generator) -> tuple[Evaluation, Embedding, Expand]:
    """Player 1 of msh_4x4 among NS, NH and NH, who choose by their rules inside the tree."""
    device = generator.device
    game = make_game(game_config("msh_4x4"), torch.Generator().manual_seed(0), device=device)
    players = RulePlayers(game, parse_roles("RAND,NS,NH,NH"))
    memory = players.begin(roots, generator)
    seat = torch.zeros(1, dtype=torch.long, device=device)
    state = game.reset(roots, generator)
    net = Network(flat_observation(game, state, seat)[0].shape[-1], game.actions).to(device).requires_grad_(False)

    def evaluate(now: State) -> Evaluation:
        legal = game.legal(now)[:, 0]
        if network:
            logits, value = net(flat_observation(game, now, seat)[0].squeeze(1))
            return Evaluation(logits, value, legal)
        return Evaluation(torch.zeros(roots, game.actions, device=device), torch.zeros(roots, device=device), legal)

    def expand(embedding: Embedding, action: Tensor) -> Transition:
        now = State(*embedding)
        actions, _ = players.act(View(game, now), memory, generator)
        actions = torch.cat((action.unsqueeze(1), actions[:, 1:]), 1)
        after, out = game.step(now, actions)
        return Transition(out.reward[:, 0], 0.95 * ~out.done[:, 0], evaluate(after), tuple(after))

    return evaluate(state), tuple(state), expand


# --- one CPU core -------------------------------------------------------------------------------------------------


def best_seconds(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """CPU seconds of each, the best of several rounds taken in turn so that a busy machine slows all alike."""
    found = dict.fromkeys(works, math.inf)
    for _ in range(ROUNDS):
        for name, work in works.items():
            start = time.process_time()
            work()
            found[name] = min(found[name], time.process_time() - start)
    return found


def check_textbook(tables: Tables) -> None:
    """Both searches must give the same visits (in double precision, so that rounding does not decide)."""
    double = Tables(*(t.double() if t.is_floating_point() else t for t in vars(tables).values()))
    roots, textbook = torch.arange(64), TextbookSearch(double)
    found = search(double.root(roots), (roots,), double.expand, PUCT)
    for k in range(64):
        visits = textbook.search(k, PUCT).visits
        if [visits.get(a, 0) for a in range(ACTIONS)] != found.visits[k].int().tolist():
            raise AssertionError(f"the textbook's tree of root {k} differs from the batched one")
    print("trees of 64 roots: the textbook's visits equal the batched ones")


def cpu_tree_part() -> None:
    tables = draw_tables()
    check_textbook(tables)
    textbook = TextbookSearch(tables)
    works: dict[str, Callable[[], object]] = {"textbook": lambda: [textbook.search(k, PUCT) for k in range(20)]}

    def batched(roots: int, config: SearchConfig) -> Callable[[], SearchResult]:
        states = torch.arange(roots) % STATES
        return lambda: search(tables.root(states), (states,), tables.expand, config, torch.Generator().manual_seed(0))

    sizes = (1, 256, 512, 1024, 4096)
    rules = {"puct": PUCT, "gumbel": GUMBEL, "puct, tensors": replace(PUCT, engine="tensors")}
    for name, config in rules.items():
        works |= {f"{name} {roots}": batched(roots, config) for roots in sizes}
    seconds = best_seconds(works)
    base = 20 * PUCT.simulations / seconds["textbook"]
    print(f"textbook, PUCT: {base:,.0f} simulations/s, {seconds['textbook'] / 20 * 1e3:.2f} ms a decision")
    for name in rules:
        for roots in sizes:
            took = seconds[f"{name} {roots}"]
            rate = roots * PUCT.simulations / took
            print(
                f"  batched, {name:<14} {roots:>5} roots: {rate:>11,.0f} simulations/s  {rate / base:6.1f} x   "
                f"{took / roots * 1e3:7.3f} ms a decision"
            )


def cpu_hunt_part() -> None:
    for network in (False, True):
        for roots in (1, 256):
            root, embedding, expand = hunt_problem(roots, network, torch.Generator().manual_seed(0))
            took = best_seconds({"": lambda r=root, e=embedding, x=expand: search(r, e, x, PUCT)})[""]
            what = "hunt and network" if network else "hunt"
            print(
                f"{what}, {roots} roots: {roots * PUCT.simulations / took:,.0f} simulations/s, "
                f"{took / roots * 1e3:.2f} ms a decision of {PUCT.simulations} simulations"
            )


# --- a GPU --------------------------------------------------------------------------------------------------------


def gpu_seconds(work: Callable[[], object]) -> float:
    """Wall seconds of one call, the median of three rounds of about a second after a warm-up."""
    work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    calls = max(1, min(200, int(1.0 / max(1e-4, time.perf_counter() - start))))
    found = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - start) / calls)
    return sorted(found)[1]


def gpu_part(what: str, config: SearchConfig, roots: int) -> None:
    """A search recorded as one graph, and the same search launched kernel by kernel."""
    config = replace(config, max_depth=GPU_DEPTH)
    generator = torch.Generator("cuda").manual_seed(0)
    if what == "tree alone":
        tables = draw_tables("cuda")
        states = torch.arange(roots, device="cuda") % STATES
        root, embedding, expand = tables.root(states), (states,), tables.expand
    else:
        root, embedding, expand = hunt_problem(roots, what == "hunt and network", generator)

    def tell(how: str, work: Callable[[], object]) -> None:
        seconds = gpu_seconds(work)
        print(
            f"{what}, {config.root}, {roots} roots, {how}: {roots * config.simulations / seconds / 1e6:,.2f} M "
            f"simulations/s, {seconds * 1e3:.1f} ms a search of {config.simulations} simulations",
            flush=True,
        )

    tell("eager", lambda: search(root, embedding, expand, config, generator))
    recorded = record_search(root, embedding, expand, config, generator)
    tell("one graph", lambda: recorded(root, embedding))
    print(f"  peak memory {torch.cuda.max_memory_allocated() / 2**20:,.0f} MiB", flush=True)
    torch.cuda.reset_peak_memory_stats()


def gpu_check() -> None:
    """The recorded search must repeat the eager one, and both the CPU's, on the tree alone."""
    results = []
    for device in ("cpu", "cuda"):
        tables = draw_tables(device)
        double = Tables(*(t.double() if t.is_floating_point() else t for t in vars(tables).values()))
        states = torch.arange(256, device=device)
        config = replace(PUCT, max_depth=GPU_DEPTH)
        results.append(search(double.root(states), (states,), double.expand, config).visits.cpu())
        if device == "cuda":
            recorded = record_search(double.root(states), (states,), double.expand, config, None)
            results.append(recorded(double.root(states), (states,)).visits.cpu())
    for name, visits in zip(("eager", "recorded"), results[1:]):
        same = (visits == results[0]).all(1).double().mean().item()
        print(f"GPU {name} search: visits equal those of the CPU for {same:.1%} of 256 roots")


def attempt(part: Callable[..., None], *arguments: object) -> None:
    """One failing part must not lose the others."""
    try:
        part(*arguments)
    except Exception:
        print(f"FAILED {part.__name__}{arguments}:\n{traceback.format_exc()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="what to measure")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    print(f"{describe()}, commit {commit()}")
    if device == "cpu":
        attempt(cpu_tree_part)
        attempt(cpu_hunt_part)
        return
    attempt(gpu_check)
    for what in ("tree alone", "hunt", "hunt and network"):
        for config in (PUCT, GUMBEL):
            attempt(gpu_part, what, config, GPU_ROOTS)
    attempt(gpu_part, "tree alone", PUCT, 4 * GPU_ROOTS)


if __name__ == "__main__":
    main()
