"""Several learners in one batch of games: every seed, and where asked every seat, has its own network.

The games of all seeds lie side by side in one world, so one step and one batched rollout serve all of them: games
k * B to (k + 1) * B belong to the k-th seed. Each learner then updates on its own rows alone.

Letters: S seeds, B games per seed, L learning seats, n players, T rollout steps, D observation width, A actions.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from marlab.hunt.players.episodes import EpisodeSums
from marlab.hunt.players.rollout import STAG
from marlab.hunt.ppo.network import PlayerNet, weight_key
from marlab.hunt.ppo.world import HuntWorld, WorldStep
from marlab.lab.ppo import ppo
from marlab.lab.ppo.ppo import PPO, Rollout, advantages


@dataclass(frozen=True)
class Learner:
    """One network with its optimiser, and the rows that are its own."""

    seed: int
    place: int  # which of the S seeds
    seat: int | None  # the one player whose steps it learns from; None learns from all learning seats
    column: int | None  # where that seat lies among the L learning seats
    ppo: PPO

    @property
    def key(self) -> str:
        return weight_key(self.seed, self.seat)

    def rows(self, rollout: Rollout, games: int) -> Rollout:
        """Its part of a rollout of all games: [T, B, L or 1, ...] views, nothing is copied."""
        mine = slice(self.place * games, (self.place + 1) * games)
        seats = slice(None) if self.column is None else slice(self.column, self.column + 1)
        part = copy.copy(rollout)
        for name, value in vars(rollout).items():
            setattr(part, name, None if value is None else value[:, mine, seats])
        return part


class NetworkBatch(nn.Module):
    """The networks of all learners as one, for rollouts: each row is answered by the network it belongs to."""

    def __init__(self, nets: Sequence[PlayerNet], seeds: int) -> None:
        """`nets` in the order seed by seed, within a seed seat by seat (or one for all seats)."""
        super().__init__()
        self.players, self.seeds = list(nets), seeds
        self.nets = nn.ModuleList(nets)  # makes their parameters those of the crowd
        self.heads = nets[0].heads

    def logits(self, obs: Tensor) -> Tensor:
        """[S * B, L, D] -> [S * B, L, A]"""
        return self._join([net.logits(rows) for net, rows in zip(self.players, self._split(obs))], obs)

    def value(self, obs: Tensor) -> Tensor:
        """[S * B, L, D] -> [S * B, L]"""
        return self._join([net.value(rows) for net, rows in zip(self.players, self._split(obs))], obs)

    def _split(self, obs: Tensor) -> list[Tensor]:
        """The rows of each network: [B, L, D] of a seed, or [B, D] of a seed's seat."""
        by_seed = obs.unflatten(0, (self.seeds, -1))  # [S, B, L, D]
        if len(self.players) == self.seeds:
            return list(by_seed.unbind(0))
        return [rows for seed in by_seed.unbind(0) for rows in seed.unbind(1)]

    def _join(self, parts: list[Tensor], obs: Tensor) -> Tensor:
        if len(self.players) == self.seeds:
            return torch.cat(parts)
        seats = obs.shape[1]
        return torch.cat([torch.stack(parts[k : k + seats], 1) for k in range(0, len(parts), seats)])


class SeedWorld:
    """A batch of games as the learners see it: rewards scaled, results of finished episodes kept per seed."""

    def __init__(self, world: HuntWorld, seeds: int, reward_scale: float) -> None:
        self.world, self.seeds, self.reward_scale = world, seeds, reward_scale
        self.ended = EpisodeSums(seeds, world.game.players, world.game.device)

    @property
    def acting(self) -> Tensor:
        return self.world.acting

    def observe(self) -> ppo.View:
        return self.world.observe()

    def step(self, actions: Tensor) -> WorldStep:
        step = self.world.step(actions)
        world, tally = self.world, self.world.tally
        over = world.over if world.guests is None else world.over & ~world.guests.mixed_games  # those are no self-play
        self.ended.add(over, world.state.t, payoff(world), tally.outcome, tally.hunters)
        return step._replace(reward=step.reward * self.reward_scale)

    def pop_stats(self) -> list[dict[str, float]]:
        """Means over the episodes that ended since the last call (`EpisodeSums`), in one transfer."""
        means = self.ended.means()
        self.ended.sums.zero_()
        return means

    def state_dict(self) -> dict[str, Any]:
        return {"world": self.world.state_dict(), "sums": self.ended.sums}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.world.load_state_dict(state["world"])
        self.ended.sums = state["sums"].to(self.ended.sums.device)


def payoff(world: HuntWorld) -> Tensor:
    """[B, n] what each player was paid in its episode so far, in the units of the game.

    Prosocial players are *taught* the mean of all; what each would have been paid follows from what it caught.
    """
    config, tally = world.game.config, world.tally
    if not config.prosocial or config.rules == "snowdrift":  # there all stay, so nothing of the team's sum is lost
        return tally.reward
    value = torch.where(tally.outcome == STAG, config.stag_reward, config.hare_reward)
    return torch.where(tally.hunters > 0, value / tally.hunters.clamp_min(1), 0.0)


def value_errors(rollout: Rollout, config: ppo.PPOConfig) -> Tensor:
    """[B, L] summed squared value errors of the acting rows, and [B, L] their number, stacked as [2, B, L].

    Measured before the update and per seat, so that seats can be compared even where they share a network.
    """
    advantage, _ = advantages(
        rollout.reward, rollout.value, rollout.terminated, rollout.truncated, config.gamma, config.gae_lambda
    )
    acting = rollout.acting.to(advantage.dtype)
    return torch.stack([(advantage.square() * acting).sum(0), acting.sum(0)])
