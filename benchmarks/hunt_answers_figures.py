"""One figure for each question of `hunt_answers.py`, and its numbers as a table.

    python benchmarks/hunt_answers_figures.py --output-dir answers --images docs/images

A question whose trainings are not there yet is left out. Ends are means over the last tenth of a training, peaks are of
moving means of seven iterations; intervals are over training seeds. Games begin together, so that the quickest hunts
end first and the first iterations look better than they are: curves and peaks leave out the first SKIP.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.hunt.players.published import MCTS_END, OPTIMUM, RANDOM_REWARD
from marlab.lab.report.figures import Curve, bars, curves, moving_mean, reference_lines, scatter
from marlab.lab.report.style import legend, legends, panels, save
from marlab.lab.stats import Measured, mean_interval

SMOOTH = 7
SKIP = 6
"""Iterations of 12 steps: two whole episodes."""
LINES = {"random": RANDOM_REWARD, "original's end": MCTS_END, "team optimum": OPTIMUM}
BEST_RESPONSE = {"3NS": 2.96, "3NH": 1.00, "3RAND": 2.33, "NS+2NH": 5.00, "2NS+NH": 3.62, "NS+NH+RAND": 4.96,
                 "2NS+RAND": 3.60}  # fmt: skip
"""Exact best responses, of docs/record/hunt.md; with 3RAND a PPO player trained for it, with NS+NH+RAND the rule NS."""
Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output-dir", type=Path, default=Path("answers"))
    parser.add_argument("--images", type=Path, default=Path("docs/images"))
    a = parser.parse_args()
    for question, draw in FIGURES.items():
        found = {path.stem.split("_", 1)[1]: read(path) for path in sorted(a.output_dir.glob(f"{question}_*.json"))}
        if found:
            print(f"\n## {question}\n\n{draw(found, a.images / f'hunt_answers_{question}.png', a.output_dir)}")


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


# --- curves of trainings ------------------------------------------------------------------------------------------


def series(training: dict[str, Any], what: str) -> Floats:
    """[seeds, iterations] smoothed, without the first; what no episode ended in is filled from its neighbours."""
    table = np.array(training["curves"].get(what, []), dtype=float)[SKIP:].T
    return np.stack([moving_mean(row, SMOOTH) for row in table]) if table.size else np.empty((0, 0))


def end_of(training: dict[str, Any], what: str = "reward") -> Floats:
    """[seeds] the mean over the last tenth."""
    table = np.array(training["curves"][what], dtype=float)
    return np.asarray(np.nanmean(table[-max(3, len(table) // 10) :], 0))


def told(values: Floats) -> str:
    mean, half = interval(values)
    return f"{mean:.2f} ± {half:.2f}" if len(values) > 1 else f"{mean:.2f}"


def interval(values: Floats) -> tuple[float, float]:
    """Mean and half of its 95 % interval over seeds."""
    middle, low, high = (float(x) for x in mean_interval(np.asarray(values)))
    return middle, (high - low) / 2


def panel(ax: Any, found: dict[str, dict[str, Any]], names: dict[str, str], what: str, title: str) -> None:
    """What some trainings earned (or predicted) over time."""
    lines = {}
    for key, name in names.items():
        if key in found:
            y = series(found[key], what)
            if y.size and np.isfinite(y).any():
                lines[name] = Curve(np.arange(SKIP + 1, SKIP + 1 + y.shape[1]), y)
    label = {"reward": "mean reward per player", "excess": "excess cross-entropy [nats]"}.get(what, what)
    curves(ax, lines, xlabel="iteration", ylabel=label, title=title)
    if what == "reward":
        ax.set_ylim(0, 3.2)
        reference_lines(ax, LINES)


def table(found: dict[str, dict[str, Any]], names: dict[str, str]) -> str:
    lines = ["| training | peak | end | end over peak | excess at the end | seeds | iterations |", "|---" * 7 + "|"]
    for key, name in names.items():
        if key in found:
            one, reward = found[key], series(found[key], "reward")
            peak, end = np.nanmax(reward, 1), end_of(one)
            excess = told(end_of(one, "excess")) if _has(one, "excess") else ""
            cells = [name, told(peak), told(end), told(end / peak), excess, str(len(end)), str(one["iterations"])]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _has(one: dict[str, Any], what: str) -> bool:
    return bool(np.isfinite(np.array(one["curves"].get(what, [[np.nan]]), dtype=float)).any())


# --- the questions ------------------------------------------------------------------------------------------------


def losses(found: dict[str, dict[str, Any]], path: Path, folder: Path) -> str:
    """Three losses: what they predict, what codes hold, what can be read off them."""
    figure, [predicted, width, state, history] = panels(2, 2, size=(6.0, 4.0))
    kinds = ("recon", "moa", "joint")
    seeds = sorted({key.rsplit("_", 1)[1] for key in found})

    def gathered(source: str, loss: str, what: str) -> Floats:
        runs = [found[f"{source}_{loss}_{s}"] for s in seeds if f"{source}_{loss}_{s}" in found]
        return np.array([[row[what] for row in run["rows"]] for run in runs], dtype=float)

    def drawn(ax: Any, source: str, what: str, ylabel: str, title: str) -> None:
        lines = {}
        for loss in kinds:
            y = gathered(source, loss, what)
            if y.size:
                lines[loss] = Curve(np.arange(1, y.shape[1] + 1), y)
        curves(ax, lines, xlabel="epoch", ylabel=ylabel, title=title)

    drawn(predicted, "state", "moa/validation/ce", "cross-entropy [nats]", "Codes of the situation: predicting moves")
    drawn(width, "state", "vae/validation/kl", "KL [nats]", "How much a code holds")
    width.set_yscale("log")
    for ax, source in ((state, "state"), (history, "history")):
        lines = {}
        for loss in kinds:
            runs = [found[f"{source}_{loss}_{s}"] for s in seeds if f"{source}_{loss}_{s}" in found]
            if runs:
                times = [row["t"] for row in runs[0]["probe"]]
                lines[loss] = Curve(times, np.array([[row["code"]["balanced"] for row in r["probe"]] for r in runs]))
        runs = [found[key] for key in found if key.startswith(source)]
        if runs:
            times = [row["t"] for row in runs[0]["probe"]]
            lines["planes themselves"] = Curve(times, np.array([row["state"]["balanced"] for row in runs[0]["probe"]]))
        curves(ax, lines, xlabel="step of the episode", ylabel="type read off the code (balanced)",
               title=f"What codes of the {'situation' if source == 'state' else 'history'} tell")  # fmt: skip
        ax.set_ylim(0.45, 1.02)
    legend(figure)
    save(figure, path)
    lines_out = ["| codes of | loss | cross-entropy | top-1 | top-3 | KL | active units | own place rebuilt | "
                 "type at t = 0 | 2 | 4 | seeds |", "|---" * 12 + "|"]  # fmt: skip
    for source in ("state", "history"):
        for loss in kinds:
            runs = [found[f"{source}_{loss}_{s}"] for s in seeds if f"{source}_{loss}_{s}" in found]
            if not runs:
                continue
            last = {k: np.array([r["rows"][-1][k] for r in runs], dtype=float) for k in
                    ("moa/validation/ce", "moa/validation/top1", "moa/validation/top3", "vae/validation/kl",
                     "vae/validation/active_units", "vae/validation/recall/0")}  # fmt: skip
            probe = {row["t"]: row["code"]["balanced"] for row in runs[0]["probe"]}
            shown = [f"{v.mean():.3g}" for v in last.values()] + [
                f"{probe.get(t, float('nan')):.2f}" for t in (0, 2, 4)
            ]
            lines_out.append(f"| {source} | {loss} | {' | '.join(shown)} | {len(runs)} |")
    return "\n".join(lines_out)


def world(found: dict[str, dict[str, Any]], path: Path, folder: Path) -> str:
    """Trees and single steps in the game, in a structured and in a dense model of it; and planning alone."""
    words = {"true": "the game itself", "structured": "structured model", "dense": "dense model"}
    swapped = {
        key: read(folder / f"planning_{key}.json") for key in words if (folder / f"planning_{key}.json").exists()
    }
    kinds = [(short, title) for short, title in (("trees", "Trees in"), ("one-step", "One step ahead in"))
             if any(key.startswith(short) for key in found)]  # fmt: skip
    figure, axes = panels(1, len(kinds) + bool(swapped), size=(6.0, 4.8))
    names: dict[str, str] = {}
    for ax, (short, title) in zip(axes, kinds):
        mine = {f"{short}_{key}": word for key, word in words.items()}
        names |= {key: f"{title.lower()} {word}" for key, word in mine.items()}
        panel(ax, found, mine, "reward", f"{title} ...")
    if swapped:
        groups = list(next(iter(swapped.values())))
        values = {words[key]: [measured(np.array(one[g])) for g in groups] for key, one in swapped.items()}
        bars(axes[-1], groups, values, ylabel="mean reward", title="Trained in the game, planning in ...")
    legend(figure)
    save(figure, path)
    text = table(found, names)
    for key, one in swapped.items():
        text += f"\n\nplanning in {words[key]}: " + ", ".join(f"{g} {told(np.array(v))}" for g, v in one.items())
    for kind in ("structured", "dense"):
        file = folder / f"model_{kind}.json"
        if file.exists():
            kept = read(file)
            text += f"\n\n{kind}: one step {brief(kept['one_step'])}; five steps {brief(kept['drift'].get('5', {}))}"
    return text


def brief(metrics: dict[str, Any]) -> str:
    """The few figures of a world model that pictures of it show."""
    words = ("position_accuracy", "teleport", "vanish", "reward_mse", "obs_mse")
    flat = {k: v for k, v in metrics.items() if any(word in k for word in words) and isinstance(v, int | float | list)}
    return json.dumps(flat)[:600]


def buffer(found: dict[str, dict[str, Any]], path: Path, folder: Path) -> str:
    """Before and after; the mended one is the same training as today's of the next question but one."""
    if (folder / "fall_today.json").exists():
        found.setdefault("mended", read(folder / "fall_today.json"))
    names = {"mended": "all steps, all learn", "rows-after-exit": "rows after exit",
             "successes-of-player-1": "successes only, player 1 alone learns", "both": "both faults"}  # fmt: skip
    figure, [reward, excess] = panels(1, 2, size=(6.4, 4.6))
    panel(reward, found, names, "reward", "What they earn")
    panel(excess, found, names, "excess", "How wrong the models of others are")
    legend(figure)
    save(figure, path)
    return table(found, names)


