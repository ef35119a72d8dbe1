"""The trainer: a generation of worlds at a time, PPO after every few days of it, comparison with the rule."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from marlab.lab.ppo.choices import apply_mask, log_prob
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.ppo.ppo import PPO
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.trainer import Halfway
from marlab.market.agent.layers import find_learned
from marlab.market.networks import around as files
from marlab.market.online import ground_real
from marlab.market.online.credit import Rewards, team_rewards
from marlab.market.online.credit import advantages as thread_advantages
from marlab.market.online.ground_real import Seat
from marlab.market.online.ground_vector import Ground, Rows, join
from marlab.market.online.net import AroundRule
from marlab.market.online.order import OrderNet, OrderPlayer, OrderPPO
from marlab.market.online.player import Player
from marlab.market.online.pool import Pool
from marlab.market.online.protect import Best, Guard, alarms
from marlab.market.online.refit import Refits
from marlab.market.online.settings import RULE, WEAK, OnlineConfig
from marlab.market.online.steer import HELD_OUT, Outcome, compared, fare
from marlab.market.rules import around
from marlab.market.rules.around import Freedom
from marlab.market.vector.rounds import ROUNDS

LEAST_RATE = 0.1
"""Share of the first learning rate that is left at the end."""
HEADS = ("op", "lot", "price", "day")
Played = tuple[Any, Rewards]


def make_net(config: OnlineConfig, pool: Pool, device: torch.device) -> AroundRule | OrderNet:
    """The network that learning begins with."""
    rngs = Rngs(config.seed)
    if config.algo == "ppo":
        return OrderNet(config.hidden, rngs.torch("online/net")).to(device)
    start = None if config.start in (RULE, WEAK) else files.load(find_learned(Path(config.start)))
    size = around.INPUTS + (3 * pool.kinds if config.algo == "mappo" else 0)
    freedom = Freedom(config.may_leave, config.outright)
    net = AroundRule(config.hidden, size, config.bonus, rngs.torch("online/net"), freedom)
    if config.start == WEAK:
        net.weaken()
    elif start is not None:
        net.start_from(start)
    return net.to(device)


def ppo_config(config: OnlineConfig) -> PPOConfig:
    """PPO's part of the settings."""
    return PPOConfig(
        n_steps=config.rollout_days * ROUNDS, n_epochs=config.epochs, batch_size=config.batch_size,
        learning_rate=config.learning_rate, clip_range=config.clip_range, target_kl=config.target_kl,
        entropy_coef=config.entropy_coef, gamma=config.gamma, gae_lambda=config.gae_lambda,
    )  # fmt: skip


