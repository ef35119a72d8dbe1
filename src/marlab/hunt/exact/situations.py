"""All situations that can follow from a start when the other players follow rules, with every choice weighted exactly.

Every other seat has one or more *candidates*: rules that its player may follow. A situation holds where everybody is,
which prey is left, and what the others remember (WAIT: how long it stood alone on a stag). Rules that change with the
time (SWITCH) have their own edges in every phase of it. Two facts keep the set small without changing any value: a
player whose prey is gone for good only wanders (it hunts nothing and stops nobody), and once the focal player has
captured something its episode is over.

Letters: N situations, E edges, n players, K candidates of a seat, A actions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from marlab.hunt.game.rules import ABSENT, STAY, Game, State
from marlab.hunt.game.views import View
from marlab.hunt.players.characters import Noisy
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import DEFAULT_VALUES, Kind, Role
from marlab.lab.errors import UserError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Rule = Kind | Role | Noisy
"""Whom a best response can be solved against."""
MOST_EDGES = 10_000_000
"""Larger sets of situations are refused: an edge takes some hundred bytes while a start is solved."""
SOLVED = (Kind.NS, Kind.NH, Kind.RAND, Kind.EXPL, Kind.SWITCH, Kind.WAIT, Kind.NEAR)


@dataclass(frozen=True)
class Edges:
    """What can happen in one step, in one phase of the time."""

    source: Ints  # [E] place of the situation an edge leaves
    action: Ints  # [E] focal action
    reward: Floats  # [E] of the focal player
    target: Ints  # [E] place of the situation after, N where the focal player's episode ends
    chance: Floats  # [E, n, K] how likely each candidate of each seat makes its player's part; 1 for the focal seat


@dataclass(frozen=True)
class Situations:
    """The reachable situations of one start and the steps between them."""

    codes: Ints  # [N] ascending
    legal: NDArray[np.bool_]  # [N, A] focal actions
    phases: list[Edges]
    times: tuple[int, ...]  # when each phase begins
    first: int  # place of the start

    def phase(self, t: int) -> int:
        """Which of the phases time t lies in."""
        return int(np.searchsorted(self.times, t, side="right")) - 1


class Others:
    """The candidates of every seat but the focal one."""

    def __init__(self, game: Game, candidates: Sequence[Sequence[Rule]], focal: int) -> None:
        config = game.config
        if config.rules != "hunt" or config.dynamic_final_time or config.time_reward or config.prosocial:
            raise UserError(
                "Best responses are solved for the plain stag hunt: no time reward, no prosocial, fixed end."
            )
        if len(candidates) != game.players or not 0 <= focal < game.players:
            raise ValueError("give the candidates of every player, and a seat")
        if (game.cells + 1) ** game.players * 2**game.prey > np.iinfo(np.int64).max:
            raise UserError(
                f"The situations of {game.players} players on {game.cells} cells have no number of 64 bits; "
                "in a game of this size a PPO response or a search must do."
            )
        self.game, self.focal = game, focal
        seats = [[_plain(rule) for rule in seat] for seat in candidates]
        seats[focal] = [(Role(Kind.RAND), 0.0)]
        self.width = max(len(seat) for seat in seats)
        filled = [[*seat, *[seat[0]] * (self.width - len(seat))] for seat in seats]
        self.count = [len(seat) for seat in seats]
        self._rules = [RulePlayers(game, [seat[k][0] for seat in filled]) for k in range(self.width)]
        self._noise = torch.tensor([[seat[k][1] for seat in filled] for k in range(self.width)])  # [K, n]
        roles = [[role for role, _ in seat] for seat in filled]
        self.patience = [max([0, *(math.ceil(r.value) for r in seat if r.kind == Kind.WAIT)]) for seat in roles]
        switches = {math.ceil(r.value) for seat in roles for r in seat if r.kind == Kind.SWITCH}
        self.times = (0, *sorted(t for t in switches if 0 < t < config.final_time))
        self._wants = [[_wants(role, noise) for role, noise in seat] for seat in filled]  # [n][K]

    def chances(self, state: State, waited: Tensor) -> Tensor:
        """[B, n, K, A] float64: what each candidate of each seat does; zeros where nobody is."""
        view, each = View(self.game, state), []
        legal = self.game.legal(state).double()
        anything = legal / legal.sum(2, keepdim=True).clamp_min(1)
        for rules, noise in zip(self._rules, self._noise):
            types = torch.tensor([int(role.kind) for role in rules.roles]).expand(state.batch, -1)
            options = rules.options(view, {"type": types, "waited": waited}).double()
            sensible = options / options.sum(2, keepdim=True).clamp_min(1)
            share = noise.double().view(1, -1, 1)
            each.append((1 - share) * sensible + share * anything)
        return torch.stack(each, 2)

    def waits(self, state: State, waited: Tensor) -> Tensor:
        """[B, n] steps alone on a stag after a decision in `state`, as far as anybody counts them."""
        view, rules = View(self.game, state), self._rules[0]
        alone = rules.on_stag(view) & ~rules.company(view) & state.alive
        return torch.minimum(waited + alone, torch.tensor(self.patience))

    def canonical(self, state: State, waited: Tensor) -> tuple[State, Tensor]:
        """Forget players whose prey is gone: they only wander, and where they are changes nobody's reward."""
        stags = state.prey_alive[:, : self.game.config.stags].any(1)
        hares = state.prey_alive[:, self.game.config.stags :].any(1)
        always, matters = torch.ones_like(stags), []
        for seat, wants in enumerate(self._wants):
            after = {"stag": stags, "hare": hares, "both": stags | hares, "always": always}
            each = [after[want] for want in wants]
            matters.append(always if seat == self.focal else torch.stack(each).any(0))
        alive = state.alive & torch.stack(matters, 1)
        return state._replace(alive=alive), waited * alive


