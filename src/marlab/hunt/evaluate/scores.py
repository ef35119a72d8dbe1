"""From streams of episodes to scores: what an agent earns in a scenario, how fast it gets there, how sure that is.

Intervals are 95 % bootstrap intervals over runs; agents of several training seeds are resampled seed by seed first,
so that the interval speaks about the training and not about one lucky network. All agents play the same starts in the
same run, so differences are resampled in pairs. Letters: R runs, E episodes, K episode numbers, M resamples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.hunt.evaluate.play import SeatingPlan, Stream
from marlab.hunt.players.rollout import HARE, NONE, STAG
from marlab.lab.errors import UserError
from marlab.lab.stats import Measured, grouped_interval, grouped_resamples, percentiles

Floats = NDArray[np.float64]
SMOOTH = 5
"""Episodes in the moving mean that decides when an agent has adapted."""
ADAPTED = 0.9


@dataclass(frozen=True)
class Score:
    """An agent in a scenario."""

    agent: str
    scenario: str
    per_run: Floats = field(repr=False)  # [R] mean focal reward of the episodes that ended in the last steps
    seeds: NDArray[np.int64] = field(repr=False)  # [R] training seed of each run
    by_episode: Floats = field(repr=False)  # [K] mean focal reward of the first, second, ... episode
    by_steps: tuple[Floats, Floats] = field(repr=False)  # steps at the end of each tenth of the run, mean reward in it
    episodes: int  # that ended in all runs
    length: float  # mean length of the scored episodes
    outcomes: dict[str, float]  # shares of focal players: none, hare, stag_k

    @property
    def mean(self) -> float:
        return float(self.per_run.mean())

    def measured(self) -> Measured:
        """The score with its interval."""
        return grouped_interval(self.per_run, self.seeds)

    @property
    def by_seed(self) -> dict[int, float]:
        return {int(s): float(self.per_run[self.seeds == s].mean()) for s in np.unique(self.seeds)}

    @property
    def episodes_to_adapt(self) -> int | None:
        """Episodes until the moving mean first reached 90 % of the score; None if it did not, or nothing is earned."""
        if self.mean <= 0 or len(self.by_episode) < SMOOTH:
            return None
        means = np.convolve(self.by_episode, np.ones(SMOOTH) / SMOOTH, "valid")
        reached = np.flatnonzero(means >= ADAPTED * self.mean)
        return int(reached[0]) + 1 if len(reached) else None

    def to_dict(self) -> dict[str, Any]:
        score = self.measured()
        return {
            "agent": self.agent, "scenario": self.scenario, "score": score.value, "low": score.low, "high": score.high,
            "by_seed": {str(k): v for k, v in self.by_seed.items()}, "episodes_to_90": self.episodes_to_adapt,
            "episodes": self.episodes, "length": self.length, "outcomes": self.outcomes,
            "per_run": self.per_run.tolist(), "by_episode": self.by_episode.tolist(),
            "by_steps": {"steps": self.by_steps[0].tolist(), "reward": self.by_steps[1].tolist()},
            "seeds": self.seeds.tolist(),
        }  # fmt: skip

    @staticmethod
    def from_dict(stored: Any) -> Score:
        """The score behind a `to_dict`."""
        try:
            per_run, seeds, by_episode = (np.array(stored[name]) for name in ("per_run", "seeds", "by_episode"))
            steps, reward = (np.array(stored["by_steps"][name]) for name in ("steps", "reward"))
            rest = {name: stored[name] for name in ("agent", "scenario", "episodes", "length", "outcomes")}
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"What was stored is not a score ({error}); remove it to measure it again.") from None
        return Score(per_run=per_run, seeds=seeds, by_episode=by_episode, by_steps=(steps, reward), **rest)


def scores_of(plan: SeatingPlan, stream: Stream, steps: int, window: int) -> list[Score]:
    """One score per cell of a plan; episodes that ended in the last `window` of `steps` steps are scored."""
    focal = plan.focal.cpu().numpy()
    seats = focal[stream.game.numpy()]  # [E, n]
    reward = (stream.reward.double().numpy() * seats).sum(1) / seats.sum(1)  # [E]
    cell = stream.game.numpy() // plan.runs
    return [
        _score(plan, stream, c, np.flatnonzero(cell == c), reward, seats, steps, window) for c in range(len(plan.cells))
    ]


def _score(
    plan: SeatingPlan, stream: Stream, c: int, rows: NDArray[np.int64], reward: Floats, seats: NDArray[np.bool_],
    steps: int, window: int,
) -> Score:  # fmt: skip
    agent, scenario = plan.cells[c]
    run, number, end = (x.numpy()[rows] for x in (plan.run.cpu()[stream.game], stream.episode, stream.end))
    paid = reward[rows]
    late = end > steps - window
    count = np.bincount(run[late], minlength=plan.runs)
    per_run = np.bincount(run[late], paid[late], minlength=plan.runs) / np.maximum(count, 1)
    played = np.bincount(run, minlength=plan.runs)
    first = number < played.min()  # every run has these episodes, so the curve is always about the same runs
    by_episode = np.bincount(number[first], paid[first]) / plan.runs
    tenth = np.minimum((end - 1) * 10 // steps, 9)
    in_tenth = np.bincount(tenth, minlength=10)
    with np.errstate(invalid="ignore"):
        by_steps = np.bincount(tenth, paid, minlength=10) / np.where(in_tenth > 0, in_tenth, np.nan)
    filled = np.isfinite(by_steps)
    edges = np.arange(1, 11) * steps / 10
    chosen = rows[late]
    focal = seats[chosen]
    outcome, hunters = stream.outcome.numpy()[chosen][focal], stream.hunters.numpy()[chosen][focal]
    shares = {"none": outcome == NONE, "hare": outcome == HARE}
    shares |= {f"stag_{k}": (outcome == STAG) & (hunters == k) for k in range(2, seats.shape[1] + 1)}
    seeds = plan.seed.cpu().numpy()[c * plan.runs : (c + 1) * plan.runs]
    return Score(
        agent.name, scenario.name, per_run, seeds, by_episode, (edges[filled], by_steps[filled]), len(rows),
        float(stream.length.numpy()[chosen].mean()), {name: float(which.mean()) for name, which in shares.items()},
    )  # fmt: skip


# --- comparisons ---------------------------------------------------------------------------------------------------


def difference(score: Score, other: Score) -> Measured:
    """Paired difference of two agents on the same starts; training seeds are resampled independently."""
    if (score.seeds == other.seeds).all():
        return grouped_interval(score.per_run - other.per_run, score.seeds)
    mine, theirs = (s.per_run[grouped_resamples(s.seeds)].mean(1) for s in (score, other))
    return percentiles(score.mean - other.mean, mine - theirs)


def normalised(score: Score, random: Score, reference: Score) -> Measured | None:
    """(R - R_random) / (R_ref - R_random), all three resampled together; None where the two ends are the same."""
    width = reference.mean - random.mean
    if not width > 1e-6:
        return None
    index = grouped_resamples(score.seeds)
    mine, base, top = (s.per_run[index].mean(1) for s in (score, random, reference))
    with np.errstate(divide="ignore", invalid="ignore"):
        values = (mine - base) / (top - base)
    values = values[np.isfinite(values)]  # a resample in which the two ends are the same says nothing
    return percentiles((score.mean - random.mean) / width, values)
