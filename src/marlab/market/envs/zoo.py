"""One world of the vector market as a PettingZoo ParallelEnv: every factory is an agent.

A step is a half-round: callers answer in even ones, responders in odd ones, and what the others say is ignored. An
action answers every partner: accept, offer or end, and the terms of an offer (units, place of the price in its range,
days ahead), of which nothing can be out of range. Rewards are paid in the evening, as shares of the opening balance.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from gymnasium import spaces
from pettingzoo import ParallelEnv

from marlab.market.vector.batch import OWN, THREAD, Batch
from marlab.market.vector.configs import Configs
from marlab.market.vector.generate import generate
from marlab.market.vector.rounds import Moves
from marlab.market.vector.setup import make_setup

PRICES = 21
"""Places of a price between the lowest and the highest."""
Arrays = dict[str, np.ndarray]


class MarketParallelEnv(ParallelEnv):
    """Agents `factory_LEVEL_PLACE`; a fresh market is drawn at every reset unless `configs` are given."""

    metadata: ClassVar[dict[str, Any]] = {"name": "market_v0", "render_modes": []}

    def __init__(self, levels: int = 3, factories: int = 4, days: int = 50, configs: Configs | None = None) -> None:
        """`configs`: worlds to choose from; all must have the same levels and factories."""
        self._draw = None if configs is not None else (levels, factories, days)
        self._configs = configs
        self.render_mode = None
        self._rng = np.random.default_rng()
        self._shape = (levels, factories) if configs is None else configs.lines.shape[1:]
        self.possible_agents = [f"factory_{i}_{j}" for i in range(self._shape[0]) for j in range(self._shape[1])]
        self.agents: list[str] = []
        partners = 2 * self._shape[1]
        size = OWN + partners * THREAD + 1
        self._observation_spaces = {a: spaces.Box(-np.inf, np.inf, (size,), np.float32) for a in self.possible_agents}
        answers = np.tile([3, 30, PRICES, 11], partners)
        self._action_spaces = {agent: spaces.MultiDiscrete(answers) for agent in self.possible_agents}
        self._batch: Batch | None = None

    def observation_space(self, agent: str) -> spaces.Box:
        return self._observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.MultiDiscrete:
        return self._action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Arrays, dict[str, dict[str, Any]]]:
        """A new world."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        if self._configs is None:
            assert self._draw is not None
            levels, wide, days = ((n, n) for n in self._draw)
            config = generate(1, self._rng, levels=levels, factories=wide, days=days)
        else:
            config = self._configs.take([int(self._rng.integers(len(self._configs)))])
        self._batch = Batch(make_setup(config, torch.float64, shape=(*self._shape, int(config.n_steps[0]))))
        self._batch.reset()
        self.agents = list(self.possible_agents)
        return self._observations(), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, np.ndarray]
    ) -> tuple[Arrays, dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """One half-round."""
        batch = self._batch
        if batch is None or not self.agents:
            return {}, {}, {}, {}, {}
        given = np.stack([np.asarray(actions[agent]) for agent in self.possible_agents])
        _, reward, done = batch.step(self._moves(torch.as_tensor(given).view(1, len(given), -1, 4)))
        played, over = self.agents, bool(done[0])
        seen = self._observations()
        self.agents = [] if over else self.agents
        return (
            seen,
            {agent: float(reward[0, i]) for i, agent in enumerate(played)},
            dict.fromkeys(played, over),
            dict.fromkeys(played, False),
            {agent: {} for agent in played},
        )

    def state(self) -> np.ndarray:
        """Everything that all factories see, one after the other."""
        return np.concatenate(list(self._observations().values()))

    def _moves(self, given: torch.Tensor) -> Moves:
        """Actions [1, F, K, 4] as moves with terms inside of their ranges."""
        assert self._batch is not None
        market = self._batch.market
        low, high = (self._batch.side_prices(part).flatten(1, 2) for part in market.ranges[:2])  # [1, F, 2]
        low, high = (part.repeat_interleave(market.wide, 2) for part in (low, high))
        op, units, place, ahead = given.unbind(-1)
        price = low + torch.round(place / (PRICES - 1) * (high - low)).long()
        return Moves(
            op.int(),
            (units + 1).clamp(max=market.quantity_most).int(),
            price.int(),
            torch.minimum(ahead, market.ranges.ahead_max[:, 0, 0].long()).int(),
        )

    def _observations(self) -> Arrays:
        assert self._batch is not None
        seen = self._batch.observe()
        acting = seen.acting[0].float()[:, None]
        rows = torch.cat([acting, seen.own[0], seen.threads[0].flatten(1)], 1).float().numpy()
        return {agent: rows[i] for i, agent in enumerate(self.possible_agents)}
