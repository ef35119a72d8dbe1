"""`marlab fish suite CHECKPOINT`: how far a trained shoal carries, how it swims together and how it flees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from marlab.fish.measure.compare import CODE, ladder
from marlab.fish.measure.config import HELD_OUT_SEED, SuiteConfig
from marlab.fish.measure.paths import policy_field
from marlab.fish.measure.policies import Policy
from marlab.fish.measure.probe import draw_seeds, greedy
from marlab.fish.measure.schooling import attack_speed, best_escape_angle
from marlab.fish.measure.suite import Cell, arenas_of, cells, measure
from marlab.fish.measure.suite_plots import plot_carries, plot_escape_angles, plot_field
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.seas import named_sea
from marlab.fish.training.networks import Trained, find_checkpoint, load_policy
from marlab.lab.config import Preset, to_dict
from marlab.lab.device import choose_device
from marlab.lab.progress import Progress, stage
from marlab.lab.report.style import time_of_a_figure
from marlab.lab.runs.files import write_json
from marlab.lab.runs.identity import code_identity, weights_digest
from marlab.lab.runs.measurements import FOLDER, Measurements
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import say

FIGURES = 6
"""The figures of a run in the time of a plain one."""
SCRIPTS = ("slip", "dodge", "swerve", "evade")
SUITE_CODE = (*CODE, "fish/measure/schooling.py", "fish/measure/suite.py")
Table = dict[str, dict[str, dict[str, Any]]]
"""Cell -> player -> what was measured."""


def suite(
    config: SuiteConfig, options: RunOptions | None = None, *, preset: Preset | None = None,
    command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Measure all cells as a run; killed and resumed, it goes on."""
    file, device = find_checkpoint(config.checkpoint), choose_device(config.device)
    trained = load_policy(file, device)
    with Run.open("fish", config, options, preset=preset, command=command) as run:
        run.set_device(device)
        if run.budget.limited:
            run.budget.expect("figures", FIGURES * time_of_a_figure())
        _measure_and_tell(run, config, trained, device, quiet)
    return run


def draw_again(run: Run, config: SuiteConfig, quiet: bool) -> None:
    """Tables, figures, results and verdict; cells that were measured are not played again."""
    device = choose_device("auto")
    _measure_and_tell(run, config, load_policy(find_checkpoint(config.checkpoint), device), device, quiet)


def _measure_and_tell(run: Run, config: SuiteConfig, trained: Trained, device: torch.device, quiet: bool) -> None:
    cfg = trained.sea if config.sea == "trained" else named_sea(config.sea, trained.sea)
    kept = Measurements(run.path / FOLDER, code=code_identity(SUITE_CODE))
    players = {"policy": greedy(trained.net), **ladder(device, SCRIPTS)}
    names = {"policy": weights_digest(trained.net.state_dict().values())}
    table = _measure(cfg, players, names, config, kept, device, run, quiet)
    if table is None:
        run.stop()
        run.set_verdict(say("fish.not_judged"), say("lab.go_on"))
        return
    with run.budget.part("figures"), stage("figures and tables", quiet):
        _tell(run, cfg, table)
        field, chance = policy_field(trained.net, replace(cfg, num_fish=1), device)
        plot_field(field, chance, run.figure("policy_field.png"))


def _measure(
    cfg: SeaConfig, players: Mapping[str, Policy], names: Mapping[str, str], config: SuiteConfig, kept: Measurements,
    device: torch.device, run: Run, quiet: bool,
) -> Table | None:  # fmt: skip
    """Everybody in every cell, or None where the time was up before."""
    found: Table = {}
    todo = list(cells(cfg))
    total = len(todo) * len(players)
    with Progress("cells", total=total, unit="parts", quiet=quiet) as bar:
        stop = run.watch(lambda: total - bar.done, bar.say, "the suite")
        for cell in todo:
            seeds = draw_seeds(np.random.default_rng(HELD_OUT_SEED), arenas_of(cell, config.arenas))
            found[cell.name] = {}
            for name, policy in players.items():
                if stop():
                    return None
                make = partial(measure, cell, partial(_same, policy), seeds, device, _watched(cell))
                key = names.get(name, name), to_dict(cell.cfg), cell.delay, seeds
                found[cell.name][name] = kept.measured(make, *key)
                bar.advance(1)
    return found


def _same(policy: Policy) -> Policy:
    return policy


def _watched(cell: Cell) -> bool:
    return cell.axis == "the sea itself"


def summary(table: Table) -> dict[str, dict[str, dict[str, float]]]:
    """Survival with its interval of every cell and player, and the policy's paired difference to the best script."""
    told: dict[str, dict[str, dict[str, float]]] = {}
    for cell, row in table.items():
        survival = {name: np.array(each["survival"]) for name, each in row.items()}
        best = max((name for name in survival if name != "policy"), key=lambda name: float(survival[name].mean()))
        told[cell] = {name: _line(values) for name, values in survival.items()}
        told[cell]["policy minus best script"] = _line(survival["policy"] - survival[best])
    return told


def _line(values: np.ndarray) -> dict[str, float]:
    mean, low, high = (float(v) for v in mean_interval(values))
    return {"value": mean, "low": low, "high": high}


def _tell(run: Run, cfg: SeaConfig, table: Table) -> None:
    """Tables, figures, results and the verdict."""
    told, base = summary(table), table["the sea itself 0"]
    together = {
        name: {what: float(np.nanmean(values)) for what, values in each["schooling"].items()}
        for name, each in base.items()
    }
    best = best_escape_angle(attack_speed(cfg)) if cfg.hunted else None
    write_json(
        run.path / "suite.json",
        {
            "survival": told, "schooling": together, "best_escape_angle_deg": best,
            "escape_angles": {name: each["escape_angles"] for name, each in base.items()},
        },
    )  # fmt: skip
    plot_carries(told, run.figure("generalisation.png"))
    plot_escape_angles({n: base[n]["escape_angles"] for n in base}, best, run.figure("escape_angles.png"))
    ahead = [cell for cell, row in told.items() if row["policy minus best script"]["low"] > 0]
    behind = [cell for cell, row in told.items() if row["policy minus best script"]["high"] < 0]
    own = told["the sea itself 0"]
    unit = {"unit": "share of fish"}
    run.add_results({
        "survival": {**own["policy"], **unit},
        "minus best script": {**own["policy minus best script"], "unit": "share of fish, paired"},
        "cells ahead of every script": {"value": len(ahead), "unit": f"of {len(told)} cells"},
    })  # fmt: skip
    run.set_verdict(
        say("fish.suite", ahead=len(ahead), behind=len(behind), cells=len(told)), say("fish.next_suite_file")
    )
