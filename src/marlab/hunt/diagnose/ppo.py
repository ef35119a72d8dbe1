"""Diagnosis of the PPO baseline: does it reach what a team can reach, in every seat, and at what cost?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marlab.hunt.diagnose.parts import Check, Picture, Section, Table, save_picture
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import Game
from marlab.hunt.players.episodes import REWARD, episode_report, team_optimum, value_error
from marlab.hunt.players.policy import Policy, Team
from marlab.hunt.players.published import OPTIMUM, PPO_END, PPO_HOURS, PPO_ITERATIONS, PPO_START
from marlab.hunt.players.rollout import play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role, parse_seats
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.network import Agents, load_agents
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.report.curves import column, seed_columns
from marlab.lab.report.figures import Curve, bars, curves, reference_lines
from marlab.lab.report.style import legend, legends, panels
from marlab.lab.runs.files import read_table
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.rng import Rngs
from marlab.lab.stats import Measured

ORIGINAL_GAME = GameConfig()
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

    @property
    def seats(self) -> tuple[int, ...]:
        return self.agents.seats

    @property
    def alone(self) -> bool:
        """All seats learned."""
        return len(self.seats) == self.config.game.players

    def policy(self, game: Game, seed: int) -> Policy:
        """The learned players in their seats, and the rule-based ones in theirs."""
        learned = self.agents.policy(game, seed)
        if self.alone:
            return learned
        others = RulePlayers(game, parse_seats(self.config.agent_roles, game.players)[1])
        return Team(game, [others, learned], [int(s in self.seats) for s in range(game.players)])

    def game(self) -> Game:
        """The game in its own, selfish rewards, on obstacle maps that training did not see."""
        return make_game(self.config.game, Rngs(0).torch("evaluation maps"))


def open_ppo_run(path: Path, name: str) -> PPORun:
    """Load everything that a diagnosis needs."""
    stored = read_table(path / "config.json", UserError)
    config = from_dict(PPOTrainConfig, stored, f"{path / 'config.json'}")
    metrics = read_metrics(path / "metrics.jsonl")
    if not metrics:
        raise UserError(f"{path} has no metrics to diagnose: its metrics.jsonl is missing or empty.")
    return PPORun(name, path, config, load_agents(path), metrics)


def diagnose_ppo(run: PPORun, gates: Gates, episodes: int) -> Section:
    """Fresh episodes of every seed, judged against the team optimum or the best rule-based reply."""
    config, game = run.config, run.game()
    reports = {}
    for seed in run.agents.seeds:
        generator = Rngs(seed).torch("diagnosis")
        reports[seed] = episode_report(config.game, play(game, run.policy(game, seed), episodes, generator))
    section = Section(f"PPO {run.name} ({config.networks} networks, {len(reports)} seeds)")
    section.figures = {"seeds": reports}
    seats = np.array([[p["value"] for p in r["reward_player"]] for r in reports.values()])  # [S, n]
    section.tables.append(_reports(reports))
    if run.alone:
        section.checks = _self_play_checks(run, seats, gates)
    else:
        section.checks = [_reply_check(run, game, seats, gates, episodes, section)]
    ratio = value_ratio(run)
    if ratio is not None and len(run.seats) > 1:
        section.checks.append(
            Check("PPO", "value error, largest over smallest seat", ratio, gates.value_ratio, "at most", run=run.name)
        )
    if len(reports) < WANTED_SEEDS:
        section.remarks.append(f"{len(reports)} of {WANTED_SEEDS} seeds: what one training gives may be luck.")
    section.tables += [_progress(run), _timing(run)]
    return section


def _self_play_checks(run: PPORun, seats: np.ndarray, gates: Gates) -> list[Check]:
    best = team_optimum(run.config.game)
    spread = float((seats.max(1) - seats.min(1)).mean())
    original = PPO_END if run.config.game == ORIGINAL_GAME else None
    wide = gates.seat_spread * best / OPTIMUM
    return [
        Check("PPO", "mean reward", float(seats.mean()), gates.reward_share * best, "at least", original, run=run.name),
        Check("PPO", "best minus worst seat, mean over seeds", spread, wide, "at most", run=run.name),
    ]


def _reply_check(run: PPORun, game: Game, seats: np.ndarray, gates: Gates, episodes: int, section: Section) -> Check:
    """The learners' reward beside what rule-based players earn in the same seats among the same others."""
    replies = rule_replies(run, game, episodes)
    reward = float(seats[:, list(run.seats)].mean())
    rows: list[tuple[Any, ...]] = [("PPO", reward), *replies.items()]
    section.tables.append(Table(f"Reward of the learning seats among {run.config.agent_roles}", ("who", "reward"),
                                rows))  # fmt: skip
    section.figures["replies"] = {"PPO": reward, **replies}
    gate = gates.reply_share * max(replies.values())
    return Check("PPO", "reward beside the best rule-based reply", reward, gate, "at least", run=run.name)