class OnlineTrainer:
    """Learns in generations; between two of them everything that matters is in `state_dict`."""

    def __init__(self, config: OnlineConfig, device: torch.device) -> None:
        self.config, self.device = config, device
        self.pool = Pool(config.opponents, config.clones, config.past_selves)
        self.net = make_net(config, self.pool, device)
        generator = torch.Generator(device=device).manual_seed(Rngs(config.seed).draw_seed("online/ppo"))
        learns = OrderPPO if config.algo == "ppo" else PPO
        self.ppo = learns(self.net, ppo_config(config), generator)
        self.step, self.total = 0, config.generations
        self.guard = Guard(config.patience)
        self.stopped, self.improved = False, False
        self.kept: dict[str, Any] = _copied(self.ppo.state_dict())  # the best version so far
        self._rule: Outcome | None = None  # how the rule fares where the learner is compared with it
        self.alarms: list[str] = []
        self.refits: Refits | None = None
        self.refitted = 0  # how often the clones were fitted again

    def iterate(self) -> Mapping[str, Any]:
        """One generation."""
        if self.config.ground == "real":
            return self._real_generation()
        turn = 0 if self.refits is None else self.refits.turn(self.step)
        if turn > self.refitted:
            told = self._refit(turn)
            return {**self._generation(), **told}
        return self._generation()

    def _generation(self) -> dict[str, Any]:
        """A batch of worlds of the vector market."""
        began, config = time.perf_counter(), self.config
        plays = OrderPlayer if config.algo == "ppo" else Player
        ground = Ground(config, self.net, self.pool, self.step, self.device, plays=plays)
        others = ground.others() if config.algo == "mappo" else None
        updates = config.generation_days // config.rollout_days - 1
        collected: list[dict[str, float]] = []
        before = ground.play(config.rollout_days)
        for update in range(updates):
            after = ground.play(config.rollout_days)
            progress = (self.step + update / updates) / self.total
            learnt = self.orders if config.algo == "ppo" else self.rows
            data, told = learnt(before, after, others)
            rate = config.learning_rate * (1 - (1 - LEAST_RATE) * progress)
            told |= self.ppo.learn(data, rate, config.entropy_coef)
            collected.append(told)
            before = after
        ground.tell_pool()
        self.step += 1
        self.pool.remember(self.net)
        means = {name: _mean([told[name] for told in collected if name in told]) for name in collected[-1]}
        seconds = time.perf_counter() - began
        days = config.worlds * (updates + 1) * config.rollout_days
        means |= {"time/seconds": seconds, "time/world_days_per_second": days / seconds}
        self.improved = False
        if self._steers:
            means |= self.steer()
        self.alarms = alarms(means)
        return means

    def _real_generation(self) -> dict[str, Any]:
        """A batch of worlds of the simulator."""
        assert self.refits is not None and isinstance(self.net, AroundRule)
        began = time.perf_counter()
        told = self.learn_from(self.refits.play(self.step + 1, self.net))
        self.step += 1
        told["time/seconds"] = time.perf_counter() - began
        self.improved = False
        if self._steers:
            told |= self.steer()
        self.alarms = alarms(told)
        return told

    def _refit(self, turn: int) -> dict[str, float]:
        """Play among real experts, learn from it, fit the clones again; what was best among the old ones is past."""
        assert self.refits is not None and isinstance(self.net, AroundRule)
        before = copy.deepcopy(self.ppo.state_dict())
        told = {
            f"real/{name.rpartition('/')[2]}": value
            for name, value in self.learn_from(self.refits.play(turn, self.net)).items()
        }
        try:
            clones = self.refits.clones(turn)
        except Halfway:
            self.ppo.load_state_dict(before)  # the same worlds teach it when it goes on
            raise
        self.pool.change_clones(clones)
        self.refitted, self._rule = turn, None
        gain = self.compare()["steer/gain"]
        self.kept = _copied(self.ppo.state_dict())
        self.guard.best, self.guard.waited = Best(self.step, gain), 0
        return told | {"real/gain_with_new_clones": gain}

    def learn_from(self, seats: Sequence[Seat]) -> dict[str, float]:
        """One update from what was lived through in real worlds."""

        def logp(x: Tensor, mask: Tensor, choices: Tensor) -> Tensor:
            with torch.no_grad():
                parts = [self.net.logits(part) for part in x.split(1 << 16)]
                return log_prob(apply_mask(torch.cat(parts), mask), choices, around.HEADS)

        played, rewards = ground_real.transitions(seats, logp, self.device)
        others = None
        if self.config.algo == "mappo":
            others = ground_real.others(seats, self.pool.names).to(self.device)
        nothing = Rows(*(part[:0] for part in played)), Rewards(*(part[:0] for part in rewards))
        data, told = self.rows((played, rewards), nothing, others)
        rate = self.config.learning_rate * (1 - (1 - LEAST_RATE) * self.step / self.total)
        return told | self.ppo.learn(data, rate, self.config.entropy_coef) | {"reward/seats": float(len(seats))}

    def compare(self) -> dict[str, float]:
        """The learner as it is beside the rule."""
        if self._rule is None:
            self._rule = fare(self.config, self.pool, None, self.device)
        return compared(fare(self.config, self.pool, self.net, self.device, self._plays), self._rule)

    @property
    def _steers(self) -> bool:
        """Whether a comparison is due."""
        every = self.config.steer_every
        return every > 0 and (self.step == self.total or self.step % every == 0)

    @property
    def _plays(self) -> type[Player]:
        return OrderPlayer if self.config.algo == "ppo" else Player

    def last_word(self, *others: AroundRule) -> list[dict[str, float]]:
        """The best version beside the rule, on worlds that steered nothing; then other networks in the same seats."""
        rule = fare(self.config, self.pool, None, self.device, which=HELD_OUT)
        nets = (self.best_net(), *(other.to(self.device) for other in others))
        return [compared(fare(self.config, self.pool, net, self.device, self._plays, HELD_OUT), rule) for net in nets]

    def steer(self) -> dict[str, float]:
        """Compare with the rule; keep the best version, go back to it from a worse one."""
        began = time.perf_counter()
        told = self.compare()
        turn = self.guard.judge(self.step, told["steer/gain"], told["steer/error"])
        if turn == "better":
            self.kept, self.improved = _copied(self.ppo.state_dict()), True
        elif turn == "roll back":
            self.ppo.load_state_dict(_copied(self.kept))
        self.stopped = turn == "stop"
        rolled = float(turn == "roll back")
        return told | {"steer/rolled_back": rolled, "time/steer_seconds": time.perf_counter() - began}

    def best_net(self) -> AroundRule | OrderNet:
        """The best version so far; the newest, where nothing is compared on the way."""
        net = make_net(self.config, self.pool, self.device)
        net.load_state_dict((self.kept if self.config.steer_every else self.ppo.state_dict())["net"])
        return net

    def rows(self, before: Played, after: Played, others: Tensor | None) -> tuple[dict[str, Tensor], dict[str, float]]:
        """What PPO learns from: choices of some days; the days `after` them say what they led to.

        Those were already played by the policy that learning on `before` will change: play is never more than one
        update old, and ratios are taken to what was really played.
        """
        config, steps = self.config, len(before[1].own)
        played = join(before[0], after[0], steps)
        critic = played.x if others is None else torch.cat([played.x, others[played.seat, played.partner]], -1)
        learnt, told = played.step < steps, _earned(before[1])
        data = self._weighed(played, critic, team_rewards(_together(before, after), config.share), before, after)
        data |= {"obs": played.x[learnt], "mask": played.mask[learnt], "actions": played.choices[learnt]}
        if others is not None:
            data["critic"] = critic[learnt]
        if config.leash > 0:
            assert isinstance(self.net, AroundRule)
            data["anchor"] = self.net.prior.expand(len(data["obs"]), -1)
            data["leash"] = torch.full_like(data["logp"], config.leash)
        changed = (played.choices > 0).float().mean(0).tolist() if len(played.choices) else [math.nan] * len(HEADS)
        told |= {f"choices/{head}_changed": share for head, share in zip(HEADS, changed)}
        return data, told

    def orders(
        self, before: Played, after: Played, others: Tensor | None
    ) -> tuple[dict[str, Tensor], dict[str, float]]:
        """The same for orders of threads: all that a factory earns counts for them."""
        played, steps = join(before[0], after[0], len(before[1].own)), len(before[1].own)
        rewards = _together(before, after)
        there = played.there.to(played.x.dtype)[..., None]
        critic = (played.x * there).sum(1) / there.sum(1).clamp(min=1)
        whole = team_rewards(rewards._replace(own=rewards.own.sum(-1, keepdim=True)), 1.0)
        learnt, told = played.step < steps, _earned(before[1])
        data = self._weighed(played, critic, whole, before, after)
        data |= {name: getattr(played, name)[learnt] for name in ("base", "there")}
        data |= {"obs": played.x[learnt], "actions": played.order[learnt], "critic": critic[learnt]}
        usual = (-played.base).argsort(dim=1, stable=True)
        told["choices/order_changed"] = float((usual != played.order).any(1).float().mean()) if len(usual) else math.nan
        return data, told

    def _weighed(self, played: Any, critic: Tensor, reward: Tensor, before: Played, after: Played) -> dict[str, Tensor]:
        """Values, advantages and targets of the choices in `before`."""
        place = (played.step, played.seat, played.partner)
        with torch.no_grad():
            value = torch.cat([self.net.value(part) for part in critic.split(1 << 18)]) if len(critic) else critic[:, 0]
        dense = torch.zeros_like(reward, dtype=value.dtype)
        dense[place] = value
        acts = torch.zeros(dense.shape, dtype=torch.bool, device=dense.device)
        acts[place] = True
        ended = torch.cat([before[1].ended, after[1].ended])
        gamma, lam = self.config.gamma, self.config.gae_lambda
        advantage, target = thread_advantages(reward.to(value.dtype), dense, acts, ended, gamma, lam)
        learnt = played.step < len(before[1].own)
        at = tuple(part[learnt] for part in place)
        return {"logp": played.logp[learnt], "value": value[learnt], "advantage": advantage[at], "target": target[at]}

    def state_dict(self) -> dict[str, Any]:
        """Networks, optimiser, generator, pool."""
        return {
            "step": self.step, "ppo": self.ppo.state_dict(), "pool": self.pool.state_dict(), "kept": self.kept,
            "guard": self.guard.state_dict(), "stopped": self.stopped, "refitted": self.refitted,
            "rule": None if self._rule is None else self._rule.state_dict(),
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = int(state["step"])
        self.ppo.load_state_dict(state["ppo"])
        self.pool.load_state_dict(state["pool"])
        self.guard.load_state_dict(state["guard"])
        self.kept, self.stopped = state["kept"], bool(state["stopped"])
        self._rule = None if state["rule"] is None else Outcome(**state["rule"])
        self.refitted = int(state["refitted"])
        if self.refitted:
            assert self.refits is not None
            self.pool.change_clones(self.refits.clones(self.refitted))


def _together(before: Played, after: Played) -> Rewards:
    return Rewards(*(torch.cat(parts) for parts in zip(before[1], after[1])))


def _earned(rewards: Rewards) -> dict[str, float]:
    """What a seat earned in a day, in shares of the opening balance."""
    own, evening, days = rewards.own.sum((0, 2)), rewards.evening.sum(0), len(rewards.evening)
    return {"reward/day": float((own + evening).mean() / days), "reward/signed": float(own.mean() / days)}


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    """A state that later steps do not change."""
    return copy.deepcopy(state)


def _mean(values: list[float]) -> float:
    return sum(values) / max(1, len(values))
