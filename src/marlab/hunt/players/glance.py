"""What the players of one game see, as arrays of NumPy: the same as `game.views` shows of many games.

All arrays of a step lie in one piece of memory that is written in plain Python; an array each would cost more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from gymnasium import spaces

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.scalar import ABSENT, FIRST_HUNT, PlainState, Rules


class PlainObserver:
    """Observations of a config's players."""

    def __init__(self, config: GameConfig) -> None:
        self.config = config
        n, size = config.players, config.cells * config.channels
        self.shape = (config.height, config.width, config.channels)
        self.mask, self.actions, self.alive = size, size + config.actions, size + config.actions + n
        self.width = self.alive + n
        self._around = [[(seat + k) % n for k in range(n)] for seat in range(n)]
        self._drawn: tuple[int, bytes] = (0, bytes(self.width))  # the obstacles that were drawn last

    def space(self) -> spaces.Dict:
        """The observation space of every player."""
        c, n = self.config, self.config.players
        return spaces.Dict(
            {
                "observation": spaces.Box(0, 1, self.shape, np.int8),
                "action_mask": spaces.Box(0, 1, (c.actions,), np.int8),
                "actions": spaces.Box(0, ABSENT, (n,), np.int8),
                "t": spaces.Box(0, c.final_time, (1,), np.int32),
                "alive": spaces.Box(0, 1, (n,), np.int8),
            }
        )

    def all(
        self, rules: Rules, s: PlainState, agents: Sequence[str], seat: Mapping[str, int]
    ) -> dict[str, dict[str, np.ndarray]]:
        """The observation of every agent."""
        width = self.width
        memory = bytearray(self._board(rules, s) * len(agents))
        last = self._last_actions(rules, s)
        for number, agent in enumerate(agents):
            self._write(memory, number * width, rules, s, seat[agent], last)
        rows = np.frombuffer(memory, np.int8).reshape(len(agents), width)
        time = np.array([s.t], np.int32)
        mask, actions, alive = self.mask, self.actions, self.alive
        return {
            agent: {
                "observation": row[:mask].reshape(self.shape),
                "action_mask": row[mask:actions],
                "actions": row[actions:alive],
                "t": time,
                "alive": row[alive:],
            }
            for agent, row in zip(agents, rows)
        }

    def planes(self, rules: Rules, s: PlainState) -> np.ndarray:
        """[H, W, channels] int8: the planes with the players in seat order."""
        memory = bytearray(self._board(rules, s))
        self._write(memory, 0, rules, s, 0, s.last_action)
        return np.frombuffer(memory, np.int8)[: self.mask].reshape(self.shape)

    def _board(self, rules: Rules, s: PlainState) -> bytes:
        """One row with obstacles and prey, which look the same to everybody."""
        channels, first = self.config.channels, self.config.players
        if self._drawn[0] != s.blocks:
            empty = bytearray(self.width)
            for cell in range(self.config.cells):
                empty[cell * channels + first] = s.blocks >> cell & 1
            self._drawn = (s.blocks, bytes(empty))
        row = bytearray(self._drawn[1])
        for cell, there, kind in zip(s.prey_cell, s.prey_alive, rules.kinds):
            if there:
                row[cell * channels + first + 1 + kind] = 1
        return bytes(row)

    def _write(
        self, memory: bytearray, start: int, rules: Rules, s: PlainState, seat: int, last: Sequence[int]
    ) -> None:
        """Write what a seat sees of the players into its row, which begins at `start`."""
        channels, legacy = self.config.channels, self.config.legacy_global_prev_actions
        alive, cells = s.alive, s.cell
        actions, present = start + self.actions, start + self.alive
        for place, player in enumerate(self._around[seat]):
            memory[actions + place] = last[place if legacy else player]
            if alive[player]:
                memory[start + cells[player] * channels + place] = 1
                memory[present + place] = 1
        mask = start + self.mask
        memory[mask : mask + self.config.actions] = bytes(rules.legal(s, seat))

    def _last_actions(self, rules: Rules, s: PlainState) -> Sequence[int]:
        """The last executed actions as players see them, in seat order."""
        if not self.config.legacy_global_prev_actions:
            return [action if there else ABSENT for action, there in zip(s.last_action, s.alive)]
        # The original kept the hunt that a player left with: the kind of prey that is gone from its last cell.
        prey = list(zip(s.prey_cell, s.prey_alive, rules.kinds))
        gone = [FIRST_HUNT + sum(k for at, left, k in prey if at == cell and not left) for cell in s.cell]
        return [action if there else kept for action, there, kept in zip(s.last_action, s.alive, gone)]