def rule_replies(run: PPORun, game: Game, episodes: int) -> dict[str, float]:
    """Mean reward in the learning seats if simple rules sat there."""
    roles = list(parse_seats(run.config.agent_roles, game.players)[1])
    rewards = {}
    for kind in (Kind.NS, Kind.NH, Kind.RAND):
        seated = [Role(kind) if s in run.seats else role for s, role in enumerate(roles)]
        played = play(game, RulePlayers(game, seated), episodes, Rngs(0).torch(f"reply {kind.name}"))
        rewards[kind.name] = float(played.reward[:, list(run.seats)].mean())
    return rewards


def value_ratio(run: PPORun) -> float | None:
    """Largest over smallest value error of the learning seats at the end of training."""
    last = run.metrics[-max(1, round(LAST_SHARE * len(run.metrics))) :]
    means = []
    for seat in run.seats:
        values = [row[k] for row in last if isinstance(row.get(k := value_error(seat)), float)]
        if not values:
            return None
        means.append(float(np.mean(values)))
    return max(means) / max(min(means), 1e-12)


# --- tables ---------------------------------------------------------------------------------------------------------


def _reports(reports: dict[int, dict[str, Any]]) -> Table:
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
    hours = (run.metrics[-1]["time"] - run.metrics[0]["time"]) / 3600 if run.metrics else None
    rows: list[tuple[Any, ...]] = [
        ("mean reward at the start", rewards[0][1] if rewards else None, PPO_START),
        ("iteration of a mean reward of 2.5", enough, 1500),
        ("mean reward at the end", rewards[-1][1] if rewards else None, PPO_END),
        ("iterations", rewards[-1][0] if rewards else 0, PPO_ITERATIONS),
        ("hours", hours, PPO_HOURS),
    ]
    return Table("Training", ("", "ours", "original"), rows)


def _timing(run: PPORun) -> Table:
    names = ("time/rollout", "time/train", "time/world", "time/policy", "time/steps_per_second")
    rows: list[tuple[Any, ...]] = []
    for name in names:
        values = [float(r[name]) for r in run.metrics if isinstance(r.get(name), int | float)]
        if values:
            rows.append((name, float(np.median(values)), max(values)))
    return Table("Seconds per iteration (and game steps per second)", ("part", "median", "most"), rows)


# --- pictures -------------------------------------------------------------------------------------------------------


def draw_ppo(run: PPORun, section: Section, out: Path) -> None:
    """Draw the curves and list them in the section."""
    section.pictures += [_reward(run, out), _seats(run, section, out), _time(run, out)]
    if "replies" in section.figures:
        section.pictures.append(_replies(run, section, out))


def _curve(run: PPORun, name: str) -> Curve:
    """[S, T] one line per seed against iterations; an iteration without a finished episode is a gap."""
    steps = [row["step"] for row in run.metrics]
    return Curve(steps, seed_columns(run.metrics, run.agents.seeds, name))


def _reward(run: PPORun, out: Path) -> Picture:
    figure, (left, right) = panels(1, 2, size=(7.4, 4.8), title="Reward per player and episode")
    curves(left, {"mean of all players": _curve(run, REWARD)}, xlabel="iteration", ylabel="reward", title="team")
    lines = {"team optimum": team_optimum(run.config.game)}
    if run.config.game == GameConfig():
        lines |= {"gate": 2.5, "original, end": PPO_END}
    left.set_ylim(0, 1.05 * lines["team optimum"])
    reference_lines(left, lines)
    seats = range(run.config.game.players)
    players = {f"player {i + 1}": _curve(run, f"episode/reward_player_{i + 1}") for i in seats}
    curves(right, players, xlabel="iteration", ylabel="reward", title="every seat")
    legends(left, right)
    return save_picture(figure, out, f"reward-{run.name}.png", "Mean reward and reward of every seat")


def _seats(run: PPORun, section: Section, out: Path) -> Picture:
    reports = section.figures["seeds"]
    figure, (ax,) = panels(size=(11.0, 4.6), title="Fresh episodes: every seat, every seed")
    names = [f"player {i + 1}" for i in range(run.config.game.players)]
    series = {
        f"seed {seed}": [Measured(p["value"], p["low"], p["high"]) for p in report["reward_player"]]
        for seed, report in reports.items()
    }
    bars(ax, names, series, ylabel="reward per episode")
    legend(figure)
    return save_picture(figure, out, f"seats-{run.name}.png", "Reward of every seat with 95 % intervals")


def _time(run: PPORun, out: Path) -> Picture:
    figure, (ax,) = panels(size=(9.0, 4.4), title="Where the time goes")
    parts = {"game": "time/world", "choosing actions": "time/policy", "learning": "time/train"}
    steps = [row["step"] for row in run.metrics]
    lines = {name: Curve(steps, column(run.metrics, key)) for name, key in parts.items()}
    curves(ax, lines, xlabel="iteration", ylabel="seconds per iteration")
    ax.set_ylim(bottom=0)
    legend(figure)
    return save_picture(figure, out, f"time-{run.name}.png", "Seconds per iteration")


def _replies(run: PPORun, section: Section, out: Path) -> Picture:
    replies = section.figures["replies"]
    figure, (ax,) = panels(size=(7.5, 4.4), title=f"In the learning seats among {run.config.agent_roles}")
    bars(ax, list(replies), {"reward": list(replies.values())}, ylabel="reward per episode")
    return save_picture(figure, out, f"replies-{run.name}.png", "The learner beside rule-based players in its seat")
