"""Rule-based players, all seats and games in one pass.

Every rule is "uniform over a set of actions", so a player is a set per situation (`options`), its distribution is
known exactly, and sampling is exact. A player is written as in the tables: NS, NH, RAND, MIX(0.5), SWITCH(10),
SWITCH(10,NH) for the reverse, WAIT(5), EXPL, NEAR(2), SHY(0.5); ND clears the nearest drift in the snowdrift game.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.fold import any_of, count_of
from marlab.hunt.game.maps import UNREACHABLE
from marlab.hunt.game.rules import Game, State
from marlab.hunt.game.views import View
from marlab.hunt.players.policy import Chance, Memory, Policy, choose, uniform
from marlab.hunt.players.seats import DEFAULT_VALUES, Kind, Role
from marlab.lab.errors import UserError


class Pursuit(NamedTuple):
    """Where a player wants to go, given which prey it wants."""

    exists: Tensor  # [B, n] bool: there is such a prey
    arrived: Tensor  # [B, n] bool: the player stands on it
    moves: list[Tensor]  # four masks [B, n]: this move comes nearer to the nearest one


class RulePlayers(Policy):
    """A rule-based player in every seat.

    Memory: `type` [B, n] the rule of this episode (a Kind; MIX has become NS or NH, SHY EXPL or NH), `waited` [B, n]
    steps spent alone on a stag.
    """

    def __init__(
        self,
        game: Game,
        roles: Sequence[Role | Kind],
        *,
        ns_wait: Literal["stay", "hunt"] = "stay",
        fallback: Literal["random", "stay", "hare"] = "random",
    ) -> None:
        """`ns_wait`: what NS does alone on a stag; `fallback`: what a player does once its prey is gone."""
        self.game, self.ns_wait, self.fallback = game, ns_wait, fallback
        self.roles = tuple(
            role if isinstance(role, Role) else Role(role, DEFAULT_VALUES.get(role, 0.0)) for role in roles
        )
        if len(self.roles) != game.players:
            raise UserError(f"There are {len(self.roles)} roles for {game.players} players; give one per player.")
        hunt_only = [role for role in self.roles if (role.kind == Kind.ND) != (game.config.rules == "snowdrift")]
        for role in hunt_only:
            if role.kind != Kind.RAND:
                raise UserError(f"{role} does not play {game.config.rules}; RAND plays both games, ND the snowdrift.")
        device = game.device
        self._kind = torch.tensor([role.kind for role in self.roles], device=device)  # [n]
        self._value = torch.tensor([role.value for role in self.roles], device=device)  # [n]
        self._reverse = torch.tensor([role.reverse for role in self.roles], device=device)  # [n]
        self.draws_at_start = any(role.kind in (Kind.MIX, Kind.SHY) for role in self.roles)
        self._anybody_near = any(role.kind == Kind.NEAR for role in self.roles)
        self._is_stag = game.prey_kind == 0  # [m]; in the snowdrift game every drift

    # --- the policy interface -----------------------------------------------------------------------------------

    def begin(self, batch: int, generator: Chance) -> Memory:
        types = self._kind.expand(batch, -1)
        if self.draws_at_start:
            coin = uniform(types.shape, generator, types.device)
            drawn = torch.where(coin < self._value, int(Kind.NS), int(Kind.NH))
            types = torch.where(types == Kind.MIX, drawn, types)
            shy = torch.where(coin < self._value, int(Kind.EXPL), int(Kind.NH))
            types = torch.where(types == Kind.SHY, shy, types)
        return self.memory_of(types)

    def memory_of(self, types: Tensor) -> Memory:
        """Memory at the start of episodes with given rules `types` [B, n] (Kind numbers, not MIX or SHY).

        SWITCH, WAIT and NEAR take their values from the roles of their seats.
        """
        return {"type": types.clone(), "waited": torch.zeros_like(types)}

    def act(self, view: View, memory: Memory, generator: Chance) -> tuple[Tensor, Memory]:
        return choose(self._options_by_action(view, memory), generator), self.remember(view, memory)

    def probabilities(self, view: View, memory: Memory) -> Tensor:
        options = self.options(view, memory)
        return options / options.sum(2, keepdim=True).clamp_min(1)

    def remember(self, view: View, memory: Memory) -> Memory:
        """Memory after this step's decision."""
        alone = self.on_stag(view) & ~self.company(view)
        waiting = alone & (memory["type"] == Kind.WAIT)
        return {**memory, "waited": memory["waited"] + waiting}

    # --- the rules ----------------------------------------------------------------------------------------------

    def options(self, view: View, memory: Memory) -> Tensor:
        """[B, n, A] bool: the actions each player chooses from, equally likely; none for players who left."""
        return torch.stack(self._options_by_action(view, memory), 2)

    def _options_by_action(self, view: View, memory: Memory) -> list[Tensor]:
        """The same as A masks [B, n]."""
        wanted, stag = self._wanted(view, memory)
        pursuit = self._pursue(view, wanted)
        lost, at_goal = ~pursuit.exists, pursuit.arrived
        if self.game.config.rules == "snowdrift":
            stay, hunts = torch.zeros_like(lost), [at_goal]
        else:
            on_stag = at_goal & stag
            hunt = on_stag if self.ns_wait == "hunt" else on_stag & self.company(view)
            stay, hunts = on_stag & ~hunt, [hunt, at_goal & ~stag]
        if self.fallback == "stay":
            stay, lost = stay | lost, torch.zeros_like(lost)
        legal = self.game.legal_by_action(view.state)
        chosen = [a | (lost & b) for a, b in zip([*pursuit.moves, stay], legal)]
        random = memory["type"] == Kind.RAND
        return [torch.where(random, b, a & view.state.alive) for a, b in zip([*chosen, *hunts], legal)]

    def _wanted(self, view: View, memory: Memory) -> tuple[Tensor, Tensor]:
        """(the prey each player is after [B, n, m], whether that is a stag [B, n])."""
        state, types = view.state, memory["type"]
        there = state.prey_alive.unsqueeze(1)  # [B, 1, m]
        late = state.t.unsqueeze(1) >= self._value
        stag = (
            (types == Kind.NS)
            | (types == Kind.ND)
            | ((types == Kind.SWITCH) & (late == self._reverse))
            | ((types == Kind.WAIT) & (memory["waited"] < self._value))
        )
        stags = there & self._is_stag
        held, exploiter = self._held_by_others(view), types == Kind.EXPL
        if self._anybody_near:
            near = types == Kind.NEAR
            held = torch.where(near.unsqueeze(2), self._approached_by_others(view), held)
            exploiter = exploiter | near
        stag = stag | (exploiter & any_of(held, 2))
        stags = torch.where(exploiter.unsqueeze(2), held, stags)
        if self.fallback == "hare" and self.game.config.rules == "hunt":
            stag = stag & any_of(stags, 2)
        return torch.where(stag.unsqueeze(2), stags, there & ~self._is_stag), stag

    def _pursue(self, view: View, wanted: Tensor) -> Pursuit:
        path = self.game.paths(view.state)  # [B, n, m]
        distance = torch.where(wanted, path >> 4, UNREACHABLE)
        nearest = reduce(torch.minimum, distance.unbind(2))  # [B, n]
        aim = wanted & (distance == nearest.unsqueeze(2))
        nearer = reduce(or_, (path * aim).unbind(2))  # [B, n] one bit per move that comes nearer
        moves = [(nearer & (1 << a)) > 0 for a in range(4)]
        return Pursuit(nearest < UNREACHABLE, nearest == 0, moves)

    def company(self, view: View) -> Tensor:
        """[B, n] bool: another player who is still in the game stands on the same cell."""
        cell, alive = view.state.cell, view.state.alive
        place = torch.where(alive, cell, -1).to(torch.int16)
        return count_of(place.unsqueeze(2) == place.unsqueeze(1), 2) > 1

    def on_stag(self, view: View) -> Tensor:
        """[B, n] bool: the player stands on a stag that is still there."""
        return on_stag(self.game, view.state)

    def _held_by_others(self, view: View) -> Tensor:
        """[B, n, m] bool: stags on which another player stands."""
        at = self.game.at_prey(view.state) & self._is_stag  # [B, n, m]
        return count_of(at, 1).unsqueeze(1) > at

    def _approached_by_others(self, view: View) -> Tensor:
        """[B, n, m] bool: stags that another player is near to, by what each player calls near."""
        state, n = view.state, self.game.players
        far = (self.game.paths(state) >> 4).unsqueeze(1)  # [B, 1, n, m] of everybody
        stags = (state.prey_alive & self._is_stag).view(-1, 1, 1, self.game.prey)
        close = (far <= self._value.view(1, n, 1, 1)) & state.alive.view(-1, 1, n, 1) & stags  # [B, n, n, m]
        other = ~torch.eye(n, dtype=torch.bool, device=self.game.device)
        return (close & other.view(1, n, n, 1)).any(2)


def on_stag(game: Game, state: State) -> Tensor:
    """[B, n] bool: the player stands on a stag that is still there; in the snowdrift game, on any drift."""
    return any_of(game.at_prey(state) & (game.prey_kind == 0), 2)


def rule_probabilities(players: RulePlayers, view: View, kinds: Sequence[Kind]) -> Tensor:
    """[B, n, K, A] what each player would do if it were of each kind: exact likelihoods for beliefs and ceilings.

    Only kinds without a value or a memory can be asked for: NS, NH, RAND and ND.
    """
    if not set(kinds) <= {Kind.NS, Kind.NH, Kind.RAND, Kind.ND}:
        raise ValueError(f"{[kind.name for kind in kinds]} are not all memoryless kinds")
    shape = view.state.cell.shape
    each = []
    for kind in kinds:
        types = torch.full(shape, int(kind), device=view.state.cell.device)
        each.append(players.probabilities(view, players.memory_of(types)))
    return torch.stack(each, 2)
