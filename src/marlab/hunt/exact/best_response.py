"""Exact best responses: what one player can earn at most against rule-based others, by dynamic programming.

From a given start only few situations can be reached, because rule-based players walk straight to their prey
(`situations`); values then follow backwards from the last step. Against players who remember earlier episodes, or draw
their rule at the start, `reference_values` gives what can be earned at most by somebody who knows their mood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from marlab.hunt.exact.situations import Floats, Ints, Others, Rule, Situations, encode, explore
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import Game, State
from marlab.hunt.players.characters import Character, Keep, Noisy, Reciprocity
from marlab.hunt.players.seats import Kind, Role


@dataclass(frozen=True)
class BestResponse:
    """The solution for one start. Values are expected (discounted) rewards of the focal player in what is left."""

    others: Others
    codes: Ints  # [N] reachable situations, ascending
    values: Floats  # [T_max + 1, N]: with k steps to go
    action_values: Floats  # [T_max + 1, N, A]: of each action with k steps to go; -inf where it is illegal
    start_value: float

    def q(self, state: State, waited: Tensor | None = None) -> Tensor:
        """[B, A] float64 values of the focal player's actions in states [B] of this start's game; -inf if illegal.

        waited: [B, n] how long players stood alone on a stag, where somebody counts that.
        """
        others, state = self.others, state.to("cpu")
        counted = torch.zeros_like(state.cell) if waited is None else waited.cpu()
        most = torch.tensor(others.patience)
        situation = others.canonical(state, torch.minimum(counted, most))
        codes = encode(others.game, *situation, others.patience)
        place = np.searchsorted(self.codes, codes).clip(max=len(self.codes) - 1)
        if not bool((self.codes[place] == codes).all()):
            raise ValueError("a state was asked for that cannot follow from the solved start")
        left = others.game.config.final_time - state.t.numpy()
        return torch.from_numpy(self.action_values[left, place])


def best_response(game: Game, start: State, rules: Sequence[Rule], focal: int = 0, gamma: float = 1.0) -> BestResponse:
    """Solve one start (a state of one game at t = 0). `rules[focal]` is ignored; the others are NS, NH, RAND, EXPL,
    NEAR, SWITCH or WAIT, with or without noise."""
    others = Others(game, [[rule] for rule in rules], focal)
    there = explore(others, start)
    values, action_values = solve(there, game.config.final_time, gamma)
    return BestResponse(others, there.codes, values, action_values, float(values[-1, there.first]))


def solve(
    there: Situations, steps: int, gamma: float = 1.0, candidates: Sequence[int] | None = None
) -> tuple[Floats, Floats]:
    """Values [steps + 1, N] and action values [steps + 1, N, A] with k steps to go.

    candidates: [n] which candidate each seat is; the first by default.
    """
    count, actions = there.legal.shape
    values = np.zeros((steps + 1, count))
    action_values = np.full((steps + 1, count, actions), -np.inf)
    seats = there.phases[0].chance.shape[1]
    who = np.zeros(seats, int) if candidates is None else np.asarray(candidates)
    weights = [edges.chance[:, np.arange(seats), who].prod(1) for edges in there.phases]
    for k in range(1, steps + 1):
        phase = there.phase(steps - k)
        edges, weight = there.phases[phase], weights[phase]
        future = np.append(values[k - 1], 0.0)[edges.target]  # the last place is the end of the episode
        worth = weight * (edges.reward + gamma * future)
        place = edges.source * actions + edges.action
        q = np.bincount(place, worth, minlength=count * actions).reshape(count, actions)
        action_values[k] = np.where(there.legal, q, -np.inf)
        values[k] = action_values[k].max(1)
    return values, action_values


def start_values(game: Game, starts: State, rules: Sequence[Rule], focal: int = 0, gamma: float = 1.0) -> Tensor:
    """[B] float64: the best response's value in each of several starts."""
    solved = [best_response(game, starts.select(slice(b, b + 1)), rules, focal, gamma) for b in range(starts.batch)]
    return torch.tensor([one.start_value for one in solved], dtype=torch.float64)


# --- players with moods -------------------------------------------------------------------------------------------


def possible_rules(character: Character) -> list[tuple[float, Rule]]:
    """The rules that a character may follow in an episode, with the chance of each; chance 0 marks what it follows or
    leaves because of earlier episodes."""
    if isinstance(character, Reciprocity):
        return [(0.0, Kind.NS), (0.0, Kind.NH)]
    if isinstance(character, Keep):
        return [(character.share, Kind.NS), (1 - character.share, Kind.NH)]
    if isinstance(character, Role) and character.kind == Kind.MIX:
        return [(character.value, Kind.NS), (1 - character.value, Kind.NH)]
    if isinstance(character, Role) and character.kind == Kind.SHY:
        return [(character.value, Kind.EXPL), (1 - character.value, Kind.NH)]
    return [(1.0, character)]


LARGEST_NOISY = 16
"""Grid cells up to which one random or noisy player can be solved; others walk few paths."""


LARGEST_GAME = 64**3
"""Grid cells to the power of the others: in games up to this size every start is solved within seconds."""


def solvable(characters: Sequence[Character], game: GameConfig) -> bool:
    """Whether the best response to a team is solved in every start: random and noisy players walk too many paths on
    large grids, and so do many players together."""
    if game.cells ** (game.players - 1) > LARGEST_GAME:
        return False
    errs = [isinstance(one, Noisy) or (isinstance(one, Role) and one.kind == Kind.RAND) for one in characters]
    return sum(errs) == 0 or (sum(errs) == 1 and game.cells <= LARGEST_NOISY)


def reference_values(game: Game, starts: State, characters: Sequence[Character], focal: int = 0) -> Tensor:
    """[B] float64: what nobody can beat in each start, on average over what the others draw.

    It is the value of the best response to players whose rules are known from the first step on, and where rules hang
    on earlier episodes, to the possible_rules that suit best. `characters[focal]` is ignored.
    """
    seats = [[(1.0, Kind.RAND)] if seat == focal else possible_rules(one) for seat, one in enumerate(characters)]
    lots = [seat if seat[0][0] else [(1.0, None)] for seat in seats]  # what chance decides
    wills = [[None] if seat[0][0] else [rule for _, rule in seat] for seat in seats]  # what earlier episodes decide
    by_will = []
    for will in product(*wills):
        chances: dict[tuple[Rule, ...], float] = {}
        for lot in product(*lots):
            rules = [w if drawn is None else drawn for w, (_, drawn) in zip(will, lot)]
            others = sorted((r for seat, r in enumerate(rules) if seat != focal and r is not None), key=str)
            others.insert(focal, Kind.RAND)  # who sits where makes no difference on average over starts
            chances[tuple(others)] = chances.get(tuple(others), 0.0) + float(np.prod([share for share, _ in lot]))
        each = [share * start_values(game, starts, rules, focal) for rules, share in chances.items() if share]
        by_will.append(torch.stack(each).sum(0))
    return max(by_will, key=lambda values: float(values.mean()))
