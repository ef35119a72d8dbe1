"""Proximal policy optimisation for batched worlds: one implementation for every world and device.

A world is B arenas with A agents each, all rows stepping together. It resets *one step late*: after an episode's
last step the world still shows the final observation, the next `step` ignores that arena's actions and brings the
new start. So the value of a final observation is computed by the ordinary forward pass of the next step, nothing
has to be known on the host, and truncation can be bootstrapped at no cost. Rows that do not act (dead agents,
arenas that wait for their reset) are masked: they never count in a loss, an advantage or a normalisation.

Letters: T rollout steps, *S = [B, A] rows, D observation width, n acting rows of a rollout.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from marlab.lab.ppo.choices import apply_mask, divergence, log_prob, log_prob_entropy, sample
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.timing import Stopwatch

Timing = Callable[[str], AbstractContextManager[None]]


def advantages(
    reward: Tensor, value: Tensor, terminated: Tensor, truncated: Tensor, gamma: float, lam: float
) -> tuple[Tensor, Tensor]:
    """Advantage and return of every step.

    reward, terminated, truncated: [T, *S]; value: [T + 1, *S], where value[t + 1] is the value of the observation
    *after* step t. Worlds reset one step late, so after the last step of an episode that is its true final
    observation: a truncated step bootstraps from it, a terminated one does not, and neither lets the advantage
    of the next episode through.
    """
    alive = 1.0 - terminated.to(value.dtype)  # [T, *S] the future counts at all
    same_episode = alive * (1.0 - truncated.to(value.dtype))  # [T, *S] the next step belongs to this episode
    delta = reward + gamma * alive * value[1:] - value[:-1]
    carry = gamma * lam * same_episode
    advantage = torch.empty_like(delta)
    last = torch.zeros_like(delta[0])
    for t in range(delta.shape[0] - 1, -1, -1):
        last = torch.addcmul(delta[t], carry[t], last)
        advantage[t] = last
    return advantage, advantage + value[:-1]


class View(NamedTuple):
    """What the rows of a world see."""

    obs: Tensor  # [*S, D]
    mask: Tensor | None = None  # [*S, L] bool, allowed choices
    critic: Tensor | None = None  # [*S, Dc] what a centralised critic sees instead of obs


class Step(Protocol):
    """What a step gave: each [*S]."""

    @property
    def reward(self) -> Tensor: ...
    @property
    def terminated(self) -> Tensor: ...
    @property
    def truncated(self) -> Tensor: ...


class World(Protocol):
    """A batched world that resets one step late (see the module's text)."""

    @property
    def acting(self) -> Tensor:
        """[*S] bool: rows whose next action counts."""
        ...

    def observe(self) -> View | Tensor: ...
    def step(self, actions: Tensor) -> Step: ...


# --- losses, as pure functions of one minibatch [m] -------------------------------------------------------------


def policy_loss(logp: Tensor, old_logp: Tensor, advantage: Tensor, clip: float) -> tuple[Tensor, Tensor, Tensor]:
    """(clipped surrogate loss, approximate KL divergence, share of clipped ratios)."""
    log_ratio = logp - old_logp
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip)
    loss = -torch.minimum(advantage * ratio, advantage * clipped).mean()
    with torch.no_grad():
        kl = (ratio - 1.0 - log_ratio).mean()
        share = ((ratio - 1.0).abs() > clip).to(logp.dtype).mean()
    return loss, kl, share


def value_loss(value: Tensor, old_value: Tensor, target: Tensor, clip: float | None) -> Tensor:
    """Mean squared error; with `clip` the value may move at most that far from the one of the rollout."""
    if clip is not None:
        value = old_value + (value - old_value).clamp(-clip, clip)
    return (target - value).square().mean()


def normalized(advantage: Tensor) -> Tensor:
    """Mean 0 and deviation 1; a single row is left alone."""
    if advantage.numel() < 2:
        return advantage
    return (advantage - advantage.mean()) / (advantage.std() + 1e-8)


# --- rollout storage ----------------------------------------------------------------------------------------------


