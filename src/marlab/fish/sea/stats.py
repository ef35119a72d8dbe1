"""Episode statistics of a training world, accumulated on its device and read back once per iteration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.rewards import RewardTerms

HEADING_BINS = round(360 / sea.HEADING_BIN)
SPEED_BINS = 16
"""Step-one deaths are binned by the predator's velocity; the last speed bin is open."""

MAX_STAGES = 63
"""Hard-start stages that can be told apart in the statistics."""
REWARDS = tuple(f"reward_{name}" for name in RewardTerms._fields)
STEP_ONE = ("step_one_deaths", "step_one_fish")
RESETS = ("resets", "override_hits", "starts_reused")
ENDS = (
    "episodes",
    "survivors",
    "survival",  # share of the episode's fish
    "length",
    "lifetime",  # mean over fish of the share of steps they lived
    "return",  # mean over fish of the summed reward
    "first_death",
    "first_death_episodes",
    "forced_resets",
    *(f"survival_at_{horizon}" for horizon in sea.HORIZONS),
    *(f"episodes_at_{horizon}" for horizon in sea.HORIZONS),
)


MEANS = (
    "survival_rate", "final_num_alive", "avg_survival_rate", "episode_length", "episode_return",
    *(f"survival_at_{horizon}" for horizon in sea.HORIZONS),
)  # fmt: skip
"""Statistics that are means over episodes."""


