"""What a collection contains: one line per world, a summary table, results for the run record, and a figure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.report import figures, style
from marlab.lab.stats import Measured, mean_interval

Row = Mapping[str, Any]


def summary_of(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The line of a world in worlds.jsonl, from the meta data of its log."""
    kept = ("type", "level", "tracked", "score", "decisions", "bankrupt", "exceptions")
    return {
        "world_id": meta["world_id"],
        "days": meta["days_played"],
        "complete": meta["days_played"] == meta["n_steps"],
        "n_processes": meta["n_processes"],
        "agents": [{name: agent[name] for name in kept} for agent in meta["agents"]],
        "recorder_failures": sum(meta["failures"].values()),
        "invalid_offers": meta["invalid_offers"],
        "unheard_offers": meta["unheard_offers"],
    }


def results_of(rows: Sequence[Row], planned: int, failed: Mapping[str, str]) -> dict[str, Any]:
    """Numbers for run.json."""
    decisions, sizes = decisions_by_type(rows), [row.get("bytes", np.nan) for row in rows]
    return {
        "worlds": len(rows),
        "worlds_planned": planned,
        "worlds_failed": len(failed),
        "days": sum(row["days"] for row in rows),
        "decisions": sum(decisions.values()),
        **{f"decisions_{name}": count for name, count in decisions.items()},
        "worlds_by_processes": {str(n): c for n, c in sorted(Counter(row["n_processes"] for row in rows).items())},
        "recorder_failures": sum(row["recorder_failures"] for row in rows),
        "unheard_offers": sum(row["unheard_offers"] for row in rows),
        "agent_exceptions": sum(agent["exceptions"] for row in rows for agent in row["agents"]),
        "log_kb_per_world": round(float(np.mean(sizes)) / 1000, 1) if rows else None,
        "cpu_s": round(sum(row.get("cpu_s", 0.0) for row in rows), 1),
    }


def decisions_by_type(rows: Sequence[Row]) -> dict[str, int]:
    """Recorded decisions of each tracked class, most first."""
    decisions: Counter[str] = Counter()
    for row in rows:
        for agent in row["agents"]:
            if agent["tracked"]:
                decisions[agent["type"]] += agent["decisions"]
    return dict(decisions.most_common())


def describe(rows: Sequence[Row], planned: int, failed: Mapping[str, str]) -> str:
    """The summary table of a collection."""
    days = [row["days"] for row in rows]
    if not rows:
        return f"0 of {planned} worlds, {len(failed)} failed"
    levels = Counter(row["n_processes"] for row in rows)
    mix = ", ".join(f"{count} of {n} levels" for n, count in sorted(levels.items()))
    lines = [
        f"{len(rows):,} of {planned:,} worlds, {sum(days):,} days ({min(days)} to {max(days)} a world), {mix}",
        f"{'agent':<34} {'seats':>6} {'decisions':>10} {'a day':>6} {'score':>7} {'bankrupt':>8} {'exceptions':>10}",
    ]
    for name, seats in sorted(_seats(rows).items(), key=lambda item: (-item[1]["decisions"], item[0])):
        scores, played = np.asarray(seats["scores"]), seats["days"]
        done = f"{'-':>10} {'-':>6}"
        if seats["tracked"]:
            done = f"{seats['decisions']:>10,} {seats['decisions'] / played:>6.1f}"
        lines.append(
            f"{name:<34} {len(scores):>6} {done} {scores.mean():>7.3f} {seats['bankrupt']:>8} {seats['exceptions']:>10}"
        )
    lines.append(f"decisions recorded: {sum(decisions_by_type(rows).values()):,}")
    for word in ("recorder_failures", "unheard_offers"):
        count = sum(row[word] for row in rows)
        lines.append(f"{word.replace('_', ' ')}: {count}{'' if count == 0 else ', see the meta data of the logs'}")
    if failed:
        lines.append(f"worlds failed: {len(failed)} (failures.jsonl); --resume plays them again")
        lines += [f"  {count} x {why}" for why, count in Counter(failed.values()).most_common(5)]
    return "\n".join(lines)


def _seats(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Everything about a class over all its factories; the tracked and the filling agents of a class stay apart."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        for agent in row["agents"]:
            name = agent["type"] + ("" if agent["tracked"] else " (filler)")
            counts = dict.fromkeys(("decisions", "days", "bankrupt", "exceptions"), 0)
            seats = found.setdefault(name, {"tracked": agent["tracked"], "scores": [], **counts})
            seats["scores"].append(agent["score"])
            seats["days"] += row["days"]
            for word in ("decisions", "bankrupt", "exceptions"):
                seats[word] += agent[word]
    return found


def draw(rows: Sequence[Row], path: Path) -> None:
    """Lengths of worlds by number of levels, decisions per class, scores by class and position."""
    figure, axes = style.panels(1, 3, size=(6.4, 4.6))
    lengths: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        lengths[f"{row['n_processes']} levels"].append(row["days"])
    figures.histogram(
        axes[0], dict(sorted(lengths.items())), bins=10, xlabel="days", ylabel="worlds", title="Worlds", stacked=True
    )
    style.legend(axes[0])
    decisions = decisions_by_type(rows)
    thousands = [count / 1000 for count in decisions.values()]
    names = list(map(_short, decisions))
    figures.bars(axes[1], names, {"": thousands}, ylabel="decisions [thousands]", title="Recorded decisions", digits=1)
    figures.bars(
        axes[2], names, _scores(rows, list(decisions)), ylabel="score [share of first balance]", title="Scores by level"
    )
    style.legend(axes[2])
    for ax in axes[1:]:
        ax.tick_params(axis="x", rotation=30)
    style.save(figure, path)


def _scores(rows: Sequence[Row], names: Sequence[str]) -> dict[str, list[Measured | None]]:
    """Mean scores with intervals of tracked classes at the first, a middle and the last level."""
    found: dict[str, dict[str, list[float]]] = {place: defaultdict(list) for place in ("first", "middle", "last")}
    for row in rows:
        for agent in row["agents"]:
            last = agent["level"] == row["n_processes"] - 1
            place = "first" if agent["level"] == 0 else "last" if last else "middle"
            if agent["tracked"]:
                found[place][agent["type"]].append(agent["score"])
    return {place: [_measured(scores[name]) for name in names] for place, scores in found.items() if scores}


def _measured(scores: Sequence[float]) -> Measured | None:
    if not scores:
        return None
    mean, low, high = (float(value) for value in mean_interval(scores))
    return Measured(mean, *((low, high) if len(scores) > 1 else (None, None)))


def _short(name: str) -> str:
    """A class name that fits under a bar."""
    plain = name.removesuffix("Agent").removesuffix("Std") or name
    return plain if len(plain) <= 12 else plain[:11] + "…"
