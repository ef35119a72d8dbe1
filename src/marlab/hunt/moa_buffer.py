"""What observers remember of the others' steps while they play, and how their models learn from it.

Every observer learns about every other player, equally often, from all trajectories: also from those without a
capture, whose goals are only believed. A row belongs to a player who was there; anything else is a bug.

Letters: n players, O = n observers, S = n - 1 slots, N rows of a batch per pair, R rows, D = 2 goal probabilities
or the width of a code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.config import GameConfig
from marlab.hunt.dataset import Part
from marlab.hunt.moa_metrics import score_actions
from marlab.hunt.others import Balance, Moa, action_loss, averaged_copy
from marlab.lab.choices import apply_mask
from marlab.lab.errors import UserError


class Steps(NamedTuple):
    """Steps of players: the inputs of a model of others, what was done, and what it was done for."""

    planes: Tensor  # [*S, H, W, C] uint8, the player's own view
    mask: Tensor  # [*S, A] bool
    time: Tensor  # [*S] float32
    action: Tensor  # [*S] int64
    goal: Tensor  # [*S, D] float32
    age: Tensor  # [*S] int64, policy updates since the step was played; -1 for offline steps


@dataclass(frozen=True)
class MoaLearning:
    """How models of others learn online."""

    capacity: int = 20_000
    """Rows kept of each player."""
    offline_ratio: float = 0.25
    """Share of offline rows in a batch, where there are any."""
    max_age: int = 50
    """Only rows of the last so many policy updates are learnt from."""
    batch: int = 512
    """Rows of a step for each pair of observer and other."""
    passes: int = 10
    """Optimiser steps of one update."""
    lr: float = 5e-4
    """Adam step size."""
    grad_clip: float = 1.0
    """Largest norm of each network's own gradient."""
    weight_decay: float = 1e-4
    """L2 penalty of the weights."""
    class_balance: Balance = "sqrt"
    """How much more rare actions weigh in the loss."""
    entropy_bonus: float = 0.0
    """Weight of the predictions' entropy, against over-confidence."""

    def __post_init__(self) -> None:
        if min(self.capacity, self.batch, self.passes) < 1 or self.max_age < 0:
            raise UserError("capacity, batch and passes of the models of others must be 1 or more, max_age 0 or more.")
        if not 0 <= self.offline_ratio <= 1:
            raise UserError(f"offline_ratio is {self.offline_ratio:g}, expected a share from 0 to 1.")


class MoaBuffer:
    """The last rows of every player, with their age and what each observer took their goal to be."""

    def __init__(self, game: GameConfig, goal_width: int, capacity: int, device: torch.device | str = "cpu") -> None:
        """goal_width: 2 for probabilities of stag and hare, or the width of codes."""
        n, self.device = game.players, torch.device(device)
        self.players, self.capacity, self.final_time = n, capacity, game.final_time
        shape = (game.height, game.width, game.channels)
        self.planes = torch.zeros(n, capacity, *shape, dtype=torch.uint8, device=device)
        self.mask = torch.zeros(n, capacity, game.actions, dtype=torch.bool, device=device)
        self.time = torch.zeros(n, capacity, device=device)
        self.action = torch.zeros(n, capacity, dtype=torch.int64, device=device)
        self.goal = torch.zeros(n, capacity, n, goal_width, device=device)  # [player, row, observer, D]
        self.update = torch.full((n, capacity), -1, dtype=torch.int64, device=device)  # when it was played
        self.written = torch.zeros(n, dtype=torch.int64)  # rows ever written, per player

    def add(self, part: Part, goals: Tensor, update: int) -> None:
        """Take over whole sequences played at policy update `update`.

        goals: [sequences, O, D] what each observer takes a sequence's goal to be: certain after a capture, else its
        final belief (or a code).
        """
        rows = part.rows
        if not bool(rows.alive[:, 0].all()):
            raise ValueError("a row of a player who had left is not a step and must not be learnt from")
        if goals.shape != (len(part.offsets) - 1, *self.goal.shape[2:]):
            raise ValueError(
                f"goals {tuple(goals.shape)} for {len(part.offsets) - 1} sequences of {self.players} players"
            )
        by_row = goals.repeat_interleave(part.offsets.diff().to(goals.device), 0)
        for player in range(self.players):
            own = (rows.player == player).nonzero().squeeze(1)[-self.capacity :]
            place = (int(self.written[player]) + torch.arange(len(own))) % self.capacity
            fields = (rows.obs, rows.mask, rows.t / self.final_time, rows.a, by_row)
            for kept, new in zip((self.planes, self.mask, self.time, self.action, self.goal), fields):
                kept[player, place] = new[own.to(new.device)].to(kept)
            self.update[player, place] = update
            self.written[player] += len(own)

    def usable(self, now: int, max_age: int) -> Tensor:
        """[n] rows of each player that are not older than `max_age` policy updates."""
        return ((self.update >= 0) & (self.update >= now - max_age)).sum(1).cpu()

    def draw(self, rows: int, now: int, max_age: int, generator: torch.Generator) -> Steps:
        """[O, S, rows] steps for every pair, uniformly from the usable ones; every player must have some."""
        n = self.players
        count = self.usable(now, max_age)
        if not bool((count > 0).all()):
            raise ValueError("some player has no usable rows yet")
        other = (torch.arange(n).unsqueeze(1) + torch.arange(1, n)) % n  # [O, S] whom each pair is about
        # A ring is in order of time, so the usable rows are the last ones written.
        uniform = torch.rand(n, n - 1, rows, generator=generator, device=self.device).cpu()
        back = (uniform * count[other].unsqueeze(2)).long()
        place = (self.written[other].unsqueeze(2) - 1 - back) % self.capacity  # [O, S, rows]
        player = other.unsqueeze(2).expand_as(place)
        observer = torch.arange(n).view(-1, 1, 1).expand_as(place)
        return Steps(
            self.planes[player, place], self.mask[player, place], self.time[player, place],
            self.action[player, place], self.goal[player, place, observer], now - self.update[player, place],
        )  # fmt: skip


