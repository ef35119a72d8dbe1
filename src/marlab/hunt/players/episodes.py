"""What finished episodes say about their players: rewards with intervals, outcomes, seats, the share of the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.rollout import HARE, NONE, STAG, Episodes
from marlab.lab.runs.files import write_json
from marlab.lab.runs.run import Run
from marlab.lab.stats import mean_interval

REWARD = "episode/reward"
"""Metric: mean reward of all players over the episodes that ended, in units of the game."""
ENV_STEPS = "progress/env_steps"
"""Metric: game steps per seed so far."""
BETA = "plan/beta"
"""Metric: how sharply plans are followed."""
BEHAVIOUR_ENTROPY = "plan/behaviour_entropy"
"""Metric: mean entropy of what players act by, in nats."""
SCALED_SPREAD = "plan/scaled_spread"
"""Metric: highest minus lowest Q of a plan on the scale of all values of its trees."""
ONLINE_CROSS_ENTROPY, EXCESS = "moa/ce_online", "moa/excess"
"""Metrics: cross-entropy of predicting the others before learning from the step, and what of it is above the floor."""


def team_optimum(game: GameConfig) -> float:
    """The best mean reward per player that a team can reach when every prey can be reached in time."""
    n = game.players
    if game.rules == "snowdrift":
        return game.drifts * (game.drift_reward - game.drift_cost / n)
    stags = range(min(game.stags, n // 2) + 1)
    return max(k * game.stag_reward + min(game.hares, n - 2 * k) * game.hare_reward for k in stags) / n


def episode_report(game: GameConfig, episodes: Episodes, learners: Sequence[int] | None = None) -> dict[str, Any]:
    """Plain values: mean rewards of all players, of `learners` (seats) and of each, with 95 % intervals; the outcomes.

    Seats are compared (`seat_spread`, best minus worst) among the learners, who are all players by default.
    """
    reward = episodes.reward.cpu().double().numpy()  # [B, n]
    outcome, hunters = episodes.outcome.cpu(), episodes.hunters.cpu()
    players = [interval(reward[:, i]) for i in range(game.players)]
    seats = list(range(game.players)) if learners is None else list(learners)
    means = [players[i]["value"] for i in seats]
    mean = interval(reward.mean(1))
    stags = {f"stag_{k}": _share((outcome == STAG) & (hunters == k)) for k in range(2, game.players + 1)}
    return {
        "episodes": len(reward),
        "reward": mean,
        "reward_learners": interval(reward[:, seats].mean(1)),
        "optimum": team_optimum(game),
        "optimum_share": mean["value"] / team_optimum(game),
        "reward_player": players,
        "seat_spread": max(means) - min(means),
        "length": float(episodes.length.float().mean()),
        "outcomes": {"none": _share(outcome == NONE), "hare": _share(outcome == HARE), **stags},
    }


def over_seeds(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds with Student's 95 % intervals: what a training, not one trained agent, is worth."""
    seats = np.array([[p["value"] for p in r["reward_player"]] for r in reports])  # [S, n]
    return {
        "seeds": len(reports),
        "reward": interval(np.array([r["reward"]["value"] for r in reports])),
        "reward_learners": interval(np.array([r["reward_learners"]["value"] for r in reports])),
        "worst_seed": min(r["reward"]["value"] for r in reports),
        "reward_player": [interval(seats[:, i]) for i in range(seats.shape[1])],
        "seat_spread": interval(np.array([r["seat_spread"] for r in reports])),
        "length": float(np.mean([r["length"] for r in reports])),
        "outcomes": {k: float(np.mean([r["outcomes"][k] for r in reports])) for k in reports[0]["outcomes"]},
    }