class Rollout:
    """T steps of all rows, allocated once and overwritten by every rollout."""

    def __init__(self, n_steps: int, view: View, acting: Tensor, n_heads: int) -> None:
        rows, device = acting.shape, acting.device

        def room(*shape: int, dtype: torch.dtype = torch.float32, steps: int = n_steps) -> Tensor:
            return torch.zeros(steps, *rows, *shape, dtype=dtype, device=device)

        self.obs = room(view.obs.shape[-1])
        self.mask = None if view.mask is None else room(view.mask.shape[-1], dtype=torch.bool)
        self.critic = None if view.critic is None else room(view.critic.shape[-1])
        self.actions = room(*(() if n_heads == 1 else (n_heads,)), dtype=torch.int64)
        self.logp, self.reward = room(), room()
        self.value = room(steps=n_steps + 1)
        self.acting, self.terminated, self.truncated = (room(dtype=torch.bool) for _ in range(3))

    def rows(self, advantage: Tensor, target: Tensor) -> dict[str, Tensor]:
        """The acting rows [n, ...] of the rollout: all that learning ever sees."""
        index = self.acting.flatten().nonzero().squeeze(-1)
        fields = {
            "obs": self.obs, "mask": self.mask, "critic": self.critic, "actions": self.actions, "logp": self.logp,
            "value": self.value[:-1], "advantage": advantage, "target": target,
        }  # fmt: skip
        steps = self.acting.dim()
        return {k: v.flatten(0, steps - 1).index_select(0, index) for k, v in fields.items() if v is not None}


