"""The batched game: B games of n players step together, as pure functions of tensors on any device.

A state is small: cells, who is still there, which prey is left, the time. Obstacles and prey cells never change in
an episode, so obstacle tables live in `Maps` and prey is a list of fixed cells with a "still there" bit each.
After a start everything is deterministic; randomness enters only through `draw`, whose noise `start` turns into
fresh games. Nothing here reads a value back to the host or loops over games, players or cells.

`StagHunt` is the game; `Snowdrift` is another one on the same grid behind the same interface.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.fold import any_of, at_least, batch_last, count_of, sum_of
from marlab.hunt.game.maps import Maps

UP, DOWN, LEFT, RIGHT, STAY, HUNT_STAG, HUNT_HARE = range(7)
ACTION_NAMES = ("up", "down", "left", "right", "stay", "hunt stag", "hunt hare")
ABSENT = 7
"""Stands for the action of a player who has left; so a one-hot action has 8 places."""


class State(NamedTuple):
    """Everything that a game's future depends on, and the actions that led here."""

    map: Tensor  # [B] int64: which obstacle map
    cell: Tensor  # [B, n] int64: row * width + column; of a player who left, the last one
    alive: Tensor  # [B, n] bool: still in the game
    prey_cell: Tensor  # [B, m] int64: where each prey was put; the first ones are stags
    prey_alive: Tensor  # [B, m] bool: not captured yet
    t: Tensor  # [B] int64: steps taken
    first_hunt: Tensor  # [B] int64: index of the step with the first capture, -1 before it
    last_action: Tensor  # [B, n] int64: executed in the last step, ABSENT for players who were gone

    def select(self, games: Tensor | slice) -> State:
        """The same state restricted to some games (index tensor, mask or slice over B)."""
        return State(*(field[games] for field in self))

    def where(self, games: Tensor, other: State) -> State:
        """This state, with `other` in the games [B] (bool) that are marked."""
        return State(*(torch.where(games.view(-1, *[1] * (a.dim() - 1)), b, a) for a, b in zip(self, other)))

    def renewed(self, games: Tensor, fresh: State) -> State:
        """This state with the games of an index [k] replaced by `fresh` [k], in the same memory order."""
        fields = [field.clone() for field in self]
        for field, new in zip(fields, fresh):
            field[games] = new
        return State(*fields)

    def to(self, device: torch.device | str) -> State:
        return State(*(field.to(device) for field in self))

    def clone(self) -> State:
        return State(*(field.clone() for field in self))

    @property
    def batch(self) -> int:
        return self.t.shape[0]


def concatenate(states: list[State]) -> State:
    """Several batches as one."""
    return State(*(torch.cat(fields) for fields in zip(*states)))


class Outcome(NamedTuple):
    """What one step did."""

    reward: Tensor  # [B, n] float32
    done: Tensor  # [B, n] bool: this was the player's last step (it captured, or the episode ended)
    over: Tensor  # [B] bool: the episode ended
    executed: Tensor  # [B, n] int64: actions after illegal ones became STAY; ABSENT for players who were gone
    hunters: Tensor  # [B, n] int64: how many shared this player's capture, 0 without one
    captured: Tensor  # [B, m] bool: prey that this step took


