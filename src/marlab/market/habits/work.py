"""The work of `marlab market habits`: learn in a run, say what the habits earn beside the rule.

runs/market/NAME/checkpoints/habits.json   what was learnt: `LitaAgentHRL(mode="learned", weights=RUN)`
runs/market/NAME/habits.md                 which habits matter, and where they went
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.progress import stage
from marlab.lab.report.figures import Curve, curves
from marlab.lab.report.style import legend, panels, save, time_of_a_figure
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.files import write_json, write_text
from marlab.lab.runs.metrics import column, read_metrics
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive
from marlab.lab.verdict import Sentence, say, side
from marlab.market.agent.layers import HABITS
from marlab.market.habits.settings import HabitsConfig
from marlab.market.habits.trainer import HabitsTrainer
from marlab.market.rules.habits import ALL, POSITIONS, WORDS

KIND = "market/habits"


def learn(
    config: HabitsConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Learn (or go on) by a config; returns the run, closed."""
    device = choose_device(config.device)
    trainer = HabitsTrainer(config, device)
    with Run.open("market", config, options, preset=preset, command=command) as run:
        run.set_device(device)
        run.judge_by(config.judged_by)
        if run.budget.limited:
            run.budget.expect("figures", time_of_a_figure())
        store = CheckpointStore(run.checkpoints, KIND, "habits_{step}.ckpt.pt", Keep(last=2))

        def save_habits() -> None:
            write_json(run.checkpoints / HABITS, trainer.habits.to_json())
            write_text(run.path / "habits.md", as_markdown(trainer))

        def note(values: Mapping[str, Any]) -> None:
            if run.budget.limited:
                run.budget.expect("comparison", float(values["time/seconds"]))

        done = drive(
            trainer, run, store, save_every=1, unit="steps", show=("habits/gain",), quiet=quiet, on_save=save_habits,
            on_unit=note, device=device, stay=True,
        )  # fmt: skip
        if not run.signalled:
            with run.budget.part("comparison"), stage("comparing with the rule in other worlds", quiet):
                run.add_results(trainer.last_word())
            run.set_verdict(*verdict(run.results, done))
            with run.budget.part("figures"):
                draw(run)
    return run


def draw_again(run: Run, config: HabitsConfig, quiet: bool) -> None:
    """Figure and verdict from the run's metrics and results."""
    run.set_verdict(*verdict(run.results, not run.unfinished))
    draw(run)


def verdict(results: Mapping[str, Any], done: bool) -> list[Sentence]:
    """Did learning help, and what to do next."""
    after = say("market.next_online") if done else say("lab.go_on")
    gain = results.get("learner minus rule")
    if gain is None:
        return [say("market.online_unmeasured"), after]
    interval = (gain["low"], gain["high"])
    return [say(f"market.online_{side(interval)}", difference=gain["value"], interval=interval), after]


def as_markdown(trainer: HabitsTrainer) -> str:
    """Where the habits went, and which slopes are clearest."""
    lines = ["# Habits", ""]
    for position, name in enumerate(POSITIONS):
        changed = trainer.habits.to_json()[name]
        far = sorted(changed, key=lambda key: -abs(changed[key] - ALL[key].usual) / ALL[key].spread)
        lines += [f"## {WORDS[name].capitalize()}", "", "| habit | rule | learnt |", "|---|---:|---:|"]
        lines += [f"| {key} | {ALL[key].usual:g} | {changed[key]:.3g} |" for key in far[:25]]
        lines += ["", "Clearest slopes (score per spread, and in errors):", ""]
        lines += [f"- {key}: {slope:+.4f} ({clear:+.1f})" for key, slope, clear in trainer.told[position]]
        lines.append("")
    return "\n".join(lines)


def draw(run: Run) -> None:
    """What the centre earned more than the rule, step by step."""
    rows = read_metrics(run.path / "metrics.jsonl")
    if not rows:
        return
    figure, axes = panels(1, 1, size=(6.8, 4.0), title="Learnt habits beside the rule, in the vector market")
    ax = np.ravel(np.asarray(axes, dtype=object))[0]
    lines = {}
    for name in POSITIONS:
        steps, values = column(rows, f"habits/gain_{name}")
        if steps:
            low, high = (np.array(column(rows, f"habits/gain_{name}_{end}")[1]) for end in ("low", "high"))
            lines[WORDS[name]] = Curve(np.array(steps, float), np.array(values), low, high)
    curves(ax, lines, xlabel="step", ylabel="score less the rule's", title="Worlds that were learnt from")
    ax.axhline(0.0, linewidth=0.8, color="0.5")
    legend(ax)
    save(figure, run.figure("habits.png"))
