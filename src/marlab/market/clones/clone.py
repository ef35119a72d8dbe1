"""The work of `marlab market clone`: record or read worlds, note decisions, fit, measure, write.

runs/market/NAME/worlds/WORLD_ID.parquet  worlds that were played here
runs/market/NAME/clones.npz              the clones: `marlab.market.vector.clones.load` reads it
runs/market/NAME/tables.md, results.json, figures/*.png
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.lab.extras import need
from marlab.lab.progress import stage
from marlab.lab.report.style import time_of_a_figure
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.files import plain_json, replacing, write_json, write_text
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive
from marlab.lab.verdict import say
from marlab.market.clones import figures, report
from marlab.market.clones.command import CloneCommand
from marlab.market.clones.examples import Examples, examples
from marlab.market.clones.fit import Fit
from marlab.market.clones.measure import beside, marginals
from marlab.market.clones.scores import by_position, play_again
from marlab.market.clones.settings import CloneConfig
from marlab.market.clones.worlds import FIT, HELD_OUT, VALIDATION, WORLDS, parts, play, read_all
from marlab.market.vector.clones import ClonePack, load
from marlab.market.vector.clones.network import Weights
from marlab.market.vector.clones.pack import plain_name
from marlab.market.vector.replay import Recorded

SPLIT = ("fitted", "validation", "held_out")
"""What a file of clones calls FIT, VALIDATION and HELD_OUT."""
FIGURES = 4
"""The figures of a run in the time of a plain one."""


def clone(
    config: CloneConfig, options: RunOptions | None = None, *, engine: EngineConfig | str | None = None,
    preset: Preset | None = None, command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Make clones; returns the run, closed."""
    asked = CloneCommand.of(config)
    config, engine, quiet = asked.run_config(), asked.engine_config(engine), quiet or asked.quiet
    experts, device = tuple(plain_name(name) for name in config.experts), choose_device(config.device)
    if config.recorded is None:
        need("market", "Playing worlds")
    else:
        read_all(config.recorded, experts)  # refuses what cannot be fitted before a folder is made
    start = None if config.start is None else begin_with(config.start, experts, config.hidden)
    with Run.open("market", config, options, preset=preset, command=command) as run:
        run.set_device(device)
        if run.budget.limited:
            run.budget.expect("figures", FIGURES * time_of_a_figure())
        if config.recorded is None:
            play(config, run, engine, quiet)
        worlds = read_all(config.recorded or run.path / WORLDS, experts)
        part = parts(len(worlds), config, known_to(start, worlds))
        with stage(f"replaying {len(worlds)} worlds", quiet):
            data = examples(worlds, experts)
        fit = _fitted(config, run, experts, data, part, device, quiet, None if start is None else start.weights)
        pack = ClonePack(experts, fit.best, about(config, worlds, data, part))
        with replacing(run.path / "clones.npz") as temporary:
            temporary.write_bytes(pack.to_bytes())
        pack = load(run.path / "clones.npz")  # what is measured is what others get
        with run.budget.part("figures"), stage("tables and figures", quiet):
            held = [worlds[w] for w in np.flatnonzero(part == HELD_OUT)]
            write(run, measured(config, pack, data, part, held, device))
    return run


def draw_again(run: Run, config: CloneConfig, quiet: bool) -> None:
    """Tables, figures, results and verdict from the worlds and the clones."""
    pack = load(run.path / "clones.npz")
    worlds = read_all(config.recorded or run.path / WORLDS, pack.names)
    part, data = split_of(pack, worlds), examples(worlds, pack.names)
    held = [worlds[w] for w in np.flatnonzero(part == HELD_OUT)]
    write(run, measured(config, pack, data, part, held, choose_device("cpu")))


