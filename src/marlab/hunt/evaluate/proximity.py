"""Scores in the field's words: best-response proximity, its interquartile mean, regret, zero-shot and adaptation.

The proximity of an agent in a scenario is what it earns as a share of what the best response to that team earns; it is
above 1 where the reference is a trained player who can be beaten. Intervals are stratified bootstraps: within every
scenario training seeds are resampled, then their runs. Letters: R runs, M resamples, S scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marlab.lab.stats import Measured, grouped_resamples, iqm, percentiles

Floats = NDArray[np.float64]
ADAPTED = 0.9
SMOOTH = 5
"""Episodes in the moving mean that decides when an agent has adapted."""


@dataclass(frozen=True)
class Played:
    """An agent in a scenario whose best response is known."""

    per_run: Floats  # [R] mean reward of the scored episodes
    seeds: NDArray[np.int64]  # [R] training seed of each run
    by_episode: Floats  # [K] mean reward of the first, second, ... episode
    reference: float  # what the best response earns

    @property
    def proximity(self) -> Floats:
        """[R] of every run."""
        return self.per_run / self.reference

    @property
    def regret(self) -> float:
        """What the best response earns more."""
        return self.reference - float(self.per_run.mean())

    @property
    def first(self) -> float:
        """The proximity of the first episode: zero-shot."""
        return float(self.by_episode[0]) / self.reference

    @property
    def episodes_to_adapt(self) -> int | None:
        """Episodes until a moving mean first reached 90 % of the best response; None if it never did."""
        size = min(SMOOTH, len(self.by_episode))
        means = np.convolve(self.by_episode, np.ones(size) / size, "valid")
        reached = np.flatnonzero(means >= ADAPTED * self.reference)
        return int(reached[0]) + 1 if len(reached) else None


@dataclass(frozen=True)
class Proximity:
    """An agent over all scenarios."""

    mean: Measured
    iqm: Measured
    worst: str  # the scenario with the largest regret
    regret: float  # there
    first: float  # mean proximity of first episodes


def summarise(played: Mapping[str, Played]) -> Proximity:
    """Over all scenarios, by name."""
    drawn = {name: one.proximity[grouped_resamples(one.seeds)].mean(1) for name, one in played.items()}  # [M] each
    table = np.stack(list(drawn.values()), 1)  # [M, S]
    means = np.array([float(one.proximity.mean()) for one in played.values()])
    middle = percentiles(float(iqm(means)), np.asarray(iqm(table, axis=1)))
    worst = max(played, key=lambda name: played[name].regret)
    return Proximity(
        percentiles(float(means.mean()), table.mean(1)),
        middle,
        worst,
        played[worst].regret,
        float(np.mean([one.first for one in played.values()])),
    )


def gap(one: Mapping[str, Played], other: Mapping[str, Played]) -> Measured:
    """Difference of the mean proximities over the scenarios that both played.

    Where both made as many runs these began alike, so it is run by run that they differ: pairs of training seeds are
    resampled, then the runs that both played in them. Otherwise each side is resampled by itself.
    """
    shared = [name for name in one if name in other]
    value = float(np.mean([one[n].proximity.mean() - other[n].proximity.mean() for n in shared]))
    if all(len(one[n].per_run) == len(other[n].per_run) for n in shared):
        drawn = [_paired(one[n], other[n]) for n in shared]
    else:
        drawn = [_apart(one[n], 0) - _apart(other[n], 17) for n in shared]
    return percentiles(value, np.mean(drawn, axis=0))


def _paired(one: Played, other: Played) -> Floats:
    """[M] resampled means of the differences of runs that began alike."""
    pairs = np.unique(np.stack([one.seeds, other.seeds]), axis=1, return_inverse=True)[1].ravel()
    return (one.proximity - other.proximity)[grouped_resamples(pairs)].mean(1)


def _apart(played: Played, shift: int) -> Floats:
    """[M] resampled means of one side, in an order of its own."""
    return played.proximity[np.roll(grouped_resamples(played.seeds), shift, 0)].mean(1)


HEADER = ["agent", "mean proximity", "IQM", "largest regret", "first episode", "episodes to 90 %"]


def proximity_rows(agents: Mapping[str, Mapping[str, Played]]) -> list[list[str]]:
    """A table of agents; the last column counts the scenarios in which 90 % was reached, and the median episode."""
    rows = []
    for agent, played in agents.items():
        found = summarise(played)
        episodes = [one.episodes_to_adapt for one in played.values()]
        reached = [e for e in episodes if e is not None]
        median = f", median {int(np.median(reached))}" if reached else ""
        rows.append([agent, _shown(found.mean), _shown(found.iqm), f"{found.regret:.2f} in {found.worst}",
                     f"{found.first:.2f}", f"{len(reached)} of {len(episodes)}{median}"])  # fmt: skip
    return rows


def _shown(value: Measured) -> str:
    return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
