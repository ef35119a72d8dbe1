"""The history encoder: a code of what a player is up to, from the steps before now and the situation now.

Letters: P copies, N sequences, T steps, W row width, D code width, M memory width, n players, S sequences of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rows import row_layout
from marlab.hunt.game.rules import ABSENT
from marlab.hunt.others.copies import BatchedLinear, ObservationLayer, Recurrent
from marlab.hunt.others.vae import Code, code_of
from marlab.hunt.players.rollout import OUTCOMES

MEMORY = 96
NOW = 32


class HistoryEncoder(nn.Module):
    """Codes of players by P encoders side by side.

    A step is what the player saw and what everybody then did, so the code at time t knows the actions up to t - 1.
    """

    def __init__(
        self, game: GameConfig, width: int, hidden: int, generators: Sequence[torch.Generator], paths: bool = False
    ) -> None:
        super().__init__()
        self.copies, self.width, self.actions = len(generators), width, game.actions
        self.sight = ObservationLayer(row_layout(game, paths), hidden, generators)
        self.memory = Recurrent(hidden + game.players * (ABSENT + 1), MEMORY, generators)
        self.now = BatchedLinear(hidden, NOW, generators, math.sqrt(2.0))
        self.head = BatchedLinear(MEMORY + NOW, 2 * width, generators, 1.0)
        self.outcome = BatchedLinear(
            width, len(OUTCOMES), generators, 1.0
        )  # what a code says the player will have captured

    def begin(self, *lead: int) -> Tensor:
        """[*lead, M] memory before the first step."""
        return self.head.weight.new_zeros(*lead, MEMORY)

    def code(self, memory: Tensor, rows: Tensor, time: Tensor) -> Code:
        """Codes [P, N, D] from memories [P, N, M], situations [P, N, W] and times [P, N]."""
        return self._code(memory, torch.relu(self.sight(rows, time)))

    def advance(self, memory: Tensor, rows: Tensor, time: Tensor, actions: Tensor) -> Tensor:
        """Memories [P, N, M] after a step: what was seen [P, N, W], and what all did [P, N, n] (ABSENT = 7)."""
        return self.memory.step(self._news(torch.relu(self.sight(rows, time)), actions), memory)

    def read(self, rows: Tensor, time: Tensor, actions: Tensor) -> tuple[Code, Tensor]:
        """Codes [P, N, T, D] and memories [P, N, T, M] at every step of sequences [P, N, T, ...].

        Steps after a sequence's end may hold anything: nothing before them depends on them.
        """
        lead = rows.shape[:3]
        seen = torch.relu(self.sight(rows.flatten(1, 2), time.flatten(1, 2)))
        news = self._news(seen, actions.flatten(1, 2)).unflatten(1, lead[1:])
        memory = self.begin(*lead[:2])
        before = [memory]
        for t in range(lead[2] - 1):
            memory = self.memory.step(news[:, :, t], memory)
            before.append(memory)
        memories = torch.stack(before, 2)
        code = self._code(memories.flatten(1, 2), seen)
        return Code(*(x.unflatten(1, lead[1:]) for x in code)), memories

    def _news(self, seen: Tensor, actions: Tensor) -> Tensor:
        did = one_hot(actions, ABSENT + 1).flatten(-2).to(seen.dtype)
        return self.memory.new(torch.cat([seen, did], -1))

    def _code(self, memory: Tensor, seen: Tensor) -> Code:
        return code_of(self.head(torch.cat([memory, torch.relu(self.now(seen))], -1)))


@dataclass(frozen=True)
class Sequences:
    """Where the rows of some whole sequences stand."""

    table: Tensor  # [S, T] int64: row of every step; steps after an end repeat the last row
    real: Tensor  # [S, T] bool

    @property
    def rows(self) -> Tensor:
        """[R] all real rows, one sequence after the other."""
        return self.table[self.real]

    @property
    def last(self) -> Tensor:
        """[R] for every real row the place, among them, of its sequence's last one."""
        lengths = self.real.sum(1)
        return (lengths.cumsum(0) - 1).repeat_interleave(lengths)

    def to(self, device: torch.device | str) -> Sequences:
        return Sequences(self.table.to(device), self.real.to(device))


def sequences_of(offsets: Tensor, chosen: Tensor) -> Sequences:
    """Some sequences [S] of data whose sequence s owns rows offsets[s] to offsets[s + 1]."""
    first, last = offsets[chosen], offsets[chosen + 1] - 1
    steps = first.unsqueeze(1) + torch.arange(int((last - first).max()) + 1)
    return Sequences(torch.minimum(steps, last.unsqueeze(1)), steps <= last.unsqueeze(1))


def subgoal_rows(offsets: Tensor, horizon: int) -> Tensor:
    """[R] the row whose situation is each row's subgoal, known in hindsight.

    It is the situation just before the player's capture if that comes within `horizon` steps, else the one `horizon`
    steps ahead; a sequence's last row is the situation before its capture, so both are one minimum.
    """
    lengths = offsets.diff()
    last = (offsets[1:] - 1).repeat_interleave(lengths)
    return torch.minimum(torch.arange(int(offsets[-1])) + horizon, last)
