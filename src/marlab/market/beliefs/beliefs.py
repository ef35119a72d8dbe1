"""The work of `marlab market beliefs`: watch recorded worlds, fit an observer, hold it against worlds it never saw.

runs/market/NAME/observer.npz            `LitaAgentHRL(observer=...)` and `marlab market online --observer` take it
runs/market/NAME/tables.md, results.json, figures/*.png
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress, stage
from marlab.lab.report.style import time_of_a_figure
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.files import write_json, write_text
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive
from marlab.lab.verdict import say
from marlab.market.beliefs import figures, report
from marlab.market.beliefs.calibration import day_evidence, foresight, quality, tune
from marlab.market.beliefs.fit import Fit
from marlab.market.beliefs.settings import BeliefsConfig
from marlab.market.beliefs.watch import gather
from marlab.market.rules.beliefs import Observer, load_observer, save_observer
from marlab.market.vector.replay import Recorded, read

FIGURES = 2
"""The figures of a run in the time of a plain one."""
OBSERVER = "observer.npz"
FIT, VALIDATION, HELD_OUT = range(3)
COMMON = 0.1
"""Who plays in this share of the worlds is a type, where none are named."""


def beliefs(
    config: BeliefsConfig, options: RunOptions | None = None, *, preset: Preset | None = None,
    command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Fit an observer; returns the run, closed."""
    with stage("reading the worlds", quiet):
        worlds = read_all(config.recorded)
        types = types_of(worlds, config.types)
    device = choose_device(config.device)
    with Run.open("market", config, options, preset=preset, command=command) as run:
        run.set_device(device)
        used = _split(worlds, config)
        began = time.monotonic()
        with Progress("watching", total=len(used[FIT]) + len(used[VALIDATION]), unit="worlds", quiet=quiet) as bar:
            samples, checked = (
                gather(used[which], types, config.share, config.seed, bar.advance) for which in (FIT, VALIDATION)
            )
        if run.budget.limited:  # tables watch worlds again
            pace = (time.monotonic() - began) / (len(used[FIT]) + len(used[VALIDATION]))
            again = pace * (len(used[VALIDATION]) + 2 * len(used[HELD_OUT]))
            run.budget.expect("figures", FIGURES * time_of_a_figure() + again)
        fit = Fit(
            samples, checked, types, width=config.width, units=config.units, steps=config.steps, batch=config.batch,
            lr=config.lr, seed=config.seed, device=device,
        )  # fmt: skip
        store = CheckpointStore(run.checkpoints, "market/beliefs", keep=Keep(last=1))
        drive(
            fit, run, store, save_every=10, unit="units", show=("validation/loss",), quiet=quiet, device=device,
            stay=True,
        )  # fmt: skip
        if not run.signalled and fit.step:
            with run.budget.part("figures"), stage("tables and figures", quiet):
                observer = tune(day_evidence(used[VALIDATION], fit.observer()), fit.observer())
                save_observer(run.path / OBSERVER, observer)
                judge(run, load_observer(run.path / OBSERVER), used[HELD_OUT])  # what is measured is what others get
    return run


def _split(worlds: Sequence[Recorded], config: BeliefsConfig) -> list[list[Recorded]]:
    """The worlds of each part."""
    part = parts(len(worlds), config)
    return [[world for world, p in zip(worlds, part) if p == which] for which in (FIT, VALIDATION, HELD_OUT)]


def draw_again(run: Run, config: BeliefsConfig, quiet: bool) -> None:
    """The observer held against the worlds that it never saw, once more."""
    judge(run, load_observer(run.path / OBSERVER), _split(read_all(config.recorded), config)[HELD_OUT])


def judge(run: Run, observer: Observer, worlds: Sequence[Recorded]) -> None:
    """Tables, numbers, figures and verdict into the run directory."""
    found = quality(day_evidence(worlds, observer), observer)
    found = replace(found, foresight=foresight(worlds, observer))
    write_text(run.path / "tables.md", report.as_markdown(observer, found, len(worlds)))
    write_json(run.path / "results.json", report.as_json(observer, found, len(worlds)))
    run.add_results(report.numbers(found))
    run.set_verdict(*report.verdict(found), say("lab.go_on" if run.unfinished else "lab.look"))
    figures.draw(found, run)


def read_all(folder: Path) -> list[Recorded]:
    """The recorded worlds of a folder in the order of their names; they must say who played."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder, expected one with recorded worlds (.npz).")
    worlds = [read(path) for path in sorted(folder.glob("*.npz"))]
    if len(worlds) < 3:
        raise UserError(f"{folder} holds {len(worlds)} recorded worlds, expected at least 3.")
    for world in worlds:
        if len(world.agents) != len(world.scores):
            raise UserError(f"The recorded world {world.world_id} does not say who played; record it again.")
    return worlds


def types_of(worlds: Sequence[Recorded], asked: Sequence[str]) -> tuple[str, ...]:
    """The types to tell apart."""
    seen = Counter(name for world in worlds for name in set(world.agents))
    missing = [name for name in asked if name not in seen]
    if missing:
        known = ", ".join(sorted(seen))
        raise UserError(f"{missing[0]} plays in none of the {len(worlds)} recorded worlds, which know {known}.")
    found = tuple(asked) or tuple(sorted(name for name, count in seen.items() if count >= COMMON * len(worlds)))
    if len(found) < 2:
        raise UserError(f"There is only the type {', '.join(found)}: nobody to tell it from.")
    return found


def parts(count: int, config: BeliefsConfig) -> np.ndarray:
    """[worlds] FIT, VALIDATION or HELD_OUT; every part has one world at least."""
    order = np.random.default_rng([config.seed, 19]).permutation(count)
    held, checked = max(1, round(config.held_out * count)), max(1, round(config.validation * count))
    out = np.full(count, FIT)
    out[order[:held]], out[order[held : held + checked]] = HELD_OUT, VALIDATION
    return out
