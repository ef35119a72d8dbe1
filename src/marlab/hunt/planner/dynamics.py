"""What a planner imagines: the next situation of one player, from its own action and those of the others.

The game itself, or a learned model of it, behind one interface. Situations are always ego-first: the planning player
is seat 0, the player k places after it is seat k, so one piece of code plans for every seat.

Letters: R imagined situations, n players, A actions, W row width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from marlab.hunt.game.build import state_of_planes
from marlab.hunt.game.maps import MOVES
from marlab.hunt.game.rows import encode, mark_paths, row_layout, rows_of_planes
from marlab.hunt.game.rules import ABSENT, Game, State
from marlab.hunt.game.views import View
from marlab.hunt.players.rules import on_stag
from marlab.hunt.world_model.model import WorldModel
from marlab.lab.errors import UserError

Embedding = tuple[Tensor, ...]


class Seen(NamedTuple):
    """What some players see in imagined situations."""

    rows: Tensor  # [R, L, W] uint8
    legal: Tensor  # [R, L, A] bool; nothing is legal for players who left
    time: Tensor  # [R] t / T_max


class ImaginedStep(NamedTuple):
    """The planner's own transition."""

    embedding: Embedding
    reward: Tensor  # [R] in the units of the game
    stays: Tensor  # [R] probability that the planner is still in the game


class Left(NamedTuple):
    """Who and what is left in imagined situations beside the planner."""

    others: Tensor  # [R, S'] bool
    stag: Tensor  # [R] bool
    hare: Tensor  # [R] bool


class Dynamics(ABC):
    """Imagined steps of ego-first situations."""

    def __init__(self, game: Game, paths: bool = False) -> None:
        """paths: the rows that players see hold the shortest ways, too."""
        if len(set(game.config.player_strength)) > 1:
            raise UserError("Planning agents take all players for equally strong; this game's player_strength differs.")
        self.game, self.paths = game, paths
        self._me = torch.zeros(1, dtype=torch.int64, device=game.device)
        self._others = torch.arange(1, game.players, device=game.device)

    @abstractmethod
    def root(self, state: State, games: Tensor, seats: Tensor) -> Embedding:
        """The situations of `seats` [R] in the games [R] of a state."""

    @abstractmethod
    def see(self, embedding: Embedding, players: Tensor) -> Seen:
        """What `players` [L] (ego-first numbers) see."""

    @abstractmethod
    def step(self, embedding: Embedding, action: Tensor, others: Tensor) -> ImaginedStep:
        """The planner does `action` [R], the others do `others` [R, n - 1]."""

    @abstractmethod
    def left(self, embedding: Embedding) -> Left:
        """Who and what is left."""

    @abstractmethod
    def on_stag(self, embedding: Embedding) -> Tensor:
        """[R, n] bool: who stands on a stag that is still there."""

    def most(self, embedding: Embedding) -> Tensor | None:
        """[R] the most that the planner can still earn by the rules, in the units of the game; None where that takes
        more than a look: a stag takes two hunters, so who is left alone earns a hare at best."""
        c = self.game.config
        if c.prosocial or c.time_reward:
            return None
        left = self.left(embedding)
        hare = left.hare * c.hare_reward
        return torch.where(left.others.any(1) & left.stag, max(c.stag_reward / 2, c.hare_reward), hare)

    def own_view(self, embedding: Embedding) -> Seen:
        return self.see(embedding, self._me)

    def views_of_others(self, embedding: Embedding) -> Seen:
        return self.see(embedding, self._others)


def ego_first(game: Game, state: State, games: Tensor, seats: Tensor) -> State:
    """[R] games as `seats` [R] see them: every field of players begins with the seat's own."""
    chosen = state.select(games)
    order = game.ego[seats]  # [R, n]
    mine = {name: getattr(chosen, name).gather(1, order) for name in ("cell", "alive", "last_action")}
    return chosen._replace(**mine)


