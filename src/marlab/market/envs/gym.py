"""One factory of the vector market as a Gymnasium environment: it learns, the others are given.

A step answers one thread: threads of a half-round share room and money, so they are decided one after the other, each
seeing what the ones before it have taken. `action_masks()` says what can be done, as MaskablePPO of sb3-contrib asks
for it. Rewards are paid in the evening, as shares of the opening balance: an episode's sum is the score less one.

    env = gymnasium.make("marlab.market.envs.gym:MarketFactory-v0", others=("PenguinAgent", "LitaAgentHRL"))
"""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.envs.registration import register, registry
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.market.vector.batch import OWN, THREAD, Batch
from marlab.market.vector.builtin import BUILTIN, Seated
from marlab.market.vector.clones import load
from marlab.market.vector.clones.pack import OURS
from marlab.market.vector.configs import Configs
from marlab.market.vector.generate import generate
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, END, OFFER, Moves
from marlab.market.vector.setup import make_setup

NAME = "MarketFactory-v0"
LOTS = (1, 2, 3, 5, 7, 10)
PLACES = (0.0, 0.5, 1.0)
DAYS = (0, 1, 2, 5)
OFFERS = [(lot, place, day) for lot in LOTS for place in PLACES for day in DAYS]
"""What can be offered: units, place of the price in its range, days ahead."""
ACTIONS = 2 + len(OFFERS)
"""0 accepts, 1 ends, the others offer."""
PLANNED = 4
METADATA: dict[str, Any] = {"render_modes": []}
Level = Literal["first", "middle", "last"]


class MarketEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """A fresh market at every reset, unless `configs` are given; the learner's place changes, its level stays."""

    metadata = METADATA

    def __init__(
        self, level: Level = "first", others: tuple[str, ...] = ("RandomStdAgent", "SyncRandomStdAgent"),
        levels: int = 3, factories: int = 4, days: int = 50, configs: Configs | None = None,
    ) -> None:  # fmt: skip
        """`others` take turns in the other seats: built-in agents, experts whose clones come with the package, and
        LitaAgentHRL, which is rule W."""
        if level not in ("first", "middle", "last") or (level == "middle" and configs is None and levels < 3):
            raise UserError(f"level is {level!r}; it must be first, last, or middle with three levels or more.")
        self._level, self._others, self._draw, self._configs = level, others, (levels, factories, days), configs
        self._pack = load()
        known = (*BUILTIN, OURS, *self._pack.names)
        for name in others or ("",):
            if name not in known:
                raise UserError(f"others has {name!r}, expected some of: {', '.join(known)}.")
        size = OWN + 2 * THREAD + 2 + PLANNED
        self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self.action_space = spaces.Discrete(ACTIONS)
        self._batch: Batch | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """A new world."""
        super().reset(seed=seed)
        draw = np.random.default_rng(int(self.np_random.integers(2**31)))
        if self._configs is None:
            levels, wide, days = ((n, n) for n in self._draw)
            config = generate(1, draw, levels=levels, factories=wide, days=days)
        else:
            config = self._configs.take([int(draw.integers(len(self._configs)))])
        setup = make_setup(config, torch.float64)
        _, high, wide_ = setup.shape
        last, first = high - 1, high - int(setup.n_levels[0])
        at = {"first": first, "last": last, "middle": min(first + 1, last)}[self._level]
        self._seat = at * wide_ + int(draw.integers(int(setup.exists[0, at].sum())))
        theirs = torch.ones((1, high * wide_), dtype=torch.bool)
        theirs[0, self._seat] = False
        number = int(draw.integers(2**31))
        self._batch = Batch(setup, lambda market: self._sit(market, number), theirs)
        self._batch.reset()
        self._earned = 0.0
        self._begin()
        self._go_on()
        return self._see(), {}

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Answer one thread."""
        assert self._batch is not None and self._open
        if not self.action_masks()[int(action)]:
            action = 1  # what cannot be done ends the negotiation
        self._answer(self._open.pop(0), int(action))
        self._go_on()
        reward, self._earned = self._earned, 0.0
        return self._see(), reward, not self._open, False, {}

    def action_masks(self) -> NDArray[np.bool_]:
        """[ACTIONS]: accepting needs an offer, offers must not be for days after the end."""
        mask = np.ones(ACTIONS, bool)
        if self._open:
            assert self._batch is not None
            market = self._batch.market
            mask[0] = bool(self._threads[self._open[0], 1] > 0)
            reach = int(market.ranges.ahead_max[0, 0, 0, 0])
            mask[2:] = [day <= reach for _, _, day in OFFERS]
        return mask

    def _sit(self, market: Market, seed: int) -> Seated:
        turns = torch.arange(market.levels * market.wide) % len(self._others)
        generator = torch.Generator().manual_seed(seed)
        return self._pack.seated(market, self._others, turns.view(1, market.levels, market.wide), generator)

    def _begin(self) -> None:
        """A half-round: which of my threads wait for an answer."""
        assert self._batch is not None
        waiting = self._batch.waiting()[0, self._seat] & ~self._batch.done[0]
        self._open = waiting.nonzero()[:, 0].tolist()
        if self._open or bool(self._batch.done[0]):  # nobody looks at the others
            seen = self._batch.observe()
            self._own, self._threads = seen.own[0, self._seat], seen.threads[0, self._seat]
        shape = (1, self._batch.factories, self._batch.partners)
        none = torch.zeros(shape, dtype=torch.int32)
        self._moves = Moves(none + END, none.clone(), none.clone(), none.clone())
        self._planned = torch.zeros(PLANNED)  # units and money of purchases, then of sales

    def _go_on(self) -> None:
        """Half-rounds in which there is nothing (more) to answer."""
        assert self._batch is not None
        while not self._open and not bool(self._batch.done[0]):
            self._earned += float(self._batch.advance(self._moves)[0, self._seat])
            self._begin()

    def _answer(self, k: int, action: int) -> None:
        assert self._batch is not None
        market = self._batch.market
        side = k // market.wide
        low, high = (float(self._batch.side_prices(p).flatten(1, 2)[0, self._seat, side]) for p in market.ranges[:2])
        at = (0, self._seat, k)
        if action == 1:
            return
        if action == 0:
            self._moves.op[at] = ACCEPT
            units, place = float(self._threads[k, 1]) * 10, float(self._threads[k, 2])
            price = low + place * max(high - low, 1)
        else:
            lot, place, day = OFFERS[action - 2]
            units, price = float(lot), float(round(low + place * (high - low)))
            terms = (OFFER, lot, int(price), day)
            for part, value in zip(self._moves, terms):
                part[at] = value
        self._planned[2 * side] += units / 10
        self._planned[2 * side + 1] += units * price / 1000

    def _see(self) -> NDArray[np.float32]:
        """The factory, the thread to be answered, the mean of the others that wait, its side, what is planned."""
        side = torch.zeros(2)
        thread = others = torch.zeros(THREAD)
        if self._open:
            assert self._batch is not None
            side[self._open[0] // self._batch.market.wide] = 1
            thread = self._threads[self._open[0]]
            if len(self._open) > 1:
                others = self._threads[self._open[1:]].mean(0)
        return torch.cat([self._own, thread, others, side, self._planned]).float().numpy()


if NAME not in registry:
    register(NAME, entry_point="marlab.market.envs.gym:MarketEnv")
