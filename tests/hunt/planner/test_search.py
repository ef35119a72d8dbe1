"""The search on the real game: against its exact solution, next to a hare, and as the planner joins its trees."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from torch import Tensor

from marlab.hunt.exact.best_response import BestResponse, best_response, encode
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import HUNT_HARE, Game, State
from marlab.hunt.game.symmetry import symmetries
from marlab.hunt.game.views import View
from marlab.hunt.planner.plans import boltzmann, decision_metrics, normalised, summarise
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.lab.search.search import Embedding, Evaluation, Expand, SearchConfig, SearchResult, Transition, Tree, search
from tests.hunt.helpers import placed, seeded

GAMMA = 0.95
CHECK_25 = SearchConfig(simulations=2000, outcomes=16, c1=1.25)
Leaf = Callable[[State, Tensor], Tensor]
"""(states, number of the root that each belongs to) -> values [B]."""


def constant(value: float) -> Leaf:
    return lambda state, root: torch.full((state.batch,), value)


def hunt(game: Game, kinds: list[Kind], leaf: Leaf) -> tuple[Expand, Callable[[State, Tensor], Evaluation]]:
    """Player 1 among rule-based players it knows exactly, with even priors. Embeddings end with the root's number."""
    players, generator = RulePlayers(game, kinds), seeded(5)

    def evaluate(state: State, root: Tensor) -> Evaluation:
        return Evaluation(torch.zeros(state.batch, game.actions), leaf(state, root), game.legal(state)[:, 0])

    def expand(embedding: Embedding, action: Tensor) -> Transition:
        state, root = State(*embedding[:-1]), embedding[-1]
        others, _ = players.act(View(game, state), players.begin(state.batch, generator), generator)
        joint = torch.cat((action.unsqueeze(1), others[:, 1:]), 1)
        after, out = game.step(state, joint)
        codes = (8 ** torch.arange(1, game.players)) * out.executed[:, 1:]
        return Transition(
            out.reward[:, 0], GAMMA * ~out.done[:, 0], evaluate(after, root), (*after, root), codes.sum(1)
        )

    return expand, evaluate


def searched(
    game: Game, starts: State, kinds: list[Kind], leaf: Leaf, config: SearchConfig, trees: int = 1
) -> SearchResult:
    expand, evaluate = hunt(game, kinds, leaf)
    many = starts.select(torch.arange(starts.batch).repeat_interleave(trees))
    root = torch.arange(starts.batch).repeat_interleave(trees)
    return search(evaluate(many, root), (*many, root), expand, config, seeded(0))


# --- against dynamic programming ------------------------------------------------------------------------------------


def exact_leaf(game: Game, solved: list[BestResponse]) -> Leaf:
    """The exact value of every situation, looked up; after an end, where a value must not count, a wrong one."""
    width = int(max(one.codes.max() for one in solved)) + 1
    keys = np.concatenate([one.codes + width * b for b, one in enumerate(solved)])  # ascending, as every start's are
    values = np.concatenate([one.values for one in solved], 1)  # [T_max + 1, all situations]

    def leaf(state: State, root: Tensor) -> Tensor:
        key = encode(game, state) + width * root.numpy()
        place = np.searchsorted(keys, key).clip(max=len(keys) - 1)
        left = (game.config.final_time - state.t.numpy()).clip(0)
        return torch.from_numpy(np.where(keys[place] == key, values[left, place], 9.0)).float()

    return leaf


def solve(game: Game, starts: State, kind: Kind) -> tuple[list[BestResponse], Tensor]:
    """Exact best responses of player 1 to its partner, and the values [B, A] of the first actions."""
    ones = [starts.select(slice(b, b + 1)) for b in range(starts.batch)]
    solved = [best_response(game, one, [Kind.RAND, kind], gamma=GAMMA) for one in ones]
    return solved, torch.cat([found.q(one) for found, one in zip(solved, ones)])


