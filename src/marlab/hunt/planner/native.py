"""The step of a search in C, for few games on one core: what `Planner._expansion` does, without tensors.

A decision of one player in one game is a few hundred evaluations of small networks; as tensors of three rows each, they
cost more to call than to compute. Here a whole imagined step is one call. It draws the same random numbers as the
tensors do and leaves out what nobody asks for: groups that were only filled up, and what follows an end. Sums are taken
in another order, so the last bits of priors and values may differ.

Letters: R roots, n players, S' = n - 1 others, A actions, X hidden width, E numbers of a situation.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from marlab.hunt.game.rows import row_layout
from marlab.hunt.game.rules import Game, State
from marlab.hunt.planner.coplayers import CoPlayers, LearnedCoPlayers
from marlab.hunt.planner.dynamics import Dynamics, TrueGame
from marlab.hunt.planner.nets import PlayerNets
from marlab.lab.native import library_of
from marlab.lab.search.search import Embedding, Evaluation, Transition

if TYPE_CHECKING:
    from marlab.hunt.planner.planner import Planner

SOURCE = Path(__file__).with_suffix(".c")
MOST_ROOTS = 1024
"""Larger batches are for tensors, which may then use several cores as well."""
MOST_PLAYERS, MOST_PREY, MOST_ACTIONS = 16, 64, 8
"""Of the C code."""
_NET = ("rows", "rows_bias", "time", "middle", "middle_bias", "actor", "actor_bias", "critic", "critic_bias", "place",
        "goal", "joined", "copy", "blocks")  # fmt: skip
_SIZES = ("roots", "players", "prey", "stags", "kinds", "actions", "cells", "channels", "width", "start", "ways",
          "distances", "final_time", "last_after_hunt", "dynamic", "prosocial")  # fmt: skip
_NUMBERS = ("stag_reward", "hare_reward", "time_reward", "reward_scale", "gamma", "loyalty")
_TABLES = ("move", "path", "walls", "root_map", "hunting", "scratch")


class _Net(ctypes.Structure):
    """The C struct `Net`."""

    _fields_ = (("hidden", ctypes.c_int64), *((name, ctypes.c_void_p) for name in _NET))


class _Mind(ctypes.Structure):
    """The C struct `Mind`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in _SIZES),
        *((name, ctypes.c_double) for name in _NUMBERS),
        *((name, ctypes.c_void_p) for name in _TABLES),
        ("me", _Net),
        ("others", _Net),
    )


def supports(game: Game, nets: PlayerNets, coplayers: CoPlayers, dynamics: Dynamics) -> bool:
    """Whether the C code knows these players and this game, and could be built."""
    c = game.config
    known = isinstance(coplayers, LearnedCoPlayers) and isinstance(dynamics, TrueGame) and c.rules == "hunt"
    small = c.players <= MOST_PLAYERS and c.prey <= MOST_PREY and c.actions <= MOST_ACTIONS
    plain = game.device.type == "cpu" and all(p.dtype == torch.float32 for p in nets.parameters())
    return known and small and plain and isinstance(_library(), ctypes.CDLL)


def _library() -> ctypes.CDLL | str:
    found = library_of(SOURCE)
    if isinstance(found, ctypes.CDLL):
        found.begin.argtypes = (ctypes.c_void_p,)
        found.expand.argtypes = (ctypes.c_void_p,) * 11
        found.begin.restype = found.expand.restype = None
    return found


# --- situations as rows of numbers ----------------------------------------------------------------------------------


def pack(state: State) -> Tensor:
    """[R, E] int32: map, t, first hunt, cells, who is there, last actions, prey cells, prey that is left."""
    single = torch.stack([state.map, state.t, state.first_hunt], 1)
    parts = (single, state.cell, state.alive, state.last_action, state.prey_cell, state.prey_alive)
    return torch.cat([part.to(torch.int32) for part in parts], 1)


def unpack(game: Game, packed: Tensor) -> State:
    """The states behind `pack`."""
    n, m = game.players, game.prey
    single, cell, alive, last, prey, left = packed.long().split([3, n, n, n, m, m], 1)
    which, t, first = single.unbind(1)
    return State(which, cell, alive.bool(), prey, left.bool(), t, first, last)


# --- the step -------------------------------------------------------------------------------------------------------