class OfflineRows(NamedTuple):
    """Offline rows that online batches are mixed with; the age of all is -1."""

    planes: Tensor  # [R, H, W, C]
    mask: Tensor  # [R, A]
    time: Tensor  # [R]
    action: Tensor  # [R]
    goal: Tensor  # [R, D]

    def draw(self, lead: tuple[int, ...], generator: torch.Generator) -> Steps:
        index = torch.randint(len(self.action), lead, generator=generator, device=self.action.device)
        planes, mask, time, action, goal = (field[index] for field in self)
        return Steps(planes, mask, time, action, goal, torch.full_like(index, -1))


class MoaLearner:
    """The models of all observers, their averaged copies (what planners and beliefs use) and their training."""

    def __init__(self, moa: Moa, config: MoaLearning) -> None:
        if moa.observers < 2:
            raise ValueError("give every observer its own models first: `moa.spread(players)`")
        self.moa, self.config, self.updates = moa, config, 0
        self.target = averaged_copy(moa)
        self.optimiser = torch.optim.Adam(moa.parameters(), config.lr, weight_decay=config.weight_decay)

    def learn(
        self, buffer: MoaBuffer, now: int, generator: torch.Generator, offline: OfflineRows | None = None
    ) -> dict[str, Any]:
        """One update of every observer's models; returns what was learnt from, and how well. Empty without rows."""
        online = bool((buffer.usable(now, self.config.max_age) > 0).all())
        if not online and offline is None:
            return {}
        found: list[dict[str, Tensor]] = []
        for _ in range(self.config.passes):
            steps = self._batch(buffer, now, generator, offline, online)
            found.append({**self._step(steps), **self._describe(steps)})
        self.updates += 1
        means = {name: torch.stack([f[name] for f in found]).mean(0) for name in found[0]}
        return {name: value.tolist() for name, value in means.items()}

    def _batch(
        self, buffer: MoaBuffer, now: int, generator: torch.Generator, offline: OfflineRows | None, online: bool
    ) -> Steps:
        size, lead = self.config.batch, (self.moa.observers, self.moa.slots)
        old = size if not online else 0 if offline is None else round(self.config.offline_ratio * size)
        parts = []
        if old:
            assert offline is not None
            parts.append(offline.draw((*lead, old), generator))
        if size > old:
            parts.append(buffer.draw(size - old, now, self.config.max_age, generator))
        return Steps(*(torch.cat(fields, 2) for fields in zip(*parts)))

    def _step(self, steps: Steps) -> dict[str, Tensor]:
        c, width = self.config, self.moa.goal_width
        goals, weight = goals_to_try(steps.goal, width)
        given, free = self.moa(steps.planes, steps.time, goals)
        flat = [x.flatten(0, 2) for x in (given, free, steps.action, steps.mask)]
        loss = action_loss(
            flat[0], flat[1] if width else None, flat[2], flat[3], None if weight is None else weight.flatten(0, 2),
            balance=c.class_balance, entropy_bonus=c.entropy_bonus,
        )  # fmt: skip
        self.optimiser.zero_grad(set_to_none=True)
        (loss.total * self.moa.nets.copies).backward()  # every network gets the gradient of its own mean
        norm = self._clip()
        self.optimiser.step()
        self.target.update_parameters(self.moa)
        return {"loss": loss.total.detach(), "ce": loss.given, "free_ce": loss.free, "grad_norm": norm.mean()}

    def _clip(self) -> Tensor:
        """[copies] norms of the networks' gradients, each clipped on its own."""
        gradients = [p.grad for p in self.moa.parameters() if p.grad is not None]
        norm = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0).sqrt()
        scale = (self.config.grad_clip / norm.clamp_min(1e-12)).clamp_max(1.0)
        for g in gradients:
            g.mul_(scale.view(-1, *[1] * (g.dim() - 1)))
        return norm

    def _describe(self, steps: Steps) -> dict[str, Tensor]:
        """Make-up of a batch: shares of actions and goals, age of the online rows, offline share."""
        actions = torch.bincount(steps.action.flatten(), minlength=steps.mask.shape[-1]) / steps.action.numel()
        online = steps.age >= 0
        age = (steps.age * online).sum() / online.sum().clamp_min(1)
        found = {"actions": actions, "age": age, "offline_share": 1 - online.float().mean()}
        if self.moa.goal_width == 2:
            found["goals"] = steps.goal.flatten(0, 2).mean(0)
        return found

    def state_dict(self) -> dict[str, Any]:
        return {
            "moa": self.moa.state_dict(), "target": self.target.state_dict(),
            "optimiser": self.optimiser.state_dict(), "updates": self.updates,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.moa.load_state_dict(state["moa"])
        self.target.load_state_dict(state["target"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.updates = state["updates"]


def goals_to_try(goal: Tensor, width: int) -> tuple[Tensor, Tensor | None]:
    """Goals [*S, G, W] and how probable each is [*S, G], from stored goals [*S, D] (probabilities, or a code)."""
    if width == 0:
        return goal[..., None, :0], None
    if width == 2:
        return torch.eye(2, device=goal.device).expand(*goal.shape[:-1], 2, 2), goal
    return goal.unsqueeze(-2), None


@torch.no_grad()
def score_pairs(moa: Moa, part: Part, goals: Tensor, final_time: int, truth: Tensor | None = None) -> dict[str, float]:
    """The note's online figures for every pair, on rows that were just played.

    goals: [sequences, O, D] as in `MoaBuffer.add`; truth: [R, A] the players' own distributions where known.
    """
    rows, n = part.rows, moa.slots + 1
    device = next(moa.parameters()).device
    by_row = goals.repeat_interleave(part.offsets.diff().to(goals.device), 0)
    own = [(rows.player == j).nonzero().squeeze(1) for j in range(n)]
    longest = max(len(index) for index in own)
    # All pairs in one pass: players with fewer rows repeat theirs, and only the first ones count.
    filled = torch.stack([index[torch.arange(longest) % len(index)] for index in own])  # [n, N]
    other = (torch.arange(n).unsqueeze(1) + torch.arange(1, n)) % n  # [O, S]
    index = filled[other]  # [O, S, N]
    observer = torch.arange(n).view(-1, 1, 1).expand_as(index)
    tried, weight = goals_to_try(by_row.cpu()[index, observer].to(device), moa.goal_width)
    given, _ = moa(rows.obs[index].to(device), (rows.t[index] / final_time).to(device), tried)
    log_p = apply_mask(given, rows.mask[index].to(device).unsqueeze(3)).log_softmax(-1)
    logits = log_p.squeeze(3) if weight is None else (log_p + weight.log().unsqueeze(-1)).logsumexp(3)
    found: dict[str, float] = {}
    for i in range(n):
        for k, j in enumerate(other[i].tolist()):
            rows_j = own[j]
            known = None if truth is None else truth[rows_j]
            found |= score_actions(logits[i, k, : len(rows_j)], rows.a[rows_j], known).pair_tags(i, j)
    return found


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