def _plain(rule: Rule) -> tuple[Role, float]:
    """(the rule, its noise)"""
    role, noise = (rule.rule, rule.share) if isinstance(rule, Noisy) else (rule, 0.0)
    if isinstance(role, Kind):
        role = Role(role, DEFAULT_VALUES.get(role, 0.0))
    if role.kind not in SOLVED:
        known = ", ".join(kind.name for kind in SOLVED)
        raise UserError(f"Best responses are solved against {known}, with or without noise, not {role}.")
    return role, noise


def _wants(role: Role, noise: float) -> str:
    if noise or role.kind in (Kind.RAND, Kind.EXPL, Kind.NEAR):
        return "always"
    return {Kind.NS: "stag", Kind.NH: "hare"}.get(role.kind, "both")


def explore(others: Others, start: State) -> Situations:
    """All situations that can follow from `start` (one game at t = 0) and all edges between them."""
    game, focal = others.game, others.focal
    if start.batch != 1:
        raise ValueError("one start at a time")
    first = encode(game, *others.canonical(start, torch.zeros_like(start.cell)), others.patience)
    known, frontier = first, first
    found: list[list[tuple[Ints, Ints, Floats, Ints, Floats]]] = [[] for _ in others.times]
    room = MOST_EDGES
    for _ in range(game.config.final_time):  # later situations have no step left
        if not len(frontier):
            break
        reached = []
        for phase, t in enumerate(others.times):
            state, waited = _decode(game, frontier, start, others.patience)
            row, action, reward, target, chance = _expand(others, state, waited, t, room)
            room -= len(row)
            found[phase].append((frontier[row], action, reward, target, chance))
            reached.append(target[target >= 0])
        frontier = np.setdiff1d(np.concatenate(reached), known)
        known = np.union1d(known, frontier)
    phases = []
    for parts in found:
        source, action, reward, target, chance = (np.concatenate(part) for part in zip(*parts))
        place = np.where(target >= 0, np.searchsorted(known, target), len(known))
        phases.append(Edges(np.searchsorted(known, source), action, reward, place, chance))
    legal = game.legal(_decode(game, known, start, others.patience)[0])[:, focal].numpy()
    return Situations(known, legal, phases, others.times, int(np.searchsorted(known, first)[0]))


