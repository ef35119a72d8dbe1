"""Diagnosis of the PPO baseline: does it reach what a team can reach, in every seat, and at what cost?

What its own evaluation on fresh episodes found is judged, against the team optimum or the best rule-based reply.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marlab.hunt.diagnose.checks import Check, Section, Table, run_pictures, save_picture
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import Game
from marlab.hunt.players.episodes import REWARD, team_optimum, value_error
from marlab.hunt.players.policy import Policy, Team
from marlab.hunt.players.published import OPTIMUM, PPO_END, PPO_HOURS, PPO_ITERATIONS, PPO_START
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import parse_seats
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.network import Agents, load_agents
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.report.figures import bars
from marlab.lab.report.style import legend, panels
from marlab.lab.runs.files import read_table, trusting
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.stats import Measured

LAST_SHARE = 0.1
"""Part of the training, at its end, over which value errors are taken."""
WANTED_SEEDS = 5


@dataclass(frozen=True)
class PPORun:
    """A run of `hunt train --variant ppo`, opened."""

    name: str
    path: Path
    config: PPOTrainConfig
    agents: Agents
    metrics: list[dict[str, Any]]
    evaluation: dict[str, Any]

    def policy(self, game: Game, seed: int) -> Policy:
        """The learned players in their seats, and the rule-based ones in theirs."""
        learned, seats = self.agents.policy(game, seed), self.agents.seats
        if len(seats) == game.players:
            return learned
        others = RulePlayers(game, parse_seats(self.config.agent_roles, game.players)[1])
        return Team(game, [others, learned], [int(s in seats) for s in range(game.players)])


def open_ppo_run(path: Path, name: str) -> PPORun:
    """Load everything that a diagnosis needs."""
    stored = read_table(path / "config.json", UserError)
    config = from_dict(PPOTrainConfig, stored, f"{path / 'config.json'}")
    metrics = read_metrics(path / "metrics.jsonl")
    if not metrics:
        raise UserError(f"{path} has no metrics to diagnose: its metrics.jsonl is missing or empty.")
    evaluation = read_table(path / "evaluation.json", UserError)
    with trusting(f"{path / 'evaluation.json'} is not an evaluation"):
        [[p["value"] for p in report["reward_player"]] for report in evaluation["sampled"]["seeds"].values()]
        float(evaluation["baseline"]["reward"]["value"])
    return PPORun(name, path, config, load_agents(path), metrics, evaluation)


def diagnose_ppo(run: PPORun, gates: Gates, out: Path | None) -> Section:
    """The fresh episodes of every seed, judged; pictures go to `out`."""
    game, learned = run.config.game, run.agents.seats
    reports: dict[str, Any] = run.evaluation["sampled"]["seeds"]
    section = Section(f"PPO {run.name} ({run.config.networks} networks, {len(reports)} seeds)")
    section.figures = {"seeds": reports}
    seats = np.array([[p["value"] for p in r["reward_player"]] for r in reports.values()])  # [S, n]
    if len(learned) == game.players:
        best = team_optimum(game)
        spread, wide = float((seats.max(1) - seats.min(1)).mean()), gates.seat_spread * best / OPTIMUM
        original = PPO_END if game == GameConfig() else None
        enough = gates.reward_share * best
        section.checks = [
            Check("PPO", "mean reward", float(seats.mean()), enough, "at least", original, run=run.name),
            Check("PPO", "best minus worst seat, mean over seeds", spread, wide, "at most", run=run.name),
        ]
    else:
        beside, reward = run.evaluation["baseline"], float(seats[:, list(learned)].mean())
        level = beside["reward"]["value"]
        section.figures["replies"] = {"PPO": reward, beside["rule"]: level}
        rows = [*section.figures["replies"].items()]
        who = f"Reward of the learning seats among {run.config.agent_roles}"
        section.tables.append(Table(who, ("who", "reward"), rows))
        name = "reward beside the best rule-based reply"
        section.checks = [Check("PPO", name, reward, gates.reply_share * level, "at least", run=run.name)]
    ratio = value_ratio(run)
    if ratio is not None and len(learned) > 1:
        name = "value error, largest over smallest seat"
        section.checks.append(Check("PPO", name, ratio, gates.value_ratio, "at most", run=run.name))
    if len(reports) < WANTED_SEEDS:
        section.remarks.append(f"{len(reports)} of {WANTED_SEEDS} seeds: what one training gives may be luck.")
    section.tables += [_reports(reports), _progress(run), _timing(run)]
    if out is not None:
        captions = {"reward": "Mean reward, reward of every seat, and what players left with"}
        section.pictures = run_pictures(run.path, out, run.name, captions)
        figure, (ax,) = panels(size=(11.0, 4.6), title="Fresh episodes: every seat, every seed")
        series = {
            f"seed {seed}": [Measured(p["value"], p["low"], p["high"]) for p in report["reward_player"]]
            for seed, report in reports.items()
        }
        bars(ax, [f"player {i + 1}" for i in range(game.players)], series, ylabel="reward per episode")
        legend(figure)
        caption = "Reward of every seat with 95 % intervals"
        section.pictures.append(save_picture(figure, out, f"seats-{run.name}.png", caption))
    return section


def value_ratio(run: PPORun) -> float | None:
    """Largest over smallest value error of the learning seats at the end of training."""
    last = run.metrics[-max(1, round(LAST_SHARE * len(run.metrics))) :]
    means = []
    for seat in run.agents.seats:
        values = [row[k] for row in last if isinstance(row.get(k := value_error(seat)), float)]
        if not values:
            return None
        means.append(float(np.mean(values)))
    return max(means) / max(min(means), 1e-12)


def _reports(reports: dict[str, Any]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for seed, r in reports.items():
        seats = " ".join(f"{p['value']:.2f}" for p in r["reward_player"])
        outcomes = ", ".join(f"{k.replace('_', ' by ')} {v:.2f}" for k, v in r["outcomes"].items())
        rows.append((seed, r["reward"]["value"], r["optimum_share"], seats, r["seat_spread"], r["length"], outcomes))
    header = ("seed", "mean reward", "of the optimum", "seats", "best - worst", "length", "left with")
    return Table("Fresh episodes", header, rows)


def _progress(run: PPORun) -> Table:
    rewards = [(r["step"], float(r[REWARD])) for r in run.metrics if isinstance(r.get(REWARD), float)]
    enough = next((step for step, value in rewards if value >= 2.5), None)
    hours = (run.metrics[-1]["time"] - run.metrics[0]["time"]) / 3600
    (_, start), (last, end) = (rewards[0], rewards[-1]) if rewards else ((0, None), (0, None))
    rows: list[tuple[Any, ...]] = [
        ("mean reward at the start", start, PPO_START),
        ("iteration of a mean reward of 2.5", enough, 1500),
        ("mean reward at the end", end, PPO_END),
        ("iterations", last, PPO_ITERATIONS),
        ("hours", hours, PPO_HOURS),
    ]
    return Table("Training", ("", "ours", "original"), rows)


def _timing(run: PPORun) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name in ("time/rollout", "time/train", "time/world", "time/policy", "time/steps_per_second"):
        values = [float(r[name]) for r in run.metrics if isinstance(r.get(name), int | float)]
        if values:
            rows.append((name, float(np.median(values)), max(values)))
    return Table("Seconds per iteration (and game steps per second)", ("part", "median", "most"), rows)
