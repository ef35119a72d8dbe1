"""Exact best responses: what one player can earn at most against rule-based others, by dynamic programming.

From a given start only few situations can be reached, because rule-based players walk straight to their prey. They
are enumerated with the game itself as the transition function, every choice of the others weighted exactly; values
then follow backwards from the last step. Two facts keep the set small without changing any value: a player whose
prey is gone for good only wanders (it hunts nothing and stops nobody), and once the focal player has captured
something its episode is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from marlab.hunt.game.rules import ABSENT, STAY, Game, State
from marlab.hunt.game.views import View
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind
from marlab.lab.errors import UserError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
MEMORYLESS = (Kind.NS, Kind.NH, Kind.RAND)


@dataclass(frozen=True)
class BestResponse:
    """The solution for one start. Values are expected (discounted) rewards of the focal player in what is left."""

    game: Game
    focal: int
    kinds: tuple[Kind, ...]
    codes: Ints  # [N] reachable situations, ascending
    values: Floats  # [T_max + 1, N]: with k steps to go
    action_values: Floats  # [T_max + 1, N, A]: of each action with k steps to go; -inf where it is illegal
    start_value: float

    def q(self, state: State) -> Tensor:
        """[B, A] float64 values of the focal player's actions in states [B] of this start's game; -inf if illegal."""
        state = state.to("cpu")
        codes = encode(self.game, _canonical(self.game, state, self.kinds, self.focal))
        place = np.searchsorted(self.codes, codes).clip(max=len(self.codes) - 1)
        if not bool((self.codes[place] == codes).all()):
            raise ValueError("a state was asked for that cannot follow from the solved start")
        left = self.game.config.final_time - state.t.numpy()
        return torch.from_numpy(self.action_values[left, place])


def best_response(game: Game, start: State, kinds: Sequence[Kind], focal: int = 0, gamma: float = 1.0) -> BestResponse:
    """Solve one start (a state of one game at t = 0). `kinds[focal]` is ignored; the others are NS, NH or RAND."""
    kinds = tuple(kinds)
    _check(game, start, kinds, focal)
    graph = _explore(game, start, kinds, focal)
    n, actions = len(graph.codes), game.actions
    values = np.zeros((game.config.final_time + 1, n))
    action_values = np.full((game.config.final_time + 1, n, actions), -np.inf)
    for k in range(1, game.config.final_time + 1):
        future = np.append(values[k - 1], 0.0)[graph.target]  # the last place is the end of the episode
        worth = graph.chance * (graph.reward + gamma * future)
        q = np.bincount(graph.source * actions + graph.action, worth, minlength=n * actions).reshape(n, actions)
        action_values[k] = np.where(graph.legal, q, -np.inf)
        values[k] = action_values[k].max(1)
    place = int(np.searchsorted(graph.codes, graph.first))
    return BestResponse(game, focal, kinds, graph.codes, values, action_values, float(values[-1, place]))


def start_values(game: Game, starts: State, kinds: Sequence[Kind], focal: int = 0, gamma: float = 1.0) -> Tensor:
    """[B] float64: the best response's value in each of several starts."""
    solved = [best_response(game, starts.select(slice(b, b + 1)), kinds, focal, gamma) for b in range(starts.batch)]
    return torch.tensor([one.start_value for one in solved], dtype=torch.float64)


def _check(game: Game, start: State, kinds: tuple[Kind, ...], focal: int) -> None:
    config = game.config
    if config.rules != "hunt" or config.dynamic_final_time or config.time_reward or config.prosocial:
        raise UserError("Best responses are solved for the plain stag hunt: no time reward, no prosocial, fixed end.")
    if start.batch != 1 or len(kinds) != game.players or not 0 <= focal < game.players:
        raise ValueError("best_response takes one start, one kind per player and a seat")
    others = [kind for seat, kind in enumerate(kinds) if seat != focal]
    if not set(others) <= set(MEMORYLESS):
        raise UserError(f"Best responses are solved against NS, NH and RAND, not {[k.name for k in others]}.")


# --- the reachable situations -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Graph:
    codes: Ints  # [N] ascending
    legal: NDArray[np.bool_]  # [N, A]
    source: Ints  # [E] place of the situation an edge leaves
    action: Ints  # [E] focal action
    chance: Floats  # [E] probability of the others' choices
    reward: Floats  # [E] of the focal player
    target: Ints  # [E] place of the situation after, N where the focal player's episode ends
    first: int  # code of the start


def encode(game: Game, state: State) -> Ints:
    """[B] one number per situation: cells of the present players, absent ones as C, and the prey that is left.

    The time is not part of it; the layout is fixed.
    """
    place = torch.where(state.alive, state.cell, game.cells)
    code = torch.zeros(state.batch, dtype=torch.int64)
    for seat in range(game.players):
        code = code * (game.cells + 1) + place[:, seat]
    for prey in range(game.prey):
        code = code * 2 + state.prey_alive[:, prey]
    return code.numpy()