class TrueGame(Dynamics):
    """The game itself; an embedding is a `State`."""

    def root(self, state: State, games: Tensor, seats: Tensor) -> Embedding:
        return tuple(ego_first(self.game, state, games, seats))

    def see(self, embedding: Embedding, players: Tensor) -> Seen:
        state = State(*embedding)
        rows, legal = encode(self.game, state, players, self.paths)
        return Seen(rows, legal, state.t / self.game.config.final_time)

    def left(self, embedding: Embedding) -> Left:
        state = State(*embedding)
        stags, hares = state.prey_alive.split(self.game.config.prey_kinds, 1)
        return Left(state.alive[:, 1:], stags.any(1), hares.any(1))

    def on_stag(self, embedding: Embedding) -> Tensor:
        return on_stag(self.game, State(*embedding))

    def step(self, embedding: Embedding, action: Tensor, others: Tensor) -> ImaginedStep:
        joint = torch.cat([action.unsqueeze(1), others], 1)
        after, outcome = self.game.step(State(*embedding), joint)
        return ImaginedStep(tuple(after), outcome.reward[:, 0], (~outcome.done[:, 0]).to(outcome.reward.dtype))


class ImaginedGame(Dynamics):
    """A world model; an embedding is (planes [R, H, W, C] uint8 as the planner sees them, t [R], map [R])."""

    def __init__(self, game: Game, model: WorldModel, paths: bool = False) -> None:
        super().__init__(game, paths)
        self.model = model
        self.layout = row_layout(game.config, paths)
        n = game.players
        # Player k sees the players as k, k + 1, ..., and the planes after them unchanged.
        rest = torch.arange(n, game.channels, device=game.device).expand(n, -1)
        self._turned = torch.cat([game.ego, rest], 1)  # [n, C]

    def root(self, state: State, games: Tensor, seats: Tensor) -> Embedding:
        chosen = ego_first(self.game, state, games, seats)
        return View(self.game, chosen).grid_of(self._me).squeeze(1), chosen.t, chosen.map

    def see(self, embedding: Embedding, players: Tensor) -> Seen:
        planes, t, which = embedding
        legal = legal_of_planes(planes, self.game.players).index_select(1, players)
        turned = planes[..., self._turned[players]].movedim(-2, 1)  # [R, L, H, W, C]
        rows = rows_of_planes(self.layout, turned, legal)
        if self.paths:
            mark_paths(self.layout, rows, self.game, state_of_planes(self.game.config, planes, t, which), players)
        return Seen(rows, legal, t / self.game.config.final_time)

    def left(self, embedding: Embedding) -> Left:
        n, there = self.game.players, embedding[0].flatten(1, 2).bool().any(1)  # [R, C]
        return Left(there[:, 1:n], there[:, n + 1], there[:, n + 2])

    def on_stag(self, embedding: Embedding) -> Tensor:
        planes, n = embedding[0].flatten(1, 2).bool(), self.game.players  # [R, H W, C]
        return (planes[..., :n] & planes[..., n + 1 : n + 2]).any(1)

    def step(self, embedding: Embedding, action: Tensor, others: Tensor) -> ImaginedStep:
        planes, t, which = embedding
        there = planes[..., : self.game.players].flatten(1, 2).bool().any(1)  # [R, n]
        joint = torch.where(there, torch.cat([action.unsqueeze(1), others], 1), ABSENT)
        imagined = self.model.imagine(planes, joint, t.clamp_max(self.game.config.final_time - 1))
        if imagined.done is None:
            stays = imagined.planes[..., 0].flatten(1).sum(1).clamp(0.0, 1.0)  # a dense model only shows who is left
        else:
            stays = 1.0 - imagined.done.amax(1)
        in_time = t + 1 < self.game.config.final_time  # the clock needs no model
        embedding = ((imagined.planes >= 0.5).to(torch.uint8), t + 1, which)
        return ImaginedStep(embedding, imagined.reward, stays * in_time)


def legal_of_planes(planes: Tensor, players: int) -> Tensor:
    """[R, n, A] bool: what players may do by the rules, read off planes [R, H, W, C] (nothing for absent players)."""
    bodies = planes[..., :players].bool()  # [R, H, W, n]
    free = pad((planes[..., players] == 0), (1, 1, 1, 1))  # beyond the edge nothing is free
    height, width = planes.shape[1:3]
    options = [free[:, 1 + down : 1 + down + height, 1 + right : 1 + right + width] for down, right in MOVES]
    options.append(torch.ones_like(options[0]))
    options += [planes[..., kind].bool() for kind in range(players + 1, planes.shape[-1])]
    return torch.stack([(bodies & option.unsqueeze(-1)).flatten(1, 2).any(1) for option in options], -1)