class EpisodeSums:
    """Sums over the episodes that ended, for each of S seeds whose games lie side by side."""

    def __init__(self, seeds: int, players: int, device: torch.device) -> None:
        seats = [f"reward_player_{i + 1}" for i in range(players)]
        stags = [f"stag_{k}" for k in range(2, players + 1)]
        self.names, self.players = ["episodes", "length", *seats, "none", "hare", *stags], players
        self.sums = torch.zeros(seeds, len(self.names), dtype=torch.float64, device=device)

    def add(self, over: Tensor, t: Tensor, paid: Tensor, outcome: Tensor, hunters: Tensor) -> None:
        """Games [B] that are `over` after `t` [B] steps; by player [B, n] its pay, its outcome, and who shared that."""
        left_with = torch.where(outcome == STAG, hunters, outcome == HARE)  # [B, n] 0 none, 1 hare, k a stag of k
        kinds = torch.arange(self.players + 1, device=over.device)
        shares = (left_with.unsqueeze(2) == kinds).double().mean(1)  # [B, n + 1]
        ended = over.double().unsqueeze(1)
        columns = torch.cat([ended, t.double().unsqueeze(1), paid.double(), shares], 1) * ended
        self.sums += columns.unflatten(0, (len(self.sums), -1)).sum(1)

    def means(self) -> list[dict[str, float]]:
        """For every seed: episodes, length, reward (mean of all players), reward_player_i, and the shares of players
        who left with nothing (none), a hare, or a stag shared by k (stag_k); only `episodes` where none ended."""
        found = []
        for row in self.sums.tolist():
            episodes, *sums = row
            means = {name: value / episodes for name, value in zip(self.names[1:], sums)} if episodes else {}
            if means:
                means["reward"] = sum(means[f"reward_player_{i + 1}"] for i in range(self.players)) / self.players
            found.append({"episodes": episodes, **means})
        return found


def episode_metrics(stats: dict[str, float]) -> dict[str, float]:
    """Names of the record; without a finished episode only their number."""
    values = {"episode/count": stats["episodes"]}
    if not stats["episodes"]:
        return values
    values[REWARD] = stats["reward"]
    values["episode/length"] = stats["length"]
    for name, value in stats.items():
        if name.startswith("reward_player_"):
            values[f"episode/reward_player_{name.removeprefix('reward_player_')}"] = value
        elif name in ("none", "hare") or name.startswith("stag_"):
            values[f"outcome/{name}"] = value
    return values


def value_error(seat: int) -> str:
    """Metric: mean squared value error of a seat, in reward units squared."""
    return f"ppo/player_{seat + 1}/value_error"


def pair(observer: int, other: int) -> str:
    """Head of the metrics of one seat's model of another."""
    return f"moa/{observer + 1}->{other + 1}"


def seed_means(rows: list[dict[str, float]]) -> dict[str, float]:
    """Means over seeds of what every seed has."""
    shared = [name for name in rows[0] if all(name in row for row in rows)]
    return {name: sum(row[name] for row in rows) / len(rows) for name in shared}


def _share(which: torch.Tensor) -> float:
    return float(which.float().mean())


def interval(samples: np.ndarray) -> dict[str, Any]:
    """{"value", "low", "high"}; without an interval (one sample) the edges are None."""
    value, low, high = (float(x) for x in mean_interval(samples))
    return {"value": value, "low": None if np.isnan(low) else low, "high": None if np.isnan(high) else high}


MODES = ("sampled", "greedy")
RESULTS = ("reward", "reward_learners", "seat_spread")
"""What of an evaluation is kept as results of the run."""


def keep_evaluation(run: Run, evaluation: dict[str, Any]) -> dict[str, Any]:
    """Write fresh episodes, drawn ("sampled") and by best actions ("greedy"), to evaluation.json and to the results;
    where the time was too short there are none of the latter."""
    write_json(run.path / "evaluation.json", evaluation)
    for mode in (mode for mode in MODES if mode in evaluation):
        report = evaluation[mode]["over_seeds"]
        run.add_results({f"{name}_{mode}": report[name] for name in RESULTS})
        for name in ("reward", "reward_learners"):
            seeds = evaluation[mode]["seeds"].items()
            run.add_cases(f"{name}_{mode}", {seed: {"fresh episodes": found[name]["value"]} for seed, found in seeds})
    beside = evaluation["baseline"]
    run.add_results({"gain": {**beside["gain"], "note": f"learners' reward less that of {beside['rule']} players"}})
    return evaluation


def describe(evaluation: Mapping[str, Any]) -> str:
    """The evaluation as a short table."""
    lines = [f"{'':<10}{'seed':>6}{'reward':>9}{'learner':>9}  {'per player':<24}{'spread':>7}{'length':>8}  outcomes"]
    for mode in (mode for mode in MODES if mode in evaluation):
        for seed, report in evaluation[mode]["seeds"].items():
            players = " ".join(f"{p['value']:.2f}" for p in report["reward_player"])
            outcomes = " ".join(f"{k} {v:.2f}" for k, v in report["outcomes"].items())
            reward, learner = report["reward"]["value"], report["reward_learners"]["value"]
            head = f"{mode:<10}{seed:>6}{reward:>9.3f}{learner:>9.3f}  {players:<24}"
            lines.append(f"{head}{report['seat_spread']:>7.3f}{report['length']:>8.2f}  {outcomes}")
    return "\n".join(lines)
