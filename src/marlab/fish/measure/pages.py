"""What the notebook shows of fish: the tank as a replay, where fish die, probes and the gate's decisions."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.fish.measure.config import PROBES, SPEED_CLASSES
from marlab.fish.measure.pathfile import FIELD_REACH, FILE, HEADINGS, Paths, read_paths
from marlab.fish.sea import constants as sea
from marlab.fish.starts.clusters import headings
from marlab.lab.notebook.panels import Cell, Contribution, Panel, Table
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import RunInfo

Probe = Mapping[str, Any]
POLAR_BINS = 12


def evaluation(info: RunInfo) -> Contribution:
    """An evaluation: its replay, deaths and the policy's field."""
    return Contribution(_panels(info.path / FILE))


def training(info: RunInfo) -> Contribution:
    """A training: the replay of its best model, and its probes."""
    found = sorted((info.path / "eval").glob(f"*/{FILE}"))  # best_... before final_...
    probes = read_metrics(info.path / PROBES)
    return Contribution([*(_panels(found[0]) if found else []), *(_probe_panels(probes) if probes else [])])


# --- paths ------------------------------------------------------------------------------------------------------------


def _panels(file: Path) -> list[Panel]:
    if not file.is_file():
        return []
    paths = read_paths(file)
    return [
        Panel("fish.tank", "fish.tank.title", tank(paths), place="replay", parts=tank_parts(paths)),
        Panel("fish.deaths", "fish.deaths.title", deaths(paths), "fish.deaths.text", place="details"),
        Panel("fish.field", "fish.field.title", field_of(paths), "fish.field.text", place="details"),
    ]


def tank(paths: Paths) -> dict[str, Any]:
    """What a replay needs to know before the first arena is loaded."""
    _, arenas, moments, fish, _ = paths.position.shape
    return {
        "names": paths.names, "seeds": paths.seeds[:arenas], "fish": fish, "steps": moments - 1,
        "predators": paths.predator.shape[3], "radius": sea.ARENA_RADIUS, "vision": sea.VISION_RADIUS,
        "kill": sea.KILL_DISTANCE, "dt": sea.DT,
    }  # fmt: skip


def tank_parts(paths: Paths) -> dict[str, Any]:
    """One part per arena and policy."""
    players, arenas = paths.position.shape[:2]
    return {f"arena-{a}-{p}": partial(_arena, paths, p, a) for a in range(arenas) for p in range(players)}


def _arena(paths: Paths, player: int, arena: int) -> dict[str, Any]:
    """An arena as one policy played it; places in whole millimetres."""
    return {
        "position": _packed(1000 * paths.position[player, arena].astype(np.float64)),
        "predator": _packed(1000 * paths.predator[player, arena].astype(np.float64)),
        "action": _packed(paths.action[player, arena]), "death": paths.death[player, arena].tolist(),
    }  # fmt: skip


def _packed(values: NDArray[Any]) -> str:
    """Whole numbers of 16 bits, little-endian, in base64."""
    return base64.b64encode(np.rint(values).astype("<i2").tobytes()).decode()


def deaths(paths: Paths) -> dict[str, Any]:
    """Where fish were eaten in all arenas that were looked at: [x, y, step] in metres."""
    found = []
    for name, places, steps in zip(paths.names, paths.death_place, paths.death_step):
        eaten = steps >= 0
        rows = np.column_stack([places[eaten].astype(np.float64), steps[eaten]])
        found.append({"name": name, "deaths": np.round(rows, 2).tolist()})
    return {"radius": sea.ARENA_RADIUS, "policies": found, "arenas": len(paths.seeds)}


def field_of(paths: Paths) -> dict[str, Any]:
    """The most likely action around the predator, by the heading of the fish."""
    chance = np.round(paths.field_chance.astype(np.float64), 2)
    return {
        "headings": list(HEADINGS), "reach": FIELD_REACH, "vision": sea.VISION_RADIUS, "kill": sea.KILL_DISTANCE,
        "action": paths.field_action.tolist(), "chance": chance.tolist(),
    }  # fmt: skip


# --- probes -----------------------------------------------------------------------------------------------------------


def _probe_panels(probes: Sequence[Probe]) -> list[Panel]:
    panels = [
        Panel("curves", "fish.probes.title", timeline(probes), "fish.probes.text", place="curves"),
        Panel("curves", "fish.probes.first", first_steps(probes), "fish.probes.first_text", place="curves"),
    ]
    gates = gate_table(probes)
    if gates.rows:
        panels.append(Panel("table", "fish.gate.title", gates.data(), "fish.gate.text", place="curves"))
    velocity = [death["predator_velocity"] for probe in probes for death in probe["step_one_deaths"]]
    if velocity:
        panels.append(Panel("fish.polar", "fish.polar.title", polar(velocity), "fish.polar.text", place="details"))
    return panels


def timeline(probes: Sequence[Probe]) -> dict[str, Any]:
    """Survival probe by probe, and where the gate moved."""
    at = [probe["iteration"] for probe in probes]
    lines = {
        "fish.probes.average": [probe["summary"]["avg_final_survival_rate"] for probe in probes],
        "fish.probes.worst": [probe["summary"]["min_final_survival_rate"] for probe in probes],
        "fish.probes.saved": [probe["saved_share"] for probe in probes],
    }
    moved = [probe for probe in probes if probe.get("penalty_gate", {}).get("changed")]
    marks = [{"x": p["iteration"], "name": f"→ {p['penalty_gate']['stage']}"} for p in moved]
    told = [{"name": name, "x": at, "y": y} for name, y in lines.items() if any(v is not None for v in y)]
    return {"x": "fish.probes.iteration", "y": "fish.probes.share", "lines": told, "marks": marks}


def first_steps(probes: Sequence[Probe]) -> dict[str, Any]:
    """Fish that died at the first step, beside those that nothing could save."""
    at = [probe["iteration"] for probe in probes]
    lines = [{"name": "fish.probes.step_one", "x": at, "y": [probe["step_one_death_count"] for probe in probes]}]
    if any(probe.get("doomed_count") is not None for probe in probes):
        lines.append({"name": "fish.probes.doomed", "x": at, "y": [probe.get("doomed_count") for probe in probes]})
    return {"x": "fish.probes.iteration", "y": "fish.probes.fish", "lines": lines}


def gate_table(probes: Sequence[Probe]) -> Table:
    """What the gate decided after each probe, and the condition that decided."""
    rows: list[list[Cell]] = []
    for probe in probes:
        gate = probe.get("penalty_gate")
        if gate:
            rows.append([
                gate["iteration"], gate["event"], gate["reason"] or "fish.gate.all_met", gate["stage"],
                gate["limit_phase"], gate["success_streak"], gate["failure_streak"],
            ])  # fmt: skip
    columns = ("iteration", "event", "because", "stage", "phase", "successes", "failures")
    return Table([f"fish.gate.{name}" for name in columns], rows)


def polar(velocity: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Step-one deaths by the predator's heading, counted by its speed: `bins` [heading][speed class], from east on."""
    angle, speed = headings(velocity)
    place = (angle // (360 / POLAR_BINS)).astype(int) % POLAR_BINS
    kinds = [(speed >= low) & (speed < high) for low, high in SPEED_CLASSES.values()]
    return {
        "classes": list(SPEED_CLASSES),
        "bins": [[int((kind & (place == bin)).sum()) for kind in kinds] for bin in range(POLAR_BINS)],
    }