def tiny_starts(game: Game) -> State:
    """All 3,024 starts of the tiny hunt (stag, hare and two players on 9 cells), one of 8 turned and mirrored ones."""
    cells = torch.tensor(list(permutations(range(game.cells), 4)))
    moved = [symmetry.planes(torch.arange(game.cells).view(3, 3, 1)).flatten() for symmetry in symmetries(3, 3)]
    digits = game.cells ** torch.arange(4)
    codes = torch.stack([(new[cells] * digits).sum(1) for new in moved])
    cells = cells[(cells * digits).sum(1) == codes.amin(0)]
    return game.reset(len(cells), seeded(0))._replace(prey_cell=cells[:, :2], cell=cells[:, 2:])


def plan_errors(game: Game, starts: State, kind: Kind, config: SearchConfig, exact_leaves: bool) -> tuple[Tensor, ...]:
    """[B] plan minus exact value, mean over simulations minus exact value, and what the most visited action loses."""
    found: list[tuple[Tensor, ...]] = []
    for some in torch.arange(starts.batch).split(128):
        solved, exact = solve(game, starts.select(some), kind)
        leaf = exact_leaf(game, solved) if exact_leaves else constant(0.0)
        result, best = searched(game, starts.select(some), [Kind.RAND, kind], leaf, config), exact.amax(1)
        lost = best - exact.gather(1, result.visits.argmax(1, keepdim=True)).squeeze(1)
        found.append((result.tree.plan_value() - best, result.value - best, lost))
    plan, mean, lost = (torch.cat(parts) for parts in zip(*found))
    return plan, mean, lost


@pytest.mark.parametrize("kind", [Kind.NS, Kind.NH])
def test_root_values_of_the_tiny_hunt_are_those_of_dynamic_programming(kind: Kind) -> None:
    """Against dynamic programming: 2,000 simulations, every start, within 0.02.

    With exact leaves every error is the tree's: its rewards, discounts, ends, outcomes and choices. The mean over
    simulations is no such value: it contains its own exploration.
    """
    game = make_game(game_config("msh_tiny"))
    starts = tiny_starts(game)
    assert starts.batch == 3024 // 8
    plan, mean, lost = plan_errors(game, starts, kind, CHECK_25, exact_leaves=True)
    assert float(plan.abs().max()) <= 0.02 and float(lost.max()) <= 0.02
    assert float(mean.min()) < -0.1 and float(mean.max()) <= 0.02


def test_hares_are_found_with_a_value_that_knows_nothing() -> None:
    """Check 25 against NH needs no informed leaf: the hares lie inside the tree (one in 3,024 may be overlooked)."""
    game = make_game(game_config("msh_tiny"))
    plan, mean, lost = plan_errors(game, tiny_starts(game), Kind.NH, CHECK_25, exact_leaves=False)
    assert float((plan.abs() <= 0.02).double().mean()) >= 0.99 and float(lost.max()) <= 0.02
    assert float(plan.max()) <= 1e-5 and float(mean.min()) < -0.1


