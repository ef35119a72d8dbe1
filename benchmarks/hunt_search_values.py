"""Root values of the search beside exact ones: three ways to read a tree, four kinds of leaf values, two partners.

    python benchmarks/hunt_search_values.py                 # 96 starts of the tiny hunt, one core, about two minutes
    python benchmarks/hunt_search_values.py --starts 378    # all of them, up to turns and mirror images

"mean" is the mean over simulations (`SearchResult.value`), "plan" is `Tree.plan_value`, and "best" takes the best of
all tried actions at every node instead of the most visited one. Leaves are given the exact value, the exact value with
noise (standard deviation 0.3, drawn anew at every node), half of what hunting the stag plus half of what hunting the
hare would earn ("options": a player who has not made up its mind), or 0. Errors are found minus exact values, whose
largest possible one is 4.75 against NS and 0.95 against NH.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from machine import commit, describe
from torch import Tensor

from marlab.hunt.exact.best_response import BestResponse
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import Game, State
from marlab.hunt.players.seats import Kind
from marlab.lab.search.search import SearchConfig, SearchResult, Tree

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.hunt.planner.test_search import GAMMA, Leaf, constant, exact_leaf, searched, solve, tiny_starts

NOISE = 0.3
TOLERANCE = 0.02
AT_ONCE = 128


def best_of_tried(tree: Tree) -> Tree:
    """The tree with equal visits of all tried actions, so that its plan takes the best of them everywhere."""
    return replace(tree, visits=(tree.visits > 0) * tree.visits.new_tensor(1e6))


READINGS: dict[str, Callable[[SearchResult], Tensor]] = {
    "mean": lambda found: found.value,
    "plan": lambda found: found.tree.plan_value(),
    "best": lambda found: best_of_tried(found.tree).plan_value(),
}


def options_leaf(game: Game, kind: Kind) -> Leaf:
    """Half of what either prey earns who goes straight to it; this partner's way is as long whichever it takes."""

    def leaf(state: State, root: Tensor) -> Tensor:
        distance, left = (game.paths(state) >> 4).long(), game.config.final_time - state.t  # [B, players, prey], [B]
        (stag, hare), (partner_stag, partner_hare) = (player.unbind(1) for player in distance.unbind(1))
        both, pay = state.alive.all(1), game.config
        together = torch.maximum(stag, partner_stag)
        stag_value = pay.stag_reward / 2 * GAMMA**together * (together < left) * both * (kind == Kind.NS)
        hare_value = pay.hare_reward * GAMMA**hare * (hare < left) * state.prey_alive[:, 1]
        if kind == Kind.NH:  # who is there first has it alone
            hare_value = hare_value * both * (1 + (hare < partner_hare).float() - (hare > partner_hare).float()) / 2
        return ((stag_value + hare_value) / 2).float()

    return leaf


def noisy(leaf: Leaf) -> Leaf:
    generator = torch.Generator().manual_seed(11)

    def leaf_with_noise(state: State, root: Tensor) -> Tensor:
        return leaf(state, root) + NOISE * torch.randn(state.batch, generator=generator)

    return leaf_with_noise


def leaves(game: Game, kind: Kind, solved: list[BestResponse]) -> dict[str, Leaf]:
    exact = exact_leaf(game, solved)
    return {"exact": exact, "noisy": noisy(exact), "options": options_leaf(game, kind), "0": constant(0.0)}


def errors(game: Game, starts: State, kind: Kind, name: str, config: SearchConfig) -> dict[str, Tensor]:
    """[B] found minus exact values by every reading of the same trees."""
    found: dict[str, list[Tensor]] = {reading: [] for reading in READINGS}
    for some in torch.arange(starts.batch).split(AT_ONCE):
        solved, exact = solve(game, starts.select(some), kind)
        leaf = leaves(game, kind, solved)[name]
        result = searched(game, starts.select(some), [Kind.RAND, kind], leaf, config)
        for reading, read in READINGS.items():
            found[reading].append(read(result) - exact.amax(1))
    return {reading: torch.cat(parts) for reading, parts in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=96)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--c1", type=float, nargs="+", default=[1.25, 5.0])
    args = parser.parse_args()
    torch.set_num_threads(1)
    game = make_game(game_config("msh_tiny"))
    starts = tiny_starts(game)
    starts = starts.select(torch.randperm(starts.batch, generator=torch.Generator().manual_seed(0))[: args.starts])
    print(
        f"{describe()}, {commit()}; msh_tiny, {starts.batch} starts, {args.simulations} simulations, PUCT, 16 outcomes"
    )
    print("errors: lowest / highest / mean (share of starts beyond 0.02)")
    print(f"{'partner':<9}{'leaf':<9}{'c':>5}" + "".join(f"{reading:>34}" for reading in READINGS))
    for kind in (Kind.NS, Kind.NH):
        for name in ("exact", "noisy", "options", "0"):
            for c1 in args.c1:
                config = SearchConfig(simulations=args.simulations, outcomes=16, c1=c1)
                row = f"{kind.name:<9}{name:<9}{c1:>5g}"
                for error in errors(game, starts, kind, name, config).values():
                    beyond = (error.abs() > TOLERANCE).double().mean()
                    row += f"{error.min():>11.3f} /{error.max():>6.3f} /{error.mean():>6.3f} ({beyond:>4.0%})"
                print(row, flush=True)


if __name__ == "__main__":
    main()