def _expand(others: Others, state: State, waited: Tensor, t: int, room: int) -> tuple[Ints, Ints, Floats, Ints, Floats]:
    """Edges out of `state` [B]: (row, focal action, focal reward, code after or -1 at the end, chances [E, n, K]).

    More than `room` of them are refused before they are made.
    """
    game, focal = others.game, others.focal
    state = state._replace(t=torch.full_like(state.t, t))
    each = others.chances(state, waited)  # [B, n, K, A]
    legal = game.legal(state)[:, focal]
    choices = each.any(2).sum(2).clamp_min(1)  # [B, n]
    choices[:, focal] = legal.sum(1)
    if int(choices.prod(1).sum()) > room:
        raise UserError(
            f"The best response to these {game.players - 1} players from this start has more than {MOST_EDGES:,} "
            "transitions; in a game of this size a PPO response or a search must do."
        )
    row, joint, chance = _joint_choices(each, legal, focal)
    after, out = game.step(state.select(row), joint)
    ended = out.done[:, focal] | _over(after)
    now, remembered = others.canonical(after, others.waits(state, waited)[row])
    code = np.where(ended.numpy(), -1, encode(game, now, remembered, others.patience))
    reward = out.reward[:, focal].double().numpy()
    return row.numpy(), joint[:, focal].numpy(), reward, code, chance.numpy()


def _over(state: State) -> Tensor:
    """[B] nobody or no prey is left; the time is counted elsewhere."""
    return ~state.alive.any(1) | ~state.prey_alive.any(1)


def _joint_choices(each: Tensor, legal: Tensor, focal: int) -> tuple[Tensor, Tensor, Tensor]:
    """Every focal action with every joint choice of the others: (row [E], joint action [E, n], chances [E, n, K])."""
    batch, players, width, actions = each.shape
    row = torch.arange(batch)
    joint = torch.full((batch, players), ABSENT)
    chance = torch.ones(batch, players, width, dtype=torch.float64)
    for seat in range(players):
        choice = legal if seat == focal else each[:, seat].any(1)  # [B, A]
        stays = ~choice.any(1, keepdim=True)  # gone: one "choice" without meaning keeps the row
        edge, action = torch.cat([choice, stays], 1)[row].nonzero(as_tuple=True)
        row, joint, chance = row[edge], joint[edge], chance[edge]
        there = action < actions
        joint[:, seat] = torch.where(there, action, ABSENT)
        if seat != focal:
            taken = each[row, seat].gather(2, action.clamp_max(actions - 1).view(-1, 1, 1).expand(-1, width, 1))
            chance[:, seat] = torch.where(there.unsqueeze(1), taken.squeeze(2), 1.0)
    return row, joint, chance


def encode(game: Game, state: State, waited: Tensor | None = None, patience: Sequence[int] = ()) -> Ints:
    """[B] one number per situation: cells of the present players, absent ones as C, the prey that is left, and how long
    players waited who count it. The time is not part of it; the layout is fixed."""
    place = torch.where(state.alive, state.cell, game.cells)
    code = torch.zeros(state.batch, dtype=torch.int64)
    for seat in range(game.players):
        code = code * (game.cells + 1) + place[:, seat]
    for prey in range(game.prey):
        code = code * 2 + state.prey_alive[:, prey]
    for seat, most in enumerate(patience):
        if most and waited is not None:
            code = code * (most + 1) + waited[:, seat]
    return code.numpy()


def _decode(game: Game, codes: Ints, start: State, patience: Sequence[int]) -> tuple[State, Tensor]:
    """The states behind codes, on the layout of `start`, and how long players waited [B, n]."""
    code, batch = torch.from_numpy(codes), len(codes)
    waited = torch.zeros(batch, game.players, dtype=torch.int64)
    for seat, most in reversed(list(enumerate(patience))):
        if most:
            waited[:, seat] = code % (most + 1)
            code = code // (most + 1)
    prey, cells = [], []
    for _ in range(game.prey):
        prey.append(code % 2)
        code = code // 2
    for _ in range(game.players):
        cells.append(code % (game.cells + 1))
        code = code // (game.cells + 1)
    place = torch.stack(cells[::-1], 1)
    alive = place < game.cells
    state = State(
        map=start.map.expand(batch),
        cell=torch.where(alive, place, 0),
        alive=alive,
        prey_cell=start.prey_cell.expand(batch, -1),
        prey_alive=torch.stack(prey[::-1], 1).bool(),
        t=torch.zeros(batch, dtype=torch.int64),
        first_hunt=torch.full((batch,), -1),
        last_action=torch.full((batch, game.players), STAY),
    )
    return state, waited