WRONG: dict[str, Callable[[Tree], Tree]] = {
    "nothing is discounted": lambda tree: replace(tree, discount=(tree.discount != 0).float()),
    "rewards are forgotten": lambda tree: replace(tree, reward=torch.zeros_like(tree.reward)),
    "life goes on after an end": lambda tree: replace(tree, discount=torch.full_like(tree.discount, GAMMA)),
    "rarely tried actions are chosen": lambda tree: replace(tree, visits=(tree.visits > 0) * 1e6 / (tree.visits + 1)),
    "children are taken from another tree": lambda tree: replace(tree, children=tree.children.roll(1, 0)),
    "actions are mixed up": lambda tree: replace(tree, children=tree.children.roll(1, 2)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_backup_fails_the_check(wrong: str) -> None:
    """Exact leaves do not hide mistakes of the tree above them."""
    game = make_game(game_config("msh_tiny"))
    starts = tiny_starts(game).select(torch.arange(0, 378, 13))
    solved, exact = solve(game, starts, Kind.NS)
    result = searched(game, starts, [Kind.RAND, Kind.NS], exact_leaf(game, solved), replace(CHECK_25, simulations=300))
    assert float((result.tree.plan_value() - exact.amax(1)).abs().max()) <= 0.02
    assert float((WRONG[wrong](result.tree).plan_value() - exact.amax(1)).abs().max()) > 0.02


def test_a_value_that_knows_nothing_does_not_see_the_stag() -> None:
    """Why the comparison needs an informative leaf against NS: with v = 0 most trees never reach the stag."""
    game = make_game(game_config("msh_tiny"))
    starts = game.reset(6, seeded(2))
    _, exact = solve(game, starts, Kind.NS)
    config = SearchConfig(simulations=1000, outcomes=16, c1=0.3)
    found = searched(game, starts, [Kind.RAND, Kind.NS], constant(0.0), config)
    assert float((exact.amax(1) - found.value).max()) > 2.0
    assert float((exact.amax(1) - found.tree.plan_value()).max()) > 2.0


@pytest.mark.parametrize("kind", [Kind.NS, Kind.NH])
def test_the_last_steps_of_the_tiny_hunt_are_played_as_dynamic_programming_does(kind: Kind) -> None:
    """With three steps to go the tree sees every end. The value knows nothing, so the prior must weigh enough."""
    game = make_game(game_config("msh_tiny"))
    starts = game.reset(4, seeded(2))
    late = starts._replace(t=torch.full_like(starts.t, game.config.final_time - 3))
    solved, _ = solve(game, starts, kind)
    exact = torch.cat([one.q(late.select(slice(b, b + 1))) for b, one in enumerate(solved)])
    config = SearchConfig(simulations=800, outcomes=8, c1=10.0, max_depth=3)
    found = searched(game, late, [Kind.RAND, kind], constant(0.0), config)
    chosen = found.q.masked_fill(~game.legal(late)[:, 0], -1).argmax(1)
    assert (exact.amax(1) > 0).any()
    assert (exact.amax(1) - exact[torch.arange(4), chosen]).max() < 0.05


# --- as the planner uses it -----------------------------------------------------------------------------------------


def test_a_hare_at_hand_is_taken_with_a_value_that_knows_nothing() -> None:
    config = game_config("msh_4x4")
    game, state = placed(config, players=[(0, 0), (3, 3), (3, 2), (2, 3)], stags=[(1, 1)], hares=[(0, 0), (3, 0)])
    for value in (0.0, 0.5):
        for search_config in (SearchConfig(c1=1.25), SearchConfig(), SearchConfig(root="gumbel")):
            kinds = [Kind.RAND, Kind.NH, Kind.NH, Kind.NH]
            found = searched(game, state, kinds, constant(value), search_config)
            assert found.q[0].argmax().item() == HUNT_HARE


@pytest.mark.parametrize("root", ["puct", "gumbel"])
def test_the_plan_improves_on_the_prior(root: str) -> None:
    """By the planner's own values, in 99 of 100 decisions."""
    game = make_game(game_config("msh_4x4"))
    starts, trees = game.reset(100, seeded(3)), 2
    kinds, legal = [Kind.RAND, Kind.NS, Kind.NH, Kind.NH], game.legal(starts)[:, 0]
    result = searched(game, starts, kinds, constant(0.0), SearchConfig(root=root), trees)  # type: ignore[arg-type]
    found = summarise(result, trees)
    q, prior = found.q.mean(1), legal.float() / legal.sum(1, keepdim=True)
    for logits in (None, torch.zeros_like(q)):
        policy = boltzmann(normalised(q, found.low, found.high), legal, 25.0, logits)
        metrics = decision_metrics(found, q, policy, prior, legal, 1.0)
        assert (metrics["improvement"] >= -1e-6).float().mean() >= 0.99


def test_unscaled_values_flatten_what_the_planner_found() -> None:
    """A hare one step nearer is worth 0.05 more: raw beta 2 hardly sees it, scaled values do."""
    q = torch.tensor([[GAMMA**2, GAMMA**3, GAMMA**4, GAMMA**4]])
    legal = torch.ones(1, 4, dtype=torch.bool)
    raw = boltzmann(q, legal, 2.0)
    scaled = boltzmann(normalised(q, q.amin(1), q.amax(1)), legal, 25.0)
    entropy = [-(p * p.log()).sum().item() for p in (raw, scaled)]
    assert entropy[0] > math.log(4) - 0.02 and entropy[1] < 0.1
