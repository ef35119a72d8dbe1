"""`marlab fish school CHECKPOINT`: how close and in what order a shoal swims, with a hunter that a crowd confuses and
with one that it does not. Beside it, on the same arenas: another policy, and scripts that mind nobody but the predator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch

from marlab.fish.measure.compare import ladder
from marlab.fish.measure.config import HELD_OUT_SEED, SchoolConfig
from marlab.fish.measure.policies import Policy
from marlab.fish.measure.probe import draw_seeds, greedy
from marlab.fish.measure.suite import Cell, measure
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.seas import named_sea
from marlab.fish.training.networks import find_checkpoint, load_policy
from marlab.fish.training.suite import SUITE_CODE
from marlab.lab.config import Preset, to_dict
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.files import write_json
from marlab.lab.runs.identity import code_identity, weights_digest
from marlab.lab.runs.measurements import FOLDER, Measurements
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import say

SCRIPTS = ("swerve", "evade")
ON, OFF = "confused", "not confused"


def school(
    config: SchoolConfig, options: RunOptions | None = None, *, preset: Preset | None = None,
    command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Measure everybody with and without confusion as a run; killed and resumed, it goes on."""
    device = choose_device(config.device)
    players = _players(config, device)  # what cannot be played is refused before anything is written
    run = Run.open("fish", config, options, preset=preset, command=command)
    with run:
        run.set_device(device)
        _measure_and_tell(run, config, players, device, quiet)
    return run


def draw_again(run: Run, config: SchoolConfig, quiet: bool) -> None:
    """Table, results and verdict; what was measured is not played again."""
    device = choose_device("auto")
    _measure_and_tell(run, config, _players(config, device), device, quiet)


class Player(NamedTuple):
    """Somebody who is measured."""

    name: str
    policy: Policy
    identity: str
    sea: SeaConfig  # as it sees it


def _players(config: SchoolConfig, device: torch.device) -> list[Player]:
    given = {"policy": config.checkpoint, "against": config.against}
    shoals = {name: load_policy(find_checkpoint(file), device) for name, file in given.items() if file}
    first = shoals["policy"]
    cfg = first.sea if config.sea == "trained" else named_sea(config.sea, first.sea)
    if not cfg.hunted:
        raise UserError("Nothing hunts in this sea, so nothing can be confused; choose another with --sea, e.g. shoal.")
    players = [
        Player(name, greedy(one.net), weights_digest(one.net.state_dict().values()), _seen_by(cfg, one.sea))
        for name, one in shoals.items()
    ]
    return players + [Player(name, script, name, cfg) for name, script in ladder(device, SCRIPTS).items()]


def _measure_and_tell(
    run: Run, config: SchoolConfig, players: Sequence[Player], device: torch.device, quiet: bool
) -> None:
    seeds = draw_seeds(np.random.default_rng(HELD_OUT_SEED), config.arenas)
    kept = Measurements(run.path / FOLDER, code=code_identity(SUITE_CODE))
    found: dict[str, dict[str, Any]] = {}
    with Progress("schooling", total=2 * len(players), unit="parts", quiet=quiet) as bar:
        for name, policy, digest, sea in players:
            found[name] = {}
            for label, strength in ((ON, config.confusion), (OFF, 0.0)):
                if run.must_stop():
                    run.stop()
                    run.set_verdict(say("fish.not_judged"), say("lab.go_on"))
                    return
                cell = Cell("confusion", strength, replace(sea, predator_confusion=strength))
                make = partial(measure, cell, partial(_same, policy), seeds, device, True)
                found[name][label] = kept.measured(make, digest, to_dict(cell.cfg), 0, seeds)
                bar.advance(1)
    _tell(run, found)


def _same(policy: Policy) -> Policy:
    return policy


def _seen_by(cfg: SeaConfig, eyes: SeaConfig) -> SeaConfig:
    """The sea as a policy that was trained with `eyes` sees it."""
    return replace(
        cfg, include_neighbor_features=eyes.include_neighbor_features, neighbor_view=eyes.neighbor_view,
        neighbor_radius=eyes.neighbor_radius, neighbor_average_count=eyes.neighbor_average_count,
    )  # fmt: skip


def summary(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Per player and sea the survival and how it swam; what confusion is worth; the policy minus each other, paired."""
    told: dict[str, dict[str, dict[str, Any]]] = {}
    for name, row in found.items():
        told[name] = {}
        for label, each in row.items():
            swims = {what: float(np.nanmean(values)) for what, values in each["schooling"].items()}
            told[name][label] = {**_line(each["survival"]), **swims}
        told[name]["worth of confusion"] = _line(_minus(row[ON], row[OFF]))
        if name != "policy":
            for label in (ON, OFF):
                told[name][f"policy minus it, {label}"] = _line(_minus(found["policy"][label], row[label]))
    return told


def _minus(one: Mapping[str, Any], other: Mapping[str, Any]) -> np.ndarray:
    return np.array(one["survival"]) - np.array(other["survival"])


def _line(values: Any) -> dict[str, float]:
    mean, low, high = (float(v) for v in mean_interval(np.array(values)))
    return {"value": mean, "low": low, "high": high}


def _tell(run: Run, found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """The table, results and the verdict."""
    told = summary(found)
    write_json(run.path / "school.json", told)
    policy, rival = told["policy"], told["against" if "against" in told else SCRIPTS[0]]
    pays, costs = rival[f"policy minus it, {ON}"], rival[f"policy minus it, {OFF}"]
    share = {"unit": "share of fish"}
    paired = {"unit": "share of fish, paired"}

    def bare(line: Mapping[str, Any]) -> dict[str, Any]:
        return {key: line[key] for key in ("value", "low", "high")}

    run.add_results({
        "survival": {**bare(policy[ON]), **share},
        "survival, not confused": {**bare(policy[OFF]), **share},
        "nearest neighbour": {"value": policy[ON]["nearest"], "unit": "m"},
        "polarisation": {"value": policy[ON]["polarisation"], "unit": "0 to 1"},
        "milling": {"value": policy[ON]["milling"], "unit": "0 to 1"},
        "minus the other, confused": {**pays, **paired},
        "minus the other, not confused": {**costs, **paired},
    })  # fmt: skip
    run.set_verdict(
        say(
            "fish.school", nearest=policy[ON]["nearest"], other_nearest=rival[ON]["nearest"], pays=pays["value"],
            pays_interval=(pays["low"], pays["high"]), costs=costs["value"],
            costs_interval=(costs["low"], costs["high"]),
        ),
        say("fish.next_school_file"),
    )  # fmt: skip
