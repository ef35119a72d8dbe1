"""The original's faults in the data, on purpose: so that what they do can be seen and not only told."""

from __future__ import annotations

import torch
from torch import Tensor

from marlab.hunt.data.dataset import NOT_STAY, Part, Rows
from marlab.hunt.game.rules import STAY


def with_rows_after_exit(part: Part, players: int) -> Part:
    """The same sequences continued to the end of their episodes: a player who left "stays", and sees everything.

    The situation is what another player saw, who was still there, turned to the absent player's place.
    """
    rows = part.rows
    episode = torch.unique(rows.episode, return_inverse=True)[1]  # each row's place among the episodes
    length = torch.zeros(int(episode.max()) + 1, dtype=torch.int64)
    length.scatter_reduce_(0, episode, rows.t + 1, "amax")
    span = int(length.max())
    # For every (episode, time) some row that shows it.
    witness = torch.full((len(length), span), -1)
    witness[episode, rows.t] = torch.arange(rows.size)
    first = part.offsets[:-1]
    missing = length[episode[first]] - part.offsets.diff()  # [S]
    whose = torch.arange(len(missing)).repeat_interleave(missing)
    step = torch.arange(len(whose)) - (missing.cumsum(0) - missing)[whose]
    time = part.offsets.diff()[whose] + step
    seen_by = witness[episode[first[whose]], time]
    extra = _continued(rows.select(first[whose]), rows.select(seen_by), time, players)
    # Put every sequence's new rows behind its own.
    key = torch.cat([torch.arange(len(missing)).repeat_interleave(part.offsets.diff()), whose])
    order = key.argsort(stable=True)
    merged = Rows(*(torch.cat(pair)[order] for pair in zip(rows, extra)))
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), (part.offsets.diff() + missing).cumsum(0)])
    return Part(merged, offsets)


def _continued(own: Rows, seen: Rows, time: Tensor, players: int) -> Rows:
    """Rows of players who left: their own provenance, the situation as turned from what another saw."""
    turn = (own.player.unsqueeze(1) + torch.arange(players) - seen.player.unsqueeze(1)) % players  # [X, n]

    def turned(planes: Tensor) -> Tensor:
        order = turn.view(-1, 1, 1, players).expand(*planes.shape[:3], players)
        return torch.cat([planes[..., :players].gather(3, order), planes[..., players:]], 3)

    joint = seen.joint_a.gather(1, turn)
    joint[:, 0] = STAY
    return seen._replace(
        obs=turned(seen.obs), next_obs=turned(seen.next_obs), mask=torch.ones_like(seen.mask),
        actions_prev=seen.actions_prev.gather(1, turn), alive=seen.alive.gather(1, turn), t=time,
        a=torch.full_like(time, STAY), joint_a=joint, r=torch.zeros_like(seen.r), done_i=seen.done_all,
        player=own.player, type=own.type, outcome=own.outcome, steps=own.steps,
        cause=torch.full_like(time, NOT_STAY),
    )  # fmt: skip