def teams(found: dict[str, dict[str, Any]], path: Path, folder: Path) -> str:
    """The learner's reward at the end, per team, over the four seats."""
    names = {"hop": "HOP", "hopplus-mcts": "HOP+ with trees", "hopplus": "HOP+, one step"}
    groups = list(BEST_RESPONSE)
    shown: dict[str, list[Measured | float | None]] = {"best response": [*BEST_RESPONSE.values()]}
    there = [names[k] for k in names if k in found]
    lines = [f"| team | best response | {' | '.join(there)} | seats 1 to 4 (HOP+) |", "|---" * (3 + len(there)) + "|"]
    ends = {key: end_of(found[key], "learner").reshape(len(groups), 4) for key in names if key in found}
    for key, values in ends.items():
        shown[names[key]] = [measured(row) for row in values]
    figure, [ax] = panels(1, 1, size=(12.0, 4.8))
    bars(ax, groups, shown, ylabel="the learner's reward", title="One learner among three rule-based players")
    legend(figure)
    save(figure, path)
    for k, team in enumerate(groups):
        cells = [told(values[k]) for values in ends.values()]
        seats = next((ends[key][k] for key in ("hopplus-mcts", "hop") if key in ends), np.array([]))
        lines.append(f"| {team} | {BEST_RESPONSE[team]:.2f} | {' | '.join(cells)} | "
                     f"{' '.join(f'{x:.2f}' for x in seats)} |")  # fmt: skip
    return "\n".join(lines)