class Game(ABC):
    """Rules and tables of one game on one device. It holds no state of any episode."""

    def __init__(self, config: GameConfig, maps: Maps, device: torch.device | str = "cpu") -> None:
        self.config, self.device = config, torch.device(device)
        self.maps = maps.to(self.device)
        self.players, self.prey, self.cells = config.players, config.prey, config.cells
        self.actions, self.channels = config.actions, config.channels
        seat = torch.arange(self.players, device=self.device)
        self.ego = (seat[:, None] + seat[None, :]) % self.players  # [n, n]: row i lists the players as i sees them
        kinds = [torch.full((amount,), kind) for kind, amount in enumerate(config.prey_kinds)]
        self.prey_kind = torch.cat(kinds).to(self.device)  # [m]: 0, 1, ...; the action 5 + kind hunts it
        # A CPU works on 8-bit numbers many at a time; 4 * C codes (see _hunting) must fit.
        self._small = torch.uint8 if 4 * self.cells <= 256 else torch.int16
        self._hunted_by = ((self.prey_kind + 1) * self.cells).to(self._small)  # [m], see _hunting
        self._path = self.maps.path.flatten()
        here = torch.arange(self.cells, device=self.device).view(1, -1, 1)
        bits = 1 << torch.arange(STAY, device=self.device)
        self._open = ((self.maps.move[..., :STAY] != here) * bits).sum(2).flatten().to(torch.uint8)  # possible moves
        everything = torch.arange(ABSENT + 1, device=self.device).clamp_max(STAY)  # hunting and absence do not move
        self._move = self.maps.move[..., everything].transpose(1, 2).flatten().to(self._small)  # by map, action, cell
        # With room for everybody in every map the draw with replacement can never happen.
        self._roomy = bool((self.maps.free >= self.prey + self.players).all())

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        return self.config.height, self.config.width, self.channels

    # --- starts -------------------------------------------------------------------------------------------------

    def draw(self, batch: int, generator: torch.Generator) -> Tensor:
        """[batch, C + n + 1] uniform noise for `start`."""
        width = self.cells + self.players + 1
        return torch.rand(batch, width, generator=generator, device=self.device)

    def start(self, noise: Tensor) -> State:
        """Fresh games from noise [B, C + n + 1]: a map, distinct cells for the prey, then for the players."""
        batch = noise.shape[0]
        order_keys, picks, map_key = noise.split([self.cells, self.players, 1], 1)
        which = _pick(map_key.squeeze(1), self.maps.count)
        if self.config.max_block_comp:
            order_keys = order_keys.masked_fill(self.maps.blocks[which], 2.0)  # obstacles come last
        if self.config.layout != "anywhere":  # there is one map only, so its key is free to be a coin
            order = self._far(order_keys, (map_key < 0.5) & (self.config.layout == "loose"))
        elif self._roomy and self.device.type == "cpu":  # a sort of all cells costs a CPU six times as much on 8x8
            order = order_keys.topk(self.prey + self.players, 1, largest=False).indices
        else:
            order = order_keys.argsort(1)  # [B, C] free cells in random order
        cell = order[:, self.prey : self.prey + self.players]
        if not self._roomy:  # some maps are too narrow: there players share any free cells
            free = self.maps.free[which].unsqueeze(1)
            shared = order.gather(1, _pick(picks, free))
            narrow = free < self.prey + self.players
            cell = shared if cell.shape[1] < self.players else torch.where(narrow, shared, cell)
        cell, prey_cell = batch_last(cell), batch_last(order[:, : self.prey])
        steps = torch.zeros(batch, dtype=torch.int64, device=self.device)
        return State(which, cell, cell >= 0, prey_cell, prey_cell >= 0, steps, steps - 1, torch.full_like(cell, STAY))

    def _far(self, keys: Tensor, loose: Tensor) -> Tensor:
        """[B, prey + players] cells of the stags, the hares beside them, the hares far away and the players, by the
        random keys [B, C] of all cells. loose: [B, 1] bool, where players begin anywhere."""
        c = self.config
        column = torch.arange(self.cells, device=keys.device) % c.width
        away = c.hares // 2
        zones = [
            (column == c.width - 1, c.stags),
            (column >= c.width - 2, c.hares - away),
            (column == 0, away),
            ((column == c.width // 2) | loose, c.players),
        ]
        chosen = []
        for zone, amount in zones:
            some = torch.where(zone, keys, 3.0).argsort(1)[:, :amount]
            keys = keys.scatter(1, some, 2.0)  # nobody else begins there
            chosen.append(some)
        return torch.cat(chosen, 1)

    def reset(self, batch: int, generator: torch.Generator) -> State:
        """`batch` fresh games."""
        return self.start(self.draw(batch, generator))

    # --- what a state allows ------------------------------------------------------------------------------------

    def _here(self, state: State) -> Tensor:
        """[B, n] each player's cell as a place in the tables of all maps."""
        return state.cell if self.maps.count == 1 else state.map.unsqueeze(1) * self.cells + state.cell

    def paths(self, state: State) -> Tensor:
        """[B, n, m] int16: the way from each player to each prey, as in `Maps.path`."""
        here = self._here(state) * self.cells  # [B, n]
        return torch.stack([_lookup(self._path, here + cell.unsqueeze(1)) for cell in state.prey_cell.unbind(1)], 2)

    def at_prey(self, state: State) -> Tensor:
        """[B, n, m] bool: the player is alive and stands on this prey, which is still there."""
        same = state.cell.to(self._small).unsqueeze(2) == state.prey_cell.to(self._small).unsqueeze(1)
        return same & state.prey_alive.unsqueeze(1) & state.alive.unsqueeze(2)

    def legal_by_action(self, state: State) -> list[Tensor]:
        """A masks [B, n] (bool), one per action; all False for players who left."""
        ways = _lookup(self._open, self._here(state))
        moves = [(ways & (1 << a)).bool() & state.alive for a in range(STAY)]
        at = self.at_prey(state).split(self.config.prey_kinds, 2)
        return [*moves, state.alive, *(any_of(kind, 2) for kind in at)]

    def legal(self, state: State) -> Tensor:
        """[B, n, A] bool: the action mask; all False for players who left."""
        return torch.stack(self.legal_by_action(state), 2)

    def over(self, state: State) -> Tensor:
        """[B] bool: time is up, or nobody is left, or no prey is left."""
        ended = (state.t >= self.config.final_time) | ~(any_of(state.alive, 1) & any_of(state.prey_alive, 1))
        if self.config.dynamic_final_time:
            last = state.first_hunt + 1 + self.config.final_time_after_first_hunt
            ended = ended | ((state.first_hunt >= 0) & (state.t >= last))
        return ended

    # --- the step -----------------------------------------------------------------------------------------------

    def step(self, state: State, actions: Tensor) -> tuple[State, Outcome]:
        """One step of every game. `actions` [B, n] are whole numbers; an illegal one, or none, is executed as STAY."""
        here, gone = batch_last(state.cell.to(self._small)), (~state.alive).to(self._small)
        tried = self._attempts(actions, gone)
        there = self._destination(state, here, tried)
        hunting = self._hunting(state, here, tried)  # [B, n, m]
        does = ((there != here) | any_of(hunting, 2)).to(self._small)  # 1 where what was tried can be done
        executed = tried * does + (1 - does) * STAY + gone * (ABSENT - STAY)
        reward, hunters, captured = self._resolve(hunting)
        leaves = self._leaves(hunters)
        alive = state.alive & ~leaves
        if self.config.time_reward:
            reward = reward + self.config.time_reward * alive
        if self.config.prosocial:
            reward = reward.mean(1, keepdim=True) * state.alive
        first = torch.where((state.first_hunt < 0) & any_of(captured, 1), state.t, state.first_hunt)
        left, executed = state.prey_alive & ~captured, executed.long()
        after = State(state.map, there.long(), alive, state.prey_cell, left, state.t + 1, first, executed)
        over = self.over(after)
        done = state.alive & (leaves | over.unsqueeze(1))
        return after, Outcome(reward, done, over, executed, hunters.long(), captured)

    def _attempts(self, actions: Tensor, gone: Tensor) -> Tensor:
        """[B, n] small: the actions asked for; ABSENT where the number means none and for players who are gone."""
        known = actions.clamp(-1, ABSENT).t().to(self._small, memory_format=torch.contiguous_format).t() & ABSENT
        return (known + gone * ABSENT).clamp_max(ABSENT)  # -1 & 7 is 7

    def _destination(self, state: State, here: Tensor, tried: Tensor) -> Tensor:
        """[B, n] small: cells after what was tried; an impossible move leads nowhere."""
        place = torch.add(here.int(), tried.int(), alpha=self.cells)
        if self.maps.count > 1:
            place = place + state.map.int().unsqueeze(1) * (self.cells * (ABSENT + 1))
        return _lookup(self._move, place)

    def _hunting(self, state: State, here: Tensor, tried: Tensor) -> Tensor:
        """[B, n, m] bool: the player stands on this prey, which is still there, and does what hunts it."""
        # One small number says where and how (0 no hunt, 1 stag, 2 hare, 3 absent), so that one comparison decides.
        does = torch.add(here, tried.clamp_min(STAY) - STAY, alpha=self.cells)  # [B, n]
        wants = batch_last(state.prey_cell.to(self._small)) + self._hunted_by  # [B, m]
        return (does.unsqueeze(2) == wants.unsqueeze(1)) & state.prey_alive.unsqueeze(1)

    @abstractmethod
    def _resolve(self, hunting: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(reward [B, n], hunters [B, n] uint8, captured [B, m]) from who hunts what [B, n, m]."""

    @abstractmethod
    def _leaves(self, hunters: Tensor) -> Tensor:
        """[B, n] bool: players who leave the game, from the number that shared their capture."""


class StagHunt(Game):
    """A stag needs two hunters and pays well, a hare needs one; whoever captures leaves with the prey."""

    def __init__(self, config: GameConfig, maps: Maps, device: torch.device | str = "cpu") -> None:
        super().__init__(config, maps, device)
        self._spare = (self.prey_kind > 0).to(torch.uint8)  # [m] a hare needs one hunter less than a stag
        self._strength = torch.tensor(config.player_strength, device=self.device) if config.player_strength else None

    def _resolve(self, hunting: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        marks = hunting.to(torch.uint8)
        count = sum_of(marks, 1)  # [B, m]
        captured = at_least(count + self._spare, 2)
        size = count * captured  # [B, m]: hunters of a captured prey, else 0
        hunters = sum_of(marks * size.unsqueeze(1), 2)  # [B, n] uint8: a player hunts at most one prey
        stag = any_of(hunting[..., : self.config.stags], 2)  # [B, n]: what it hunts is a stag
        pays = self.config.hare_reward + (self.config.stag_reward - self.config.hare_reward) * _real(stag)
        sharers = hunters.float()
        if self._strength is None:
            return pays / sharers.clamp_min(1) * sharers.clamp_max(1), hunters, captured
        return pays * self._shares(hunting, hunters, stag) * sharers.clamp_max(1), hunters, captured

    def _shares(self, hunting: Tensor, hunters: Tensor, stag: Tensor) -> Tensor:
        """[B, n] what part of its prey each hunter gets: strengths share a stag, a hare is shared equally."""
        equal = 1.0 / hunters.clamp_min(1)
        assert self._strength is not None
        weight = hunting * self._strength.view(1, -1, 1)  # [B, n, m]
        total = sum_of(hunting * sum_of(weight, 1).unsqueeze(1), 2)  # [B, n]: strength around the same prey
        return torch.where(stag & (total > 0), self._strength / total.clamp_min(1e-30), equal)

    def _leaves(self, hunters: Tensor) -> Tensor:
        return hunters.bool()


def _pick(uniform: Tensor, count: int | Tensor) -> Tensor:
    """A whole number below `count` from a uniform number below 1."""
    return (uniform * count).long().clamp_max(count - 1)


def _real(marked: Tensor) -> Tensor:
    """`marked.float()`, by way of bytes, which a CPU converts many at a time."""
    return marked.to(torch.uint8).float()


def _lookup(table: Tensor, index: Tensor) -> Tensor:
    """`table[index]` for a flat table and an index [B, k], in the memory order of games next to each other."""
    return table.index_select(0, index.t().reshape(-1)).view(index.shape[1], index.shape[0]).t()


class Snowdrift(Game):
    """Drifts block the road: a removed one pays `drift_reward` to all, and its removers share `drift_cost`.

    A drift is a prey that one player can take, and nobody ever leaves. Removing is action 5, so there are six actions.
    """

    def _resolve(self, hunting: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        count = count_of(hunting, 1)  # [B, m]
        removed = count > 0
        cost = self.config.drift_cost / count.clamp_min(1)  # [B, m] for each remover
        gain = self.config.drift_reward * count_of(removed, 1).unsqueeze(1)  # [B, 1]
        reward = gain - sum_of(hunting * cost.unsqueeze(1), 2)
        helpers = sum_of(hunting * count.unsqueeze(1), 2)
        return reward, helpers, removed

    def _leaves(self, hunters: Tensor) -> Tensor:
        return torch.zeros_like(hunters, dtype=torch.bool)
