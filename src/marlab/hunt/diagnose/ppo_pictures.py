"""Pictures of a PPO run: reward over training beside the lab note's, every seat, and where the time goes."""

from __future__ import annotations

from pathlib import Path

from marlab.hunt.diagnose.draw import explain, save_picture
from marlab.hunt.diagnose.parts import Picture, Section
from marlab.hunt.diagnose.ppo import PPORun
from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import REWARD, team_optimum
from marlab.hunt.players.published import PPO_END
from marlab.lab.measured import Measured
from marlab.lab.report.curves import column, seed_columns
from marlab.lab.report.figures import Curve, bars, curves, reference_lines
from marlab.lab.report.style import legend, panels


def draw_ppo(run: PPORun, section: Section, out: Path) -> None:
    """Draw the curves and note them in the section."""
    section.pictures += [_reward(run, out), _seats(run, section, out), _time(run, out)]
    if "replies" in section.figures:
        section.pictures.append(_replies(run, section, out))


def _curve(run: PPORun, name: str) -> Curve:
    """[S, T] one line per seed against iterations; an iteration without a finished episode is a gap."""
    steps = [row["step"] for row in run.metrics]
    return Curve(steps, seed_columns(run.metrics, run.agents.seeds, name))


def _reward(run: PPORun, out: Path) -> Picture:
    figure, (left, right) = panels(1, 2, size=(7.4, 4.8), title="D16, D19. Reward per player and episode")
    curves(left, {"mean of all players": _curve(run, REWARD)}, xlabel="iteration", ylabel="reward", title="team")
    lines = {"team optimum": team_optimum(run.config.game)}
    if run.config.game == GameConfig():
        lines |= {"gate": 2.5, "lab note, end": PPO_END}
    left.set_ylim(0, 1.05 * lines["team optimum"])
    reference_lines(left, lines)
    seats = range(run.config.game.players)
    players = {f"player {i + 1}": _curve(run, f"episode/reward_player_{i + 1}") for i in seats}
    curves(right, players, xlabel="iteration", ylabel="reward", title="every seat")
    explain(left, right)
    return save_picture(figure, out, f"D16-reward-{run.name}.png", "D16, D19. Mean reward and reward of every seat")


def _seats(run: PPORun, section: Section, out: Path) -> Picture:
    reports = section.figures["seeds"]
    figure, (ax,) = panels(size=(11.0, 4.6), title="D19. Fresh episodes: every seat, every seed")
    names = [f"player {i + 1}" for i in range(run.config.game.players)]
    series = {
        f"seed {seed}": [Measured(p["value"], p["low"], p["high"]) for p in report["reward_player"]]
        for seed, report in reports.items()
    }
    bars(ax, names, series, ylabel="reward per episode")
    legend(figure)
    return save_picture(figure, out, f"D19-seats-{run.name}.png", "D19. Reward of every seat with 95 % intervals")


def _time(run: PPORun, out: Path) -> Picture:
    figure, (ax,) = panels(size=(9.0, 4.4), title="D21. Where the time goes")
    parts = {"game": "time/world", "choosing actions": "time/policy", "learning": "time/train"}
    steps = [row["step"] for row in run.metrics]
    lines = {name: Curve(steps, column(run.metrics, key)) for name, key in parts.items()}
    curves(ax, lines, xlabel="iteration", ylabel="seconds per iteration")
    ax.set_ylim(bottom=0)
    legend(figure)
    return save_picture(figure, out, f"D21-time-{run.name}.png", "D21. Seconds per iteration")


def _replies(run: PPORun, section: Section, out: Path) -> Picture:
    replies = section.figures["replies"]
    figure, (ax,) = panels(size=(7.5, 4.4), title=f"D20. In the learning seats among {run.config.agent_roles}")
    bars(ax, list(replies), {"reward": list(replies.values())}, ylabel="reward per episode")
    return save_picture(
        figure, out, f"D20-replies-{run.name}.png", "D20. The learner beside rule-based players in its seat"
    )
