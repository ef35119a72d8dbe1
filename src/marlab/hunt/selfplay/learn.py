"""How planning agents learn: plans teach the prior, returns the value, observed actions the models of others.

All seeds learn side by side: a batch leads with the copies of a network, every copy's gradient is that of its own
mean, and one optimiser step moves them all. Planners and beliefs use slowly following copies of the weights.

Letters: P copies, N rows of a copy's batch, S seeds, n players, S' = n - 1 slots, K goals, A actions.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from marlab.hunt.game.rows import Symmetries
from marlab.hunt.game.rules import ABSENT
from marlab.hunt.others.at_play import OtherModels
from marlab.hunt.others.moa import action_loss
from marlab.hunt.planner.mind import PlannerModels
from marlab.hunt.planner.replay import Experience, History, Replay
from marlab.hunt.selfplay.config import LearnConfig
from marlab.lab.ppo.choices import apply_mask

WEIGHT_DECAY = 1e-4
MAX_GRAD_NORM = 1.0
"""Largest norm of each network's own gradient."""
HISTORY_UPDATES, HISTORY_BATCH = 5, 96
"""Optimiser steps of the history encoders per iteration, and whole histories in a minibatch of each."""


class PlannerLearner:
    """Networks that learn (`fast`), those that play (`slow`), and their optimisers."""

    def __init__(self, mind: PlannerModels, config: LearnConfig, generator: torch.Generator) -> None:
        self.config, self.generator = config, generator
        self.fast, self.slow = mind, copy_models(mind)
        self.slow.requires_grad_(False)
        device = next(mind.parameters()).device
        self.turns = Symmetries(mind.layout, device)
        self._choose = torch.Generator().manual_seed(0)  # which symmetry: on the host, so that nothing waits
        self.players = self._optimiser(mind.players)
        self.others = None if mind.others is None else self._optimiser(mind.others.moa)
        self.history: torch.optim.Optimizer | None = None
        if mind.others is not None and mind.others.history is not None:
            self.history = self._optimiser(mind.others.history)

    def _optimiser(self, nets: nn.Module) -> torch.optim.Optimizer:
        weights = list(nets.parameters())
        fused = weights[0].device.type == "cuda"
        return torch.optim.Adam(weights, self.config.learning_rate, weight_decay=WEIGHT_DECAY, fused=fused)

    # --- prior and value ------------------------------------------------------------------------------------------

    def learn_players(
        self, replay: Replay[Experience], lr: float, entropy: float, lessons: Experience | None = None
    ) -> dict[str, Tensor]:
        """One iteration's steps on replayed plans and returns. All rings that learn must have rows.

        lessons: offline steps [R] with what a prior should learn from them, for a share of every batch.
        """
        losses = []
        old = 0 if lessons is None else round(self.config.lessons * self.config.batch_size)
        for _ in range(self.config.updates):
            steps = replay.draw(self._rings(replay, self.config.batch_size - old), self.generator)
            if lessons is not None and old:
                lead = (self.fast.players.copies, old)
                index = torch.randint(len(lessons.time), lead, generator=self.generator, device=lessons.time.device)
                extra = lessons.select(index)
                extra = extra._replace(goal=extra.goal.expand(*lead, *steps.goal.shape[2:]))  # as wide; nobody reads it
                steps = Experience(*(torch.cat(pair, 1) for pair in zip(steps, extra)))
            losses.append(self.player_step(steps, lr, entropy))
        return {name: torch.stack([f[name] for f in losses]).mean(0) for name in losses[0]}

    def _rings(self, replay: Replay[Experience], size: int) -> Tensor:
        """[P, N] rings to draw from: a shared network learns from all seats that have rows, equally often."""
        nets, n = self.fast.players, self.fast.game.players
        device = replay.written.device
        if nets.copies == replay.groups:
            return torch.arange(nets.copies, device=device).unsqueeze(1).expand(-1, size)
        filled = (replay.written > 0).view(-1, n).float()  # [S, n]; rule-based seats never plan
        planning = filled * self.learning_seats
        seat = torch.multinomial(planning, size, replacement=True, generator=self.generator)  # [S, N]
        return seat + torch.arange(nets.copies, device=device).unsqueeze(1) * n

    @property
    def learning_seats(self) -> Tensor:
        """[n] 1 for the seats that plan."""
        return self._learning

    def set_learning_seats(self, seats: Iterable[int]) -> None:
        device = next(self.fast.parameters()).device
        self._learning = torch.zeros(self.fast.game.players, device=device)
        self._learning[list(seats)] = 1.0

    def player_step(self, steps: Experience, lr: float, entropy: float) -> dict[str, Tensor]:
        """One optimiser step on steps [P, N]: half the cross-entropy plus half the squared value error."""
        steps = self._turned(steps)
        legal = steps.rows[..., : self.fast.game.actions].bool()
        logits, value = self.fast.players(steps.rows, steps.time, self._goal_input(steps))
        log_p = apply_mask(logits, legal).log_softmax(-1)
        policy_loss = -(steps.policy * log_p.masked_fill(~legal, 0.0)).sum(-1).mean(1)  # [P]
        value_loss = (value - steps.value).square().mean(1)
        spread = -(log_p.exp() * log_p.masked_fill(~legal, 0.0)).sum(-1).mean(1)
        loss = 0.5 * (policy_loss + value_loss) - entropy * spread
        norm = self._step(self.players, loss.sum(), lr)
        self._follow(self.slow.players, self.fast.players, self.config.follow)
        return {
            "policy": policy_loss.detach(),
            "value": value_loss.detach(),
            "prior_entropy": spread.detach(),
            "grad_norm": norm,
        }

    def _goal_input(self, steps: Experience) -> Tensor | None:
        """Half of the steps are told the belief of that moment, as at a root, half what came out, as inside a tree."""
        lead = steps.time.shape
        final = torch.rand(*lead, 1, 1, generator=self.generator, device=steps.time.device) < 0.5
        goals = torch.where(final, steps.believed[..., 1, :, :], steps.believed[..., 0, :, :])
        return self.fast.players.goal_input(goals)

    # --- models of others -----------------------------------------------------------------------------------------

    def learn_others(self, replay: Replay[Experience], offline: Experience | None, lr: float) -> dict[str, Tensor]:
        """One iteration's steps of every observer's models, on the same number of steps of every other player."""
        models = self.fast.others
        if models is None:
            return {}
        legacy = self.config.legacy_moa_buffer == "successes-only"
        if legacy and not bool((replay.written > 0).all()):
            return {}  # somebody has caught nothing yet
        before = [(p, p.detach().clone()) for p in self._moa_weights()] if legacy else []
        losses = []
        for _ in range(self.config.moa_updates):
            losses.append(self.other_step(self._pairs(models.moa.copies, replay, offline), lr))
        observer = torch.arange(models.moa.copies, device=replay.written.device) % (
            models.moa.copies // len(self.fast.seeds)
        )
        with torch.no_grad():
            for weight, old in before:  # only the first observer of every seed learns
                weight[observer > 0] = old[observer > 0]
        return {name: torch.stack([f[name] for f in losses]).mean(0) for name in losses[0]}

    def _moa_weights(self) -> list[nn.Parameter]:
        """Weights of the models of others, of those that learn and of those that play; copies lead."""
        return [p for mind in (self.fast, self.slow) if mind.others is not None for p in mind.others.moa.parameters()]

    def _pairs(self, copies: int, replay: Replay[Experience], offline: Experience | None) -> Experience:
        """Steps [P, N, S'] of the others of every observer, with that observer's beliefs about their goals [., K]."""
        n, size, device = self.fast.game.players, self.config.moa_batch_size, replay.written.device
        slot = torch.arange(n - 1, device=device)
        old = 0 if offline is None else round(self.config.offline_ratio * size)
        seed = torch.arange(len(self.fast.seeds), device=device).view(-1, 1, 1, 1)
        observer = torch.arange(n, device=device).view(1, -1, 1, 1).expand(len(self.fast.seeds), -1, size - old, 1)
        rings = seed * n + (observer + 1 + slot) % n  # [S, n, N, S']
        steps = replay.draw(rings, self.generator, self.config.moa_newest)
        own = slot.view(1, 1, 1, -1, 1, 1).expand(*rings.shape, 1, steps.goal.shape[-1])
        steps = steps._replace(goal=steps.goal.gather(-2, own).squeeze(-2))
        if old:
            assert offline is not None
            lead = (len(self.fast.seeds), n, old, n - 1)
            index = torch.randint(len(offline.time), lead, generator=self.generator, device=device)
            extra = offline.select(index)
            extra = extra._replace(goal=extra.goal.squeeze(-2))
            steps = Experience(*(torch.cat(pair, 2) for pair in zip(steps, extra)))
        # Seats that share their models are further rows of one network.
        each = len(self.fast.seeds) * n * size // copies
        return Experience(*(x.reshape(copies, each, n - 1, *x.shape[4:]) for x in steps))

    def other_step(self, steps: Experience, lr: float) -> dict[str, Tensor]:
        """One optimiser step on steps [P, N, S'] with goal probabilities [P, N, S', K]."""
        models = self.fast.others
        assert models is not None and self.others is not None
        steps, moa = self._turned(steps), models.moa
        logits = moa(steps.rows, steps.time, moa.wishes(self._meant(models, steps.code)))
        legal = steps.rows[..., : self.fast.game.actions].bool()
        predicted, did, allowed, goal = (x.flatten(0, 2) for x in (logits, steps.action, legal, steps.goal))
        double = self.config.legacy_double_softmax
        loss = action_loss(predicted, None, did, allowed, goal, balance="none", legacy_double_softmax=double)
        norm = self._step(self.others, loss.total * moa.copies, lr)
        assert self.slow.others is not None
        self._follow(self.slow.others.moa, moa, self.config.moa_follow)
        online = steps.update >= 0
        age = (steps.update.max() - steps.update) * online
        return {
            "ce": loss.given,
            "grad_norm": norm.mean(),
            "age": age.sum() / online.sum().clamp_min(1),
            "offline_share": 1 - online.float().mean(),
        }

    def _meant(self, models: OtherModels, code: Tensor) -> Tensor:
        """[P, N, S', K, V] what each goal means: for half of the steps with what histories say, as in trees, for half
        the goals themselves, as for beliefs and guests."""
        meant = models.meant(code)
        if models.history is None:
            return meant
        alone = torch.rand(*code.shape[:-2], 1, 1, generator=self.generator, device=code.device) < 0.5
        return torch.where(alone, models.candidates, meant)

    def learn_histories(self, histories: Replay[History] | None, lr: float) -> dict[str, Tensor]:
        """One iteration's steps of the history encoders, on whole histories of the newest episodes."""
        if self.history is None or histories is None:
            return {}
        losses = [self.history_step(histories, lr) for _ in range(HISTORY_UPDATES)]
        return {name: torch.stack([f[name] for f in losses]).mean(0) for name in losses[0]}

    def history_step(self, histories: Replay[History], lr: float) -> dict[str, Tensor]:
        """Codes should make the models of others right about what players did, and foretell what they leave with."""
        models = self.fast.others
        assert models is not None and models.history is not None and self.history is not None
        moa, encoder, seeds = models.moa, models.history, len(self.fast.seeds)
        observers = moa.copies // seeds
        each = max(1, HISTORY_BATCH // (observers * moa.slots))
        rings = torch.arange(seeds, device=histories.written.device).unsqueeze(1)
        drawn = histories.draw(rings.expand(-1, observers * each * moa.slots), self.generator)  # [S, N, T, ...]
        drawn = self._turned_histories(drawn)
        steps = drawn.rows.shape[2]
        time = (torch.arange(steps, device=drawn.real.device) / self.fast.game.final_time).expand(drawn.real.shape)
        code, _ = encoder.read(drawn.rows, time, drawn.actions)
        guess = code.sample(self.generator)  # [S, N, T, D]

        def pairs(x: Tensor) -> Tensor:
            """[P, E T, S', ...] from [S, N, T, ...]: histories stand in for the others of every observer."""
            x = x.unflatten(1, (observers, each, moa.slots)).transpose(3, 4)  # [S, O, E, T, S', ...]
            return x.reshape(moa.copies, each * steps, moa.slots, *x.shape[5:])

        rows, real = pairs(drawn.rows), pairs(drawn.real)
        meant = models.meant(pairs(torch.stack([guess, code.log_var], 3)))
        logits = moa(rows, pairs(time), moa.wishes(meant))
        legal = rows[..., : self.fast.game.actions].bool()
        goal = pairs(drawn.goal.unsqueeze(2).expand(-1, -1, steps, -1))
        did = pairs(drawn.actions[..., 0])
        loss = action_loss(logits[real], None, did[real], legal[real], goal[real], balance="none")
        foretold = encoder.outcome(guess.flatten(1, 2)).unflatten(1, guess.shape[1:3])
        outcome = drawn.outcome.unsqueeze(2).expand_as(drawn.real)
        foretelling = cross_entropy(foretold[drawn.real], outcome[drawn.real])
        norm = self._step(self.history, (loss.total + foretelling) * seeds, lr)
        assert self.slow.others is not None and self.slow.others.history is not None
        self._follow(self.slow.others.history, encoder, self.config.moa_follow)
        return {"history_ce": loss.given, "foretelling": foretelling.detach(), "history_grad_norm": norm.mean()}

    def _turned_histories(self, drawn: History) -> History:
        if not self.config.symmetries:
            return drawn
        which = int(torch.randint(len(self.turns), (1,), generator=self._choose))
        renamed = self.turns.renamed[which]
        names = torch.cat([renamed, renamed.new_full((ABSENT + 1 - len(renamed),), ABSENT)])
        rows = drawn.rows.index_select(-1, self.turns.rows[which])
        return drawn._replace(rows=rows, actions=names[drawn.actions])

    # --- shared ---------------------------------------------------------------------------------------------------

    def _turned(self, steps: Experience) -> Experience:
        if not self.config.symmetries:
            return steps
        which = int(torch.randint(len(self.turns), (1,), generator=self._choose))
        turns = self.turns
        return steps._replace(
            rows=steps.rows.index_select(-1, turns.rows[which]),
            action=turns.renamed[which][steps.action],
            policy=steps.policy.index_select(-1, turns.by_action[which]),
        )

    def _step(self, optimiser: torch.optim.Optimizer, loss: Tensor, lr: float) -> Tensor:
        """Move by a loss that sums over copies; returns the copies' gradient norms [P], each clipped on its own."""
        for group in optimiser.param_groups:
            group["lr"] = lr
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        gradients = [p.grad for group in optimiser.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([g.flatten(1).square().sum(1) for g in gradients]).sum(0).sqrt()
        scale = (MAX_GRAD_NORM / norm.clamp_min(1e-12)).clamp_max(1.0)
        for g in gradients:
            g.mul_(scale.view(-1, *[1] * (g.dim() - 1)))
        optimiser.step()
        return norm

    @torch.no_grad()
    def _follow(self, slow: nn.Module, fast: nn.Module, keep: float) -> None:
        torch._foreach_lerp_(list(slow.parameters()), list(fast.parameters()), 1.0 - keep)

    def settle(self) -> None:
        """Let the playing weights catch up at once, as after a start."""
        self.slow.load_state_dict(self.fast.state_dict())

    def optimisers(self) -> list[torch.optim.Optimizer]:
        return [x for x in (self.players, self.others, self.history) if x is not None]

    def state_dict(self) -> dict[str, Any]:
        return {
            "fast": self.fast.state_dict(),
            "slow": self.slow.state_dict(),
            "optimisers": [o.state_dict() for o in self.optimisers()],
            "choose": self._choose.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.fast.load_state_dict(state["fast"])
        self.slow.load_state_dict(state["slow"])
        for optimiser, saved in zip(self.optimisers(), state["optimisers"]):
            optimiser.load_state_dict(saved)
        self._choose.set_state(state["choose"].cpu())


def copy_models(mind: PlannerModels) -> PlannerModels:
    """The same weights again, with the same (not copied) world model."""
    world, mind.world = mind.world, [None]
    made = copy.deepcopy(mind)
    mind.world, made.world = world, world
    return made


class BestWeights:
    """The weights of every seed's best time, to go back to when its reward falls."""

    def __init__(self, learner: PlannerLearner) -> None:
        self.learner = learner
        self.kept = [x.clone() for x in self._tensors()]

    def _tensors(self) -> list[Tensor]:
        """Everything with a leading axis of copies: weights, and the optimisers' averages of gradients."""
        learner = self.learner
        tensors = [*learner.fast.parameters(), *learner.slow.parameters()]
        for optimiser in learner.optimisers():
            for group in optimiser.param_groups:
                for p in group["params"]:
                    tensors += [optimiser.state[p][k] for k in ("exp_avg", "exp_avg_sq") if p in optimiser.state]
        return [x.detach() for x in tensors]

    @torch.no_grad()
    def keep(self, place: int) -> None:
        """Remember how seed number `place` is now."""
        now, seeds = self._tensors(), len(self.learner.fast.seeds)
        if len(now) != len(self.kept):  # optimisers make their averages at their first step
            self.kept = [x.clone() for x in now]
        for kept, x in zip(self.kept, now):
            kept.unflatten(0, (seeds, -1))[place] = x.unflatten(0, (seeds, -1))[place]

    @torch.no_grad()
    def restore(self, place: int) -> None:
        """Bring seed number `place` back to what was kept."""
        seeds = len(self.learner.fast.seeds)
        for kept, x in zip(self.kept, self._tensors()):
            x.unflatten(0, (seeds, -1))[place] = kept.unflatten(0, (seeds, -1))[place]

    def state_dict(self) -> dict[str, Any]:
        return {"kept": self.kept}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        device = next(self.learner.fast.parameters()).device
        self.kept = [x.to(device) for x in state["kept"]]