def _fitted(
    config: CloneConfig, run: Run, experts: Sequence[str], data: dict[str, Examples], part: np.ndarray,
    device: torch.device, quiet: bool, start: Weights | None,
) -> Fit:  # fmt: skip
    fitted, checked = ([_of(data[name], part, which) for name in experts] for which in (FIT, VALIDATION))
    for name, mine, others in zip(experts, fitted, checked):
        if not len(mine) or not len(others):
            raise UserError(f"{name} made no decision in the worlds to fit on or to validate with; add worlds.")
    draw = np.random.default_rng([config.seed, 18])
    fitted = [each.take(draw.permutation(len(each))[: config.most]) for each in fitted]
    fit = Fit(
        fitted, checked, hidden=config.hidden, units=config.units, steps=config.steps, batch=config.batch,
        lr=config.lr, decay=config.decay, seed=config.seed, device=device, start=start,
    )  # fmt: skip
    store = CheckpointStore(run.checkpoints, "market/clones", keep=Keep(last=1))
    drive(fit, run, store, save_every=5, unit="units", show=("validation/loss",), quiet=quiet, device=device)
    return fit


def begin_with(file: Path, experts: Sequence[str], hidden: int) -> ClonePack:
    """The clones of these experts in a file."""
    pack = load(file)
    width = pack.weights["middle"].shape[-1]
    if width != hidden:
        raise UserError(f"{file} has networks of width {width}, expected {hidden}; set hidden to {width}.")
    rows = [pack.number(expert) for expert in experts]
    return ClonePack(tuple(experts), {name: values[rows] for name, values in pack.weights.items()}, pack.about)


def known_to(start: ClonePack | None, worlds: Sequence[Recorded]) -> np.ndarray | None:
    """[worlds] which of them clones were fitted on or chosen by before."""
    if start is None:
        return None
    seen = {*start.about.get("fitted", ()), *start.about.get("validation", ())}
    return np.array([world.world_id in seen for world in worlds])


def split_of(pack: ClonePack, worlds: Sequence[Recorded]) -> np.ndarray:
    """[worlds] what each world was for when these clones were made."""
    kind = {name: number for number, part in enumerate(SPLIT) for name in pack.about[part]}
    return np.array([kind[world.world_id] for world in worlds])


def _of(data: Examples, part: np.ndarray, which: int) -> Examples:
    return data.take(np.flatnonzero(part[data.column("world")] == which))


def about(
    config: CloneConfig, worlds: Sequence[Recorded], data: dict[str, Examples], part: np.ndarray
) -> dict[str, Any]:
    """What a reader of the file should know: also which worlds it was fitted on, so that others can be told apart."""
    split = {
        name: [world.world_id for world, its in zip(worlds, part) if its == kind] for kind, name in enumerate(SPLIT)
    }
    return {
        **split,
        "worlds": len(worlds), "days": int(sum(int(world.config.n_steps[0]) for world in worlds)),
        "decisions": {name: len(each) for name, each in data.items()}, "hidden": config.hidden,
        "units": config.units, "steps": config.steps, "batch": config.batch, "seed": config.seed,
        "start": None if config.start is None else config.start.name,
    }  # fmt: skip


def measured(
    config: CloneConfig,
    pack: ClonePack,
    data: dict[str, Examples],
    part: np.ndarray,
    held: Sequence[Recorded],
    device: torch.device,
) -> dict[str, Any]:
    """All tables, as plain values and `Measured`."""
    found: dict[str, Any] = {"about": pack.about, "held_out_worlds": len(held), "experts": {}, "scores": {}}
    for number, name in enumerate(pack.names):
        own = {key: values[number : number + 1].cpu().float() for key, values in pack.weights.items()}
        mine = _of(data[name], part, HELD_OUT)
        if len(mine):
            found["experts"][name] = beside(own, mine, marginals(_of(data[name], part, FIT)))
    strangers = {name for world in held for name in world.agents} - report.playable(pack)
    if config.repeats and not strangers:
        played = play_again(pack, held, config.repeats, device, config.seed)
        for name in sorted({name for world in held for name in world.agents}):
            found["scores"][name] = by_position(played, name)
    return found


def write(run: Run, found: dict[str, Any]) -> None:
    """Tables, numbers, figures and verdict into the run directory."""
    write_text(run.path / "tables.md", report.as_markdown(found))
    write_json(run.path / "results.json", plain_json(report.plain(found)))
    run.add_results(report.numbers(found))
    run.set_verdict(*report.verdict(found), say("lab.look"))
    figures.draw(found, run)
