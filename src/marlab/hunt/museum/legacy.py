"""The original's memory of what others did, faults included, for the failure museum.

It keeps the steps of a player only if its last reward was above 0, labels all of them by what was captured in the end,
and lets player 1 alone learn from them. What players learn from today is `marlab.hunt.planner.replay`.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from marlab.hunt.data.dataset import Part


def episodes_of(part: Part) -> list[dict[int, int]]:
    """For every episode of a data set, which sequence belongs to which player (from 0)."""
    first = part.offsets[:-1]
    by_episode: dict[int, dict[int, int]] = {}
    for s, (episode, player) in enumerate(zip(part.rows.episode[first].tolist(), part.rows.player[first].tolist())):
        by_episode.setdefault(episode, {})[player] = s
    return list(by_episode.values())


class LegacyMoaBuffer:
    """The original's buffer of one player, faults included: only rewarded trajectories, only player 1 learns.

    Ids of players are 1 to n for `my_id`, 0 to n - 1 for models, as in the original.
    """

    def __init__(self, my_id: int, players: int, capacity: int = 1000, discount: float = 0.995) -> None:
        self.my_id, self.players, self.capacity, self.discount = my_id, players, capacity, discount
        self.model_ids = [j for j in range(players) if j != my_id - 1]
        self.rows: list[list[Tensor]] = [[] for _ in self.model_ids]
        self.labels: list[list[int]] = [[] for _ in self.model_ids]
        self.stag_times = [0.0] * len(self.model_ids)
        self.hare_times = [0.0] * len(self.model_ids)

    def place_id(self, slot: int) -> int:
        """Where the slot's player stands in this player's own order."""
        return (self.model_ids[slot] + 1 - self.my_id) % self.players

    def end_episode(self, part: Part, sequences: Mapping[int, int]) -> dict[int, tuple[Tensor, Tensor]]:
        """Take over an episode: `sequences` says which sequence of `part` belongs to which model id.

        Returns, for player 1 only, the rows and labels of every slot that is due for an update; all others forget
        theirs when they are due.
        """
        due = {}
        for slot, model in enumerate(self.model_ids):
            first, end = (int(part.offsets[sequences[model] + k]) for k in (0, 1))
            if not float(part.rows.r[end - 1]) > 0:
                continue
            self.rows[slot].append(torch.arange(first, end))
            self._label(slot, int(part.rows.a[end - 1]), end - first)
            if len(self.labels[slot]) > self.capacity:
                if self.my_id == 1:
                    due[slot] = (torch.cat(self.rows[slot]), torch.tensor(self.labels[slot]))
                self.rows[slot], self.labels[slot] = [], []
        return due

    def _label(self, slot: int, last_action: int, steps: int) -> None:
        if last_action not in (5, 6):
            return  # rows without labels: the original's lists could grow apart
        stag = last_action == 5
        self.labels[slot] += [0 if stag else 1] * steps
        self.stag_times[slot] = self.discount * self.stag_times[slot] + stag
        self.hare_times[slot] = self.discount * self.hare_times[slot] + (not stag)
