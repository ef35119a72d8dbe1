"""The upper reference of seas without a ceiling: a policy's episodes, mended by who knows how they end.

An episode is a deterministic function of its start and of the actions, so a plan, every action of every fish, can be
played again exactly. `improve` begins with the plan that a policy makes and goes through it in time. Where a fish is
going to be eaten within the next seconds it tries many small changes before that moment (this fish, another one, or
many of them do something else for up to a second), plays each with the true predators *to the end of the episode*,
with the policy behind it, and keeps the best if fewer die. So no arena is ever worse than the policy alone, which is
what makes it an upper reference, but it is no ceiling: nobody proves that more is impossible. It is also not fair:
it has seen the future, which nobody in the sea has.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.fish.measure.policies import Policy
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState, advance
from marlab.fish.sea.perception import observe
from marlab.fish.sea.predators import predator_step

ALONE, ANOTHER = 0.5, 0.75
"""Changes below the first share are of the fish that dies next, below the second of any one fish, the rest of many."""
CROWD = 0.25
"""How many of the fish a change of many concerns."""


@dataclass(frozen=True)
class Search:
    """How much is tried."""

    candidates: int = 64  # changes per arena and round
    rounds: int = 3  # at each stop
    stride: int = 10  # steps from one stop to the next
    window: int = 40  # a death within so many steps after a stop is worked on there
    longest: int = 10  # steps of one change
    sweeps: int = 1  # times through the episode
    seconds: float | None = None  # stops early


class Plan(NamedTuple):
    """Every action of whole episodes, and what they come to."""

    actions: Tensor  # [T, B, F] int8
    deaths: Tensor  # [B, F] int32: step of each death, -1 for who lives

    @property
    def survival(self) -> Tensor:
        """[B] share of the fish that live (all slots are filled in evaluations)."""
        return (self.deaths < 0).float().mean(1)


class Changes(NamedTuple):
    """What each row does otherwise: `actions` up to step `until`, the policy from there on."""

    actions: Tensor  # [S, N, F] int8, the first S steps from here
    until: Tensor  # [N]


@torch.no_grad()
def improve(start: SeaState, policy: Policy, cfg: SeaConfig, search: Search, generator: torch.Generator) -> Plan:
    """The best plan found from `start`; `generator` (of the same device) draws the changes."""
    began, arenas = time.monotonic(), len(start.x)
    nothing = Changes(start.x.new_zeros(0, *start.x.shape, dtype=torch.int8), start.x.new_zeros(arenas))
    plan = play_out(start, nothing, policy, cfg, sea.EPISODE_STEPS)
    for _ in range(search.sweeps):
        now = start
        for stop in range(0, sea.EPISODE_STEPS, search.stride):
            for _ in range(search.rounds):
                if search.seconds is not None and time.monotonic() - began > search.seconds:
                    return plan
                plan = _round(now, stop, plan, policy, cfg, search, generator)
            now = replay(now, plan.actions[stop : stop + search.stride], cfg)
    return plan


def replay(state: SeaState, actions: Tensor, cfg: SeaConfig) -> SeaState:
    """The state after these actions [S, B, F]."""
    hunt = predator_step(cfg)
    for row in actions:
        state = advance(state, row, hunt)
    return state


def play_out(state: SeaState, changes: Changes, policy: Policy, cfg: SeaConfig, steps: int) -> Plan:
    """Play `changes` and then the policy for `steps` steps; the plan begins at `state`."""
    hunt, played = predator_step(cfg), []
    for step in range(steps):
        if step < len(changes.actions):
            bound = (step < changes.until)[:, None]
            chosen = torch.where(bound, changes.actions[step], policy(observe(state, cfg)).to(torch.int8))
        else:
            chosen = policy(observe(state, cfg)).to(torch.int8)
        state = advance(state, chosen, hunt)
        played.append(chosen)
    return Plan(torch.stack(played), state.death_step)


def _round(
    now: SeaState, stop: int, plan: Plan, policy: Policy, cfg: SeaConfig, search: Search, generator: torch.Generator
) -> Plan:
    """Try changes in all arenas where somebody dies soon after `stop`; `now` is where the plan is then."""
    next_death, victim = torch.where(plan.deaths > stop, plan.deaths, sea.EPISODE_STEPS + 1).min(1)  # [B]
    rows = (next_death <= stop + search.window).nonzero()[:, 0]
    if not len(rows):
        return plan
    copies = rows.repeat_interleave(search.candidates)
    steps = min(search.window + search.longest, sea.EPISODE_STEPS - stop)
    ahead = plan.actions[stop : stop + steps][:, copies]
    changes = _draw(ahead, next_death[copies] - stop, victim[copies], search, generator)
    tried = play_out(now.select(copies), changes, policy, cfg, sea.EPISODE_STEPS - stop)
    scores = _score(tried.deaths).view(len(rows), search.candidates)
    best, which = scores.max(1)
    better = best > _score(plan.deaths[rows])
    into = rows[better]
    winners = (torch.arange(len(rows), device=rows.device) * search.candidates + which)[better]
    plan.actions[stop:, into] = tried.actions[:, winners]
    plan.deaths[into] = tried.deaths[winners]
    return plan


def _score(deaths: Tensor) -> Tensor:
    """[N] who lives counts most; of those who die, the later the better."""
    lived = torch.where(deaths < 0, sea.EPISODE_STEPS, deaths)
    return (deaths < 0).sum(1) * (sea.EPISODE_STEPS * deaths.shape[1]) + lived.sum(1)


def _draw(ahead: Tensor, death: Tensor, victim: Tensor, search: Search, generator: torch.Generator) -> Changes:
    """Random changes of the actions `ahead` [S, N, F], each beginning before its row's next `death` [N] (steps on)."""
    steps, rows, fish = ahead.shape

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, device=ahead.device)

    first = (uniform(rows) * death).long()
    until = first + 1 + (uniform(rows) * search.longest).long()
    kind = uniform(rows)
    one = torch.where(kind < ALONE, victim, (uniform(rows) * fish).long())
    slot = torch.arange(fish, device=ahead.device)
    concerned = torch.where((kind < ANOTHER)[:, None], slot == one[:, None], uniform(rows, fish) < CROWD)  # [N, F]
    wanted = (uniform(rows, fish) * sea.ACTION_COUNT).to(torch.int8)
    step = torch.arange(steps, device=ahead.device)[:, None]
    during = (step >= first) & (step < until)  # [S, N]
    return Changes(torch.where(during[..., None] & concerned, wanted, ahead), until)