class PPO:
    """A policy with its optimiser, its rollout storage and its generators."""

    def __init__(self, net: ActorCritic, config: PPOConfig, generator: torch.Generator) -> None:
        """`generator` draws actions and shuffles minibatches; it lives on the device of the network."""
        self.net, self.config, self.generator = net, config, generator
        self.device = next(net.parameters()).device
        graph = config.cuda_graph and self.device.type == "cuda"
        lr: Any = torch.tensor(config.learning_rate, device=self.device) if graph else config.learning_rate
        self.optimizer = torch.optim.Adam(net.parameters(), lr=lr, eps=config.adam_eps, fused=True, capturable=graph)
        self._graph: _GradientGraph | None = None
        self._recorded: _RolloutGraph | None = None
        self._recordable = True
        self._use_graph = graph
        self._logits, self._value = net.logits, net.value
        if config.compile:
            self._logits = torch.compile(net.logits)
            self._value = torch.compile(net.value)
        self._rollout: Rollout | None = None
        self.timing = Stopwatch(self.device)

    # --- rollout ------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def collect(self, world: World, record: bool = False) -> Rollout:
        """Play `n_steps` with the current policy. Nothing is read back to the host.

        With `record` (and `cuda_graph`, on CUDA) the rollout is recorded once and replayed from then on: for worlds
        whose memory never moves and whose step never waits for the device. The world must stay the same object.
        """
        if self._rollout is None:
            self._rollout = Rollout(self.config.n_steps, _view(world.observe()), world.acting, len(self.net.heads))
        if record and self._use_graph:
            if self._recorded is None and self._recordable:
                try:
                    self._recorded = _RolloutGraph(self, world, self._rollout)
                except RuntimeError as problem:  # what a device refuses to record is only known when it does
                    warnings.warn(f"Rollouts are played step by step; recording failed: {problem}.", stacklevel=2)
                    self._recordable = False
            if self._recorded is not None:
                with self.timing("world"):
                    self._recorded.replay()
                return self._rollout
        return self._play(world, self._rollout, self.timing)

    def _play(self, world: World, out: Rollout, timing: Timing, noise: Tensor | None = None) -> Rollout:
        view = _view(world.observe())
        for t in range(self.config.n_steps):
            with timing("policy"):
                logits = apply_mask(self._logits(view.obs), view.mask)
                actions = sample(logits, self.net.heads, self.generator, None if noise is None else noise[t])
                out.obs[t], out.actions[t], out.acting[t] = view.obs, actions, world.acting
                out.logp[t] = log_prob(logits, actions, self.net.heads)
                out.value[t] = self._value(view.obs if view.critic is None else view.critic)
                if out.mask is not None and view.mask is not None:
                    out.mask[t] = view.mask
                if out.critic is not None and view.critic is not None:
                    out.critic[t] = view.critic
            with timing("world"):
                step = world.step(actions)
                out.reward[t], out.terminated[t], out.truncated[t] = step.reward, step.terminated, step.truncated
                view = _view(world.observe())
        with timing("policy"):
            out.value[-1] = self._value(view.obs if view.critic is None else view.critic)
        return out

    # --- learning -----------------------------------------------------------------------------------------------

    def update(self, rollout: Rollout, learning_rate: float, entropy_coef: float) -> dict[str, float]:
        """Several epochs over the rollout's acting rows; returns the metrics of docs/reference/metrics.md."""
        config = self.config
        with self.timing("learning"):
            advantage, target = advantages(
                rollout.reward, rollout.value, rollout.terminated, rollout.truncated, config.gamma, config.gae_lambda
            )
            data = rollout.rows(advantage, target)
        return self.learn(data, learning_rate, entropy_coef)

    def learn(self, data: dict[str, Tensor], learning_rate: float, entropy_coef: float) -> dict[str, float]:
        """Several epochs over rows [n, ...] as `Rollout.rows` gives them, wherever they were played.

        Rows may hold a `mask` of their own: what was allowed when each was chosen, for example given what others had
        chosen before it; `logp` is then the probability given that mask. With `anchor` (logits [n, L] of a policy to
        stay close to) and `leash` [n], the divergence from it counts with that weight.
        """
        config = self.config
        with self.timing("learning"):
            self._set_lr(learning_rate)
            n = data["obs"].shape[0]
            if n == 0:
                return {"ppo/samples": 0.0, "ppo/learning_rate": learning_rate}
            sums, steps = torch.zeros(len(_Stats._fields), device=self.device), 0
            for _ in range(config.n_epochs):
                order = torch.randperm(n, device=self.device, generator=self.generator)
                shuffled = {k: v.index_select(0, order) for k, v in data.items()}
                done, stop = self._epoch(shuffled, n, entropy_coef, sums)
                steps += done
                if stop:
                    break
            explained = _explained_variance(data["value"], data["target"])
            means = torch.cat([sums / max(steps, 1), explained[None]]).tolist()  # the one host transfer
        named = {f"ppo/{k}": v for k, v in zip([*_Stats._fields, "explained_variance"], means)}
        return {
            **named, "ppo/gradient_steps": float(steps), "ppo/samples": float(n),
            "ppo/learning_rate": learning_rate,
        }  # fmt: skip

    def _epoch(self, data: dict[str, Tensor], n: int, entropy_coef: float, sums: Tensor) -> tuple[int, bool]:
        """One pass; (gradient steps taken, whether the KL limit was passed)."""
        size, limit = self.config.batch_size, self.config.target_kl
        steps = 0
        for start in range(0, n, size):
            batch = {k: v[start : start + size] for k, v in data.items()}
            if self._use_graph and n - start >= size:
                if self._graph is None:
                    self._graph = _GradientGraph(self, batch)
                stats = self._graph.replay(batch, entropy_coef)
            else:
                loss, stats = self.loss(batch, entropy_coef)
                if limit is not None and float(stats[_Stats._fields.index("approx_kl")]) > 1.5 * limit:
                    return steps, True
                self._descend(loss)
            sums += stats
            steps += 1
        return steps, False

    def loss(self, batch: dict[str, Tensor], entropy_coef: float | Tensor) -> tuple[Tensor, Tensor]:
        """The PPO loss of a minibatch and its statistics (in the order of `_Stats`)."""
        config = self.config
        logp, entropy, apart = self.chances(batch)
        value = self._value(batch.get("critic", batch["obs"]))
        advantage = normalized(batch["advantage"]) if config.normalize_advantage else batch["advantage"]
        policy, kl, clipped = policy_loss(logp, batch["logp"], advantage, config.clip_range)
        fit = value_loss(value, batch["value"], batch["target"], config.clip_range_value)
        spread = entropy.mean()
        loss = policy + config.value_coef * fit - entropy_coef * spread
        if apart is not None:
            loss = loss + (batch["leash"] * apart).mean()
        return loss, torch.stack(_Stats(policy, fit, spread, kl, clipped, loss)).detach()

    def chances(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor | None]:
        """Log-probability and entropy [m] of what was chosen, and the divergence from the anchor if there is one."""
        mask = batch.get("mask")
        logits = apply_mask(self._logits(batch["obs"]), mask)
        logp, entropy = log_prob_entropy(logits, batch["actions"], self.net.heads)
        if "anchor" not in batch:
            return logp, entropy, None
        return logp, entropy, divergence(apply_mask(batch["anchor"], mask), logits, self.net.heads)

    def _descend(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), self.config.max_grad_norm)
        self.optimizer.step()

    def _set_lr(self, value: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(value)
            else:
                group["lr"] = value

    # --- saving -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Network, optimiser and generator. The rollout is not part of it: save between update and collect."""
        return {
            "net": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.generator.set_state(state["generator"].cpu())
        self._graph = self._recorded = None


class _Stats(NamedTuple):
    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor
    loss: Tensor


class _GradientGraph:
    """A gradient step recorded once as a CUDA graph and replayed on new minibatches of the same shape."""

    def __init__(self, ppo: PPO, example: dict[str, Tensor]) -> None:
        self._ppo = ppo
        self._batch = {k: v.clone() for k, v in example.items()}
        self._entropy_coef = torch.zeros((), device=ppo.device)
        saved = {k: v.clone() for k, v in ppo.net.state_dict().items()}
        was_fresh = not ppo.optimizer.state
        moments = {p: {k: v.clone() for k, v in s.items()} for p, s in ppo.optimizer.state.items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # warm-up allocates gradients and moments outside of the graph
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._stats = self._step()
        with torch.no_grad():  # undo what the warm-up learned
            ppo.net.load_state_dict(saved)
            for parameter, state in ppo.optimizer.state.items():
                for key, value in state.items():
                    value.zero_() if was_fresh else value.copy_(moments[parameter][key])

    def _step(self) -> Tensor:
        loss, stats = self._ppo.loss(self._batch, self._entropy_coef)
        self._ppo.optimizer.zero_grad(set_to_none=False)
        loss.backward()
        nn.utils.clip_grad_norm_(self._ppo.net.parameters(), self._ppo.config.max_grad_norm)
        self._ppo.optimizer.step()
        return stats

    def replay(self, batch: dict[str, Tensor], entropy_coef: float) -> Tensor:
        for key, value in batch.items():
            self._batch[key].copy_(value)
        self._entropy_coef.fill_(entropy_coef)
        self._graph.replay()
        return self._stats


class _RolloutGraph:
    """A whole rollout recorded once as a CUDA graph; the noise that chooses actions is drawn before each replay."""

    def __init__(self, ppo: PPO, world: World, out: Rollout) -> None:
        logits = (*out.acting.shape, sum(ppo.net.heads))
        self._noise, self._generator = torch.empty(logits, device=ppo.device), ppo.generator
        self._draw()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # one rollout that nobody learns from: memory is allocated outside of the graph
            ppo._play(world, out, _untimed, self._noise)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            ppo._play(world, out, _untimed, self._noise)

    def _draw(self) -> None:
        self._noise.exponential_(generator=self._generator)

    def replay(self) -> None:
        self._draw()
        self._graph.replay()


def _untimed(name: str) -> AbstractContextManager[None]:
    """In place of a stopwatch, whose events have no place in a graph."""
    return nullcontext()


def _view(seen: View | Tensor) -> View:
    return View(seen) if isinstance(seen, Tensor) else seen


def _explained_variance(value: Tensor, target: Tensor) -> Tensor:
    """1 - Var(target - value) / Var(target); 0 when the targets do not vary."""
    variance = target.var(correction=0)
    share = 1.0 - (target - value).var(correction=0) / variance.clamp_min(1e-12)
    return torch.where(variance > 0, share, torch.zeros_like(share))
