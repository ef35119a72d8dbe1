"""The model of other agents (MOA): what will player j do, given its own view, the time and a goal.

There is a network per other player, or one network that is told which other it looks at; all observers ask the same
ones, which are evaluated together. Heads return logits; `probabilities` and `likelihoods` say so in their names, and
the loss refuses probabilities: a softmax applied twice cannot learn, and looks like a hard problem instead of a fault.

Letters: S = n - 1 others of an observer ("slots": slot k sits k + 1 places after the observer), N rows,
G goals tried at once, W goal width, A actions.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import AveragedModel

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import Game
from marlab.hunt.game.views import View
from marlab.hunt.others.blocks import JOIN_WIDTH, Body, Stack, kaiming_linear
from marlab.hunt.others.config import Balance
from marlab.lab.ppo.choices import apply_mask

Tensors = tuple[Tensor, ...] | list[Tensor]
TARGET_DECAY = 0.995
"""Decay of the averaged weights that planners and beliefs use."""


class MoaNet(nn.Module):
    """One observer's network about one other player (or about all of them, told apart by a slot)."""

    def __init__(
        self, shape: tuple[int, int, int], actions: int, goal_width: int, slots: int,
        generator: torch.Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.goal_width, self.slots = goal_width, slots
        self.body = Body(shape, goal_width + slots, generator)
        self.actor = kaiming_linear(JOIN_WIDTH, actions, generator, gain=0.01)
        self.free = kaiming_linear(JOIN_WIDTH, actions, generator, gain=0.01) if goal_width else None

    def forward(self, planes: Tensor, time: Tensor, goals: Tensor, slot: Tensor) -> tuple[Tensor, Tensor]:
        """Logits given each goal [N, G, A], and without any goal [N, A].

        planes [N, H, W, C] player j's own view, time [N], goals [N, G, W], slot [N] (used only with slots).
        """
        state = self.body.without_goal(planes, time)  # [N, 512]
        place = (slot.unsqueeze(-1) == torch.arange(self.slots, device=slot.device)).to(state.dtype)  # [N, slots]
        if self.free is None:
            logits = self.actor(self.body.with_goal(state, place if self.slots else None))
            return logits.unsqueeze(1).expand(-1, goals.shape[1], -1), logits
        conditions = torch.cat([goals, place.unsqueeze(1).expand(-1, goals.shape[1], -1)], -1)
        given = self.actor(self.body.with_goal(state.unsqueeze(1), conditions))
        nothing = torch.cat([torch.zeros_like(goals[:, 0]), place], -1)
        return given, self.free(self.body.with_goal(state, nothing))


class Moa(nn.Module):
    """The networks about all others of an observer; every observer uses the same."""

    def __init__(
        self, game: GameConfig, goal_width: int, *, shared: bool, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.slots, self.goal_width, self.shared = game.players - 1, goal_width, shared
        if self.slots < 1:
            raise ValueError("a model of others needs others: this game has one player")
        shape = (game.height, game.width, game.channels)
        slots = self.slots if shared else 0
        copies = 1 if shared else self.slots
        self.nets = Stack(lambda: MoaNet(shape, game.actions, goal_width, slots, generator), copies)

    def forward(self, planes: Tensor, time: Tensor, goals: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [S, N, G, A] given each goal and [S, N, A] without one.

        planes [S, N, H, W, C], time [S, N], goals [S, N, G, W].
        """
        lead = planes.shape[:2]
        slot = torch.arange(self.slots, device=planes.device).view(-1, 1).expand(lead)
        parts = [planes, time, goals, slot]
        if self.shared:  # one network takes the slots as further rows
            parts = [x.flatten(0, 1).unsqueeze(0) for x in parts]
        given, free = self.nets(*parts)
        return given.reshape(*lead, *given.shape[2:]), free.reshape(*lead, free.shape[-1])

    def rows(self, planes: Tensor, time: Tensor, goals: Tensor, slot: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [R, G, A] and [R, A] of single rows [R, ...] with slots [R]."""
        if self.nets.copies == 1:
            given, free = self.nets(*(x.unsqueeze(0) for x in (planes, time, goals, slot)))
            return given.squeeze(0), free.squeeze(0)
        # Every network gets its rows in a block of one size; places without a row repeat row 0 and are dropped.
        counts = torch.bincount(slot, minlength=self.slots)
        order = slot.argsort(stable=True)
        place = torch.arange(len(slot), device=slot.device) - (counts.cumsum(0) - counts)[slot[order]]
        table = torch.zeros(self.slots, int(counts.max()), dtype=torch.int64, device=slot.device)
        table[slot[order], place] = order
        given, free = self.nets(planes[table], time[table], goals[table], slot[table])
        back = torch.empty_like(order)
        back[order] = slot[order] * table.shape[1] + place
        return given.flatten(0, 1)[back], free.flatten(0, 1)[back]

    def of_view(self, view: View, goals: Tensor) -> Tensor:
        """Masked logits [B, n, S, G, A] of every observer about each of its others, given each of the goals.

        goals: [G, W] the same for everyone, or [B, n, S, G, W].
        """
        pairs = others_of(view.game)  # [n, S] player that observer i sees in slot k
        planes, mask = view.grid[:, pairs], view.mask[:, pairs]  # [B, n, S, ...]
        time = view.time.view(-1, 1, 1).expand(planes.shape[:3])
        if goals.dim() == 2:
            goals = goals.expand(*planes.shape[:3], *goals.shape)
        given, _ = self(*(x.flatten(0, 1).transpose(0, 1) for x in (planes, time, goals)))  # [S, B n, G, A]
        logits = given.transpose(0, 1).reshape(*planes.shape[:3], *given.shape[2:])
        return apply_mask(logits, mask.unsqueeze(3))

    def trunk_weights(self) -> dict[str, Tensor]:
        """The weights of the first network's trunk, as a `Trunk` loads them."""
        start = "body/trunk/"
        trunk = {k[len(start) :]: w for k, w in self.nets.weights.items() if k.startswith(start)}
        return {k.replace("/", "."): w[0].detach().clone() for k, w in trunk.items()}


def others_of(game: Game) -> Tensor:
    """[n, n - 1] the players that each observer sees, in its own order."""
    return game.ego[:, 1:]


class MoaLikelihoods:
    """A learned model as the source of a belief's likelihoods, about every pair of observer and other."""

    def __init__(self, game: Game, moa: Moa, goals: Tensor) -> None:
        """goals: [G, W] the candidates, such as `torch.eye(2)` for stag and hare or the prototypes of a codebook."""
        if goals.shape[1] != moa.goal_width:
            raise ValueError(f"goals of width {goals.shape[1]} for a model of goal width {moa.goal_width}")
        self.moa, self.candidates = moa, goals
        self.goals = goals.shape[0]
        self.about: tuple[int, ...] = (game.players, game.players - 1)
        self.players = others_of(game)

    @torch.no_grad()
    def __call__(self, view: View, actions: Tensor) -> Tensor:
        by_goal = self.moa.of_view(view, self.candidates).softmax(-1)  # [B, n, S, G, A]
        taken = actions[:, self.players].clamp_max(by_goal.shape[-1] - 1)[..., None, None]
        return by_goal.gather(-1, taken.expand(*by_goal.shape[:-1], 1)).squeeze(-1)


# --- averaged weights -----------------------------------------------------------------------------------------------


def averaged_copy(model: nn.Module) -> AveragedModel:
    """A copy of a model that follows its weights slowly; call `update_parameters(model)` after every step.

    It follows fast in the first steps, when old weights are worth little: decay (1 + k) / (10 + k) after k steps, at
    most TARGET_DECAY.
    """

    @torch.no_grad()
    def follow(slow: Tensors, fast: Tensors, steps: Tensor | int) -> None:
        k = float(steps)
        torch._foreach_lerp_(slow, fast, 1.0 - min(TARGET_DECAY, (1.0 + k) / (10.0 + k)))

    return AveragedModel(model, multi_avg_fn=follow)


# --- the loss -----------------------------------------------------------------------------------------------------


class MoaLoss(NamedTuple):
    """Loss of a batch and its parts, in nats."""

    total: Tensor  # what is minimised
    given: Tensor  # cross-entropy with the goal, unweighted: the figure to compare with a floor
    free: Tensor  # cross-entropy without a goal, unweighted
    entropy: Tensor  # mean entropy of the predictions


def action_loss(
    given: Tensor, free: Tensor | None, actions: Tensor, mask: Tensor, goal_weight: Tensor | None = None, *,
    balance: Balance = "sqrt", entropy_bonus: float = 0.0, legacy_double_softmax: bool = False,
) -> MoaLoss:  # fmt: skip
    """Cross-entropy of logits [R, G, A] (and [R, A] without a goal) on executed actions [R] with legal `mask` [R, A].

    goal_weight: [R, G] how probable each goal is; a certain goal is one-hot. balance: rare actions weigh more.
    legacy_double_softmax feeds probabilities to the cross-entropy, as the original did.
    """
    refuse_probabilities(given)
    weight = balance_weights(actions, given.shape[-1], balance)  # [R]
    masked = apply_mask(given, mask.unsqueeze(1))
    scores = masked.softmax(-1) if legacy_double_softmax else masked
    each = _each(scores, actions.unsqueeze(1).expand(given.shape[:2]))  # [R, G]
    each = each.mean(1) if goal_weight is None else (each * goal_weight).sum(1)
    log_p = masked.log_softmax(-1)
    spread = -(log_p.exp() * log_p).sum(-1).mean()  # a forbidden action adds 0 * (lowest finite) = 0
    total = (weight * each).mean() - entropy_bonus * spread
    if free is None:
        return MoaLoss(total, each.mean().detach(), each.mean().detach(), spread.detach())
    without = _each(apply_mask(free, mask), actions)
    total = total + (weight * without).mean()
    return MoaLoss(total, each.mean().detach(), without.mean().detach(), spread.detach())


def refuse_probabilities(logits: Tensor) -> None:
    """Raise if every row [*, A] is a probability distribution: a softmax was applied before the loss."""
    x = logits.detach()
    if x.numel() and bool((x >= 0).all() & ((x.sum(-1) - 1).abs() < 1e-3).all()):
        raise ValueError("the loss was given probabilities; it takes logits, a softmax applied twice cannot learn")


def balance_weights(actions: Tensor, classes: int, balance: Balance) -> Tensor:
    """[R] weights (1 / frequency) ** p of the actions' classes with mean 1 over the batch; p is 0, 1/2 or 1."""
    if balance == "none":
        return torch.ones(actions.shape, device=actions.device)
    frequency = torch.bincount(actions, minlength=classes) / actions.numel()
    weight = frequency.clamp_min(1e-12).pow(-0.5 if balance == "sqrt" else -1.0)[actions]
    return weight / weight.mean()


def _each(scores: Tensor, actions: Tensor) -> Tensor:
    """Cross-entropy of every row [*S, A] -> [*S]."""
    return cross_entropy(scores.flatten(0, -2), actions.flatten(), reduction="none").view(actions.shape)