def measured(values: Floats) -> Measured:
    middle, half = interval(values)
    return Measured(middle, middle - half, middle + half)


FALL = {"original": "the original's habits", "today": "today's", "frozen-others": "models of others frozen",
        "frozen-prior": "prior frozen", "frozen-value": "value frozen", "frozen-all": "nothing learns"}  # fmt: skip
MENDED = {"original": "the original's habits", "mended-replay": "+ replay", "mended-slow-weights": "+ slow weights",
          "mended-scaled-beta": "+ scaled beta", "mended-full-q": "+ Q not shrunk",
          "mended-falling-rate": "+ falling rate", "mended-turned-boards": "+ turned boards"}  # fmt: skip


def fall(found: dict[str, dict[str, Any]], path: Path, folder: Path) -> str:
    figure, [frozen, mended] = panels(1, 2, size=(6.6, 5.0))
    panel(frozen, found, FALL, "reward", "One module frozen at a time")
    panel(mended, found, MENDED, "reward", "One habit mended at a time")
    legends(frozen, mended)
    save(figure, path)
    return table(found, FALL | MENDED)


def models(found: dict[str, dict[str, Any]], path: Path, folder: Path) -> str:
    """Habits and models of others crossed; the learned ones are those of the question before."""
    for habits in ("original", "today"):
        for ours, theirs in (("learned", habits), ("frozen", "frozen-others" if habits == "original" else "")):
            file = folder / f"fall_{theirs}.json"
            if theirs and file.exists():
                found.setdefault(f"{habits}_{ours}", read(file))
    words = {"learned": "learn from play", "frozen": "as pretrained", "spoilt": "spoilt by a double softmax",
             "random": "taken for random", "self": "taken for copies of itself"}  # fmt: skip
    figure, axes = panels(1, 3, size=(6.0, 4.8))
    names: dict[str, str] = {}
    for ax, habits, title in zip(axes, ("original", "today"), ("The original's habits", "Today's habits")):
        mine = {f"{habits}_{key}": word for key, word in words.items()}
        names |= {key: f"{title.lower()}: others {word}" for key, word in mine.items()}
        panel(ax, found, mine, "reward", title)
    points = {}
    for habits in ("original", "today"):
        keys = [k for k in found if k.startswith(habits) and _has(found[k], "excess")]
        x = np.concatenate([end_of(found[k], "excess") for k in keys]) if keys else np.array([])
        y = np.concatenate([end_of(found[k]) for k in keys]) if keys else np.array([])
        points[f"{habits} habits"] = (x, y)
    scatter(axes[2], points, xlabel="excess cross-entropy at the end [nats]", ylabel="reward at the end",
            title="Bad models, bad reward?")  # fmt: skip
    axes[2].set_ylim(0, 3.2)
    legends(*axes)
    save(figure, path)
    return table(found, names)


FIGURES: dict[str, Callable[[dict[str, dict[str, Any]], Path, Path], str]] = {
    "losses": losses, "world": world, "buffer": buffer, "teams": teams, "fall": fall, "models": models,
}  # fmt: skip

if __name__ == "__main__":
    main()