def _decode(game: Game, codes: Ints, start: State) -> State:
    """The states behind codes, on the layout of `start`."""
    code = torch.from_numpy(codes)
    prey, cells = [], []
    for _ in range(game.prey):
        prey.append(code % 2)
        code = code // 2
    for _ in range(game.players):
        cells.append(code % (game.cells + 1))
        code = code // (game.cells + 1)
    place, batch = torch.stack(cells[::-1], 1), len(codes)
    alive = place < game.cells
    return State(
        map=start.map.expand(batch), cell=torch.where(alive, place, 0), alive=alive,
        prey_cell=start.prey_cell.expand(batch, -1), prey_alive=torch.stack(prey[::-1], 1).bool(),
        t=torch.zeros(batch, dtype=torch.int64), first_hunt=torch.full((batch,), -1),
        last_action=torch.full((batch, game.players), STAY),
    )  # fmt: skip


def _canonical(game: Game, state: State, kinds: tuple[Kind, ...], focal: int) -> State:
    """Forget players whose prey is gone: they only wander, and where they are changes nobody's reward."""
    stags = state.prey_alive[:, : game.config.stags].any(1)
    hares = state.prey_alive[:, game.config.stags :].any(1)
    always = torch.ones_like(stags)
    matters = [{Kind.NS: stags, Kind.NH: hares}.get(kind, always) for kind in kinds]
    matters[focal] = always
    return state._replace(alive=state.alive & torch.stack(matters, 1))


def _explore(game: Game, start: State, kinds: tuple[Kind, ...], focal: int) -> _Graph:
    """All situations that can follow from `start` and all edges between them."""
    rules = RulePlayers(game, [Kind.RAND if seat == focal else kind for seat, kind in enumerate(kinds)])
    first = encode(game, _canonical(game, start, kinds, focal))
    known, frontier = first, first
    edges: list[tuple[Ints, Ints, Floats, Floats, Ints]] = []
    while len(frontier):
        made = _expand(game, _decode(game, frontier, start), rules, kinds, focal)
        edges.append((frontier[made[0]], *made[1:]))
        reached = np.unique(made[4][made[4] >= 0])
        frontier = np.setdiff1d(reached, known, assume_unique=True)
        known = np.union1d(known, frontier)
    source, action, chance, reward, target = (np.concatenate(parts) for parts in zip(*edges))
    place = np.where(target >= 0, np.searchsorted(known, target), len(known))
    legal = game.legal(_decode(game, known, start))[:, focal].numpy()
    return _Graph(known, legal, np.searchsorted(known, source), action, chance, reward, place, int(first[0]))


def _expand(
    game: Game, state: State, rules: RulePlayers, kinds: tuple[Kind, ...], focal: int
) -> tuple[Ints, Ints, Floats, Floats, Ints]:
    """Edges out of `state` [B]: (row, focal action, chance, focal reward, code after or -1 at the end)."""
    options = rules.options(View(game, state), rules.memory_of(torch.tensor(kinds).expand(state.batch, -1)))
    legal = game.legal(state)[:, focal]
    row, joint, chance = _joint_choices(options, legal, focal)
    after, out = game.step(state.select(row), joint)
    ended = out.over | out.done[:, focal]
    code = np.where(ended.numpy(), -1, encode(game, _canonical(game, after, kinds, focal)))
    reward = out.reward[:, focal].double().numpy()
    return row.numpy(), joint[:, focal].numpy(), chance.numpy(), reward, code


def _joint_choices(options: Tensor, legal: Tensor, focal: int) -> tuple[Tensor, Tensor, Tensor]:
    """Every focal action with every joint choice of the others: (row [E], joint action [E, n], probability [E])."""
    batch, players, _ = options.shape
    row, chance = torch.arange(batch), torch.ones(batch, dtype=torch.float64)
    joint = torch.full((batch, players), ABSENT)
    for seat in range(players):
        choice = legal if seat == focal else options[:, seat]  # [B, A]
        count = choice.sum(1)
        stays = (count == 0).unsqueeze(1)  # gone: one "choice" without meaning keeps the row
        table = torch.cat([choice, stays], 1)[row]  # [E, A + 1]
        edge, action = table.nonzero(as_tuple=True)
        row, chance, joint = row[edge], chance[edge], joint[edge]
        joint[:, seat] = torch.where(action < choice.shape[1], action, ABSENT)
        if seat != focal:
            chance = chance / count[row].clamp_min(1)
    return row, joint, chance