class EpisodeStats:
    """Sums and histograms since the last `pop`, plus each running episode's return.

    Sums are kept per arena ([rows, B]) and added up only when read: a step then needs no reduction over arenas.
    """

    def __init__(self, arenas: int, device: torch.device | str) -> None:
        def rows(names: tuple[str, ...]) -> Tensor:
            return torch.zeros(len(names), arenas, dtype=torch.float64, device=device)

        self.rewards, self.step_one, self.resets, self.ends = rows(REWARDS), rows(STEP_ONE), rows(RESETS), rows(ENDS)
        self.first_death_steps = torch.zeros(sea.EPISODE_STEPS + 1, dtype=torch.int64, device=device)  # 0 = nobody died
        self.step_one_bins = torch.zeros(HEADING_BINS * SPEED_BINS, dtype=torch.int64, device=device)
        self.stage_deaths = torch.zeros(
            MAX_STAGES + 1, dtype=torch.int64, device=device
        )  # at step one; 0 = ordinary start
        self.stage_fish = torch.zeros_like(self.stage_deaths)
        self.returns = torch.zeros(arenas, device=device)  # [B] mean over fish, of the episode under way

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name, for checkpoints."""
        return dict(vars(self))

    def record_step(self, state: SeaState, terms: RewardTerms, gain: Tensor) -> None:
        """Every step: reward terms and the running returns; arenas that were just reset bring zero rewards."""
        self.rewards += torch.stack([term.sum(1) for term in terms])
        self.returns += gain.sum(1) / state.exists.sum(1)

    def record_reset(self, reset: Tensor, overridden: Tensor, reused: Tensor) -> None:
        """Arenas replaced by a fresh start, those under an override, those whose start was used before; [B] bool."""
        self.resets += torch.stack((reset, overridden, reused))

    def record_step_one(self, state: SeaState, first: Tensor, stage: Tensor) -> None:
        """Arenas that have just played their first step (`first` [B] bool): deaths by predator velocity and `stage`."""
        deaths = (state.death_step == 1).sum(1) * first  # [B]
        fish = state.exists.sum(1) * first
        heading = torch.rad2deg(torch.atan2(state.predator_vy, state.predator_vx)) % 360.0
        speed = torch.hypot(state.predator_vx, state.predator_vy)
        column = (speed / sea.SPEED_BIN).to(torch.int64).clamp(max=SPEED_BINS - 1)
        row = (heading / sea.HEADING_BIN).to(torch.int64).clamp(max=HEADING_BINS - 1)
        _count(self.step_one_bins, row * SPEED_BINS + column, deaths, first)
        _count(self.stage_deaths, stage + 1, deaths, first)
        _count(self.stage_fish, stage + 1, fish, first)
        self.step_one += torch.stack((deaths, fish))

    def record_end(self, state: SeaState, ended: Tensor) -> None:
        """Episodes that end with this step (`ended` [B] bool)."""
        fish = state.exists.sum(1)  # [B]
        alive = state.alive.sum(1)
        dead = state.death_step > 0
        lived = torch.where(dead, state.death_step - 1, state.t[:, None]) * state.exists
        first = torch.where(dead, state.death_step, sea.EPISODE_STEPS + 1).amin(1)
        someone = first <= sea.EPISODE_STEPS
        over = alive == 0
        reached = [over | (state.t >= horizon) for horizon in sea.HORIZONS]
        survivors = [(state.exists & (~dead | (state.death_step > horizon))).sum(1) for horizon in sea.HORIZONS]
        rows = (
            torch.ones_like(first), alive, alive / fish, state.t, lived.sum(1) / (fish * state.t.clamp(min=1)),
            self.returns, first * someone, someone, ~over & (state.t < sea.EPISODE_STEPS),
            *(count / fish * there for count, there in zip(survivors, reached)), *reached,
        )  # fmt: skip
        self.ends += torch.stack([row.to(torch.float64) for row in rows]) * ended
        _count(self.first_death_steps, torch.where(someone, first, 0).to(torch.int64), ended.to(torch.int64), ended)
        self.returns.copy_(torch.where(ended, 0.0, self.returns))

    def pop(self) -> dict[str, Any]:
        """Read everything (one synchronisation) and start again. Means are None when nothing was counted.

        `first_death_*` count episodes in which somebody died; `step_one_bins` is [12, 16] counts by heading and speed;
        `*_by_stage` start with the ordinary starts, then stage 0, 1, ...
        """
        sums = torch.cat((self.rewards, self.step_one, self.resets, self.ends)).sum(1).tolist()
        values = dict(zip(REWARDS + STEP_ONE + RESETS + ENDS, sums))
        steps, bins = self.first_death_steps.tolist(), self.step_one_bins.reshape(HEADING_BINS, SPEED_BINS).tolist()
        stage_deaths, stage_fish = self.stage_deaths.tolist(), self.stage_fish.tolist()
        running = self.returns
        for tensor in self.tensors().values():
            if tensor is not running:
                tensor.zero_()

        def mean(name: str, over: str = "episodes") -> float | None:
            return values[name] / values[over] if values[over] else None

        stats: dict[str, Any] = {
            "episodes": int(values["episodes"]), "survival_rate": mean("survival"),
            "final_num_alive": mean("survivors"), "avg_survival_rate": mean("lifetime"),
            "episode_length": mean("length"), "episode_return": mean("return"),
            "first_death_step": mean("first_death", "first_death_episodes"),
            "first_death_p10": _quantile(steps, 0.1),
            "first_death_sample_size": int(values["first_death_episodes"]), "first_death_histogram": steps,
            "step_one_deaths": int(values["step_one_deaths"]), "step_one_fish": int(values["step_one_fish"]),
            "step_one_death_ratio": mean("step_one_deaths", "step_one_fish"), "step_one_bins": bins,
            "step_one_deaths_by_stage": stage_deaths, "step_one_fish_by_stage": stage_fish,
            "override_episodes": int(values["resets"]), "override_hits": int(values["override_hits"]),
            "override_ratio": mean("override_hits", "resets"), "forced_resets": int(values["forced_resets"]),
            "starts_reused": int(values["starts_reused"]),
        }  # fmt: skip
        for horizon in sea.HORIZONS:
            stats[f"survival_at_{horizon}"] = mean(f"survival_at_{horizon}", f"episodes_at_{horizon}")
        stats["reward_shares"] = _shares({name: values[f"reward_{name}"] for name in RewardTerms._fields})
        return stats


def _count(bins: Tensor, index: Tensor, amount: Tensor, where: Tensor) -> None:
    """bins[index] += amount for the arenas in `where`; the others (amount 0) are spread over all bins.

    Sent to one bin, their zeros would queue the GPU's atomic adds.
    """
    spread = torch.arange(len(index), device=index.device) % len(bins)
    bins.index_add_(0, torch.where(where, index, spread), amount)


def _quantile(counts: list[int], q: float) -> float | None:
    """Linear-interpolated quantile of the first-death steps; bin 0 (nobody died) is left out."""
    total = sum(counts[1:])
    if total == 0:
        return None
    place = q * (total - 1)
    below, above = _nth(counts, math.floor(place)), _nth(counts, math.ceil(place))
    return below + (above - below) * (place - math.floor(place))


def _nth(counts: list[int], n: int) -> int:
    """The n-th smallest step, counted from 0."""
    for step in range(1, len(counts)):
        n -= counts[step]
        if n < 0:
            return step
    raise IndexError("fewer deaths than asked for")


def _shares(sums: dict[str, float]) -> dict[str, float]:
    """Each reward term's part of the summed magnitudes; all zero before the first step."""
    whole = sum(abs(value) for value in sums.values())
    return {name: abs(value) / whole if whole else 0.0 for name, value in sums.items()}


def pooled(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Statistics of some iterations together, the newest last: means over all episodes, what else there is from it."""
    together = dict(several[-1])
    for name in MEANS:
        known = [(s[name], s["episodes"]) for s in several if s[name] is not None]
        if known:
            together[name] = sum(value * n for value, n in known) / sum(n for _, n in known)
    counts = [sum(column) for column in zip(*(s["first_death_histogram"] for s in several))]
    deaths = sum(counts[1:])
    together["episodes"] = sum(s["episodes"] for s in several)
    together |= {
        "first_death_histogram": counts, "first_death_p10": _quantile(counts, 0.1), "first_death_sample_size": deaths,
        "first_death_step": sum(step * n for step, n in enumerate(counts)) / deaths if deaths else None,
    }  # fmt: skip
    return together