class NativeStep:
    """`expand` of a search from some roots, with everything that stays the same in it."""

    def __init__(self, planner: Planner, state: State, chosen: Tensor, total: int, prepared: Tensor,
                 goal_input: Tensor | None, hunting: Tensor | None, generator: torch.Generator) -> None:  # fmt: skip
        """state: [R] of the roots to search; chosen: [R] their numbers among `total`; the tensors after it: of all."""
        game, config = planner.game, planner.game.config
        layout = row_layout(config, planner.dynamics.paths)
        self.planner, self.chosen, self.total, self.generator = planner, chosen, total, generator
        self.roots, self.slots, self.actions = len(chosen), game.players - 1, game.actions
        self.root = pack(state)
        self._noise: Tensor | None = None
        self._simulation = 0
        self._library = _library()
        self._kept: list[Tensor] = []
        assert isinstance(planner.coplayers, LearnedCoPlayers)
        nets, others = planner.nets, planner.coplayers.moa
        wish = None if goal_input is None else goal_input.flatten(0, 1)[chosen]
        me = self._net(nets, chosen, total, goal=wish, critic=nets.critic.weight, critic_bias=nets.critic.bias)
        alone, joined = (prepared, None) if not planner.depend else prepared.unbind(0)
        them = self._net(
            others,
            chosen,
            total,
            goal=alone.flatten(0, 1)[chosen],
            place=others.place,
            joined=None if joined is None else joined.flatten(0, 1)[chosen],
        )
        widest = max(me.hidden, them.hidden)
        self._mind = _Mind(
            roots=self.roots, players=game.players, prey=game.prey, stags=config.stags, kinds=layout.kinds,
            actions=game.actions, cells=game.cells, channels=game.channels, width=layout.size, start=layout.start,
            ways=layout.ways if layout.paths else 0, distances=layout.distances, final_time=config.final_time,
            last_after_hunt=config.final_time_after_first_hunt, dynamic=config.dynamic_final_time,
            prosocial=config.prosocial, stag_reward=config.stag_reward, hare_reward=config.hare_reward,
            time_reward=config.time_reward, reward_scale=planner.reward_scale, gamma=planner.config.gamma,
            loyalty=planner.loyalty, hunting=None if hunting is None else self._at(hunting[chosen]),
            move=self._at(game.maps.move), path=self._at(game.maps.path), walls=self._at(game.maps.blocks),
            root_map=self._at(state.map), scratch=self._at(torch.empty(2, widest)), me=me, others=them,
        )  # fmt: skip
        self._address = ctypes.byref(self._mind)
        self._library.begin(self._address)  # type: ignore[union-attr]

    def _at(self, tensor: Tensor | None) -> int | None:
        """The address of a tensor, which is kept as long as C may read it."""
        if tensor is None:
            return None
        self._kept.append(tensor.detach().contiguous())
        return self._kept[-1].data_ptr()

    def _net(self, net: Any, chosen: Tensor, total: int, **more: Tensor | None) -> _Net:
        """The weights of a network of two layers; roots come in as many blocks as it has copies."""
        hidden = net.middle.weight.shape[1]
        given = {
            "rows": net.sight.rows.weight, "rows_bias": net.sight.rows.bias, "time": net.sight.time,
            "middle": net.middle.weight, "middle_bias": net.middle.bias, "actor": net.actor.weight,
            "actor_bias": net.actor.bias, "copy": chosen // (total // net.copies),
            "blocks": torch.empty(len(chosen), hidden), **more,
        }  # fmt: skip
        return _Net(hidden=hidden, **{name: self._at(tensor) for name, tensor in given.items()})

    def __call__(self, embedding: Embedding, actions: Tensor) -> Transition:
        if self._noise is None:  # only now: a search draws for its roots first
            self._noise = self._draw(self.planner.config.search.simulations)
        roots, wide = self.roots, self.actions
        after, drawn = torch.empty_like(self.root), torch.empty(roots, dtype=torch.int64)
        logits, legal = torch.empty(roots, wide), torch.empty(roots, wide, dtype=torch.bool)
        value, reward, discount = torch.empty(3, roots).unbind(0)
        noise = self._noise[self._simulation]
        self._simulation += 1
        given = (embedding[0], actions, noise, after, logits, value, legal, reward, discount, drawn)
        self._library.expand(self._address, *[x.data_ptr() for x in given])  # type: ignore[union-attr]
        return Transition(reward, discount, Evaluation(logits, value, legal), (after,), drawn)

    def _draw(self, simulations: int) -> Tensor:
        """[S, R, S', A] logarithms of the noise that chooses the others' actions, as the tensors draw it."""
        noise = torch.empty(simulations, self.total, self.slots, self.actions)
        for one in noise:
            one.exponential_(generator=self.generator)
        return noise[:, self.chosen].clamp_min_(torch.finfo(noise.dtype).tiny).log_()
