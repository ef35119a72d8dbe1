"""Making hard-start files: by sector, from the worst episodes of a run, or from its step-one deaths."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from marlab.fish.schedule.syntax import whole
from marlab.fish.sea.constants import ARENA_RADIUS, DT, HEADING_BIN, PREDATOR_PULL, SPEED_BIN
from marlab.fish.starts.clusters import cluster_bins, headings, step_one_clusters
from marlab.fish.starts.files import SECTORS, describe_starts, find_start_file, load_starts, sector_range, speed_range
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json, read_text, trusting, write_json, write_text
from marlab.lab.runs.record import now

EXPORTED_CLUSTERS = 6


@dataclass(frozen=True)
class StartsConfig:
    """Make hard-start files for `marlab fish train --tail-seed-stage-spec`, or look into one."""

    stages: tuple[str, ...] = ()
    """One word per stage, `sector:speeds` or `sector:speeds:iterations`: `ne:slow sw:0.5-1.5:24`. Sectors are e n w s
    ne nw sw se log-ne all or degrees such as 200-260 (90 is north on the screen); speeds are slow medium fast any
    or m/s."""
    source: Path | None = None
    """Take the starts from a run instead: `eval_multi_history.jsonl`, or a `step_one_worst_seeds.json`."""
    pick: Literal["worst", "step_one"] = "worst"
    """From a probe history: the starts of the worst episodes, or of the episodes that lost fish at the first step."""
    count: int = 256
    """Entries per stage file."""
    iterations: int = 16
    """Iterations of a stage that names none; only the printed stage spec needs them."""
    full_states: bool = True
    """Write position and velocity; without it only velocities, as older programs expect."""
    position_radius: float = 4.0
    """Sector starts place the predator uniformly in a disc of this radius (m) around the centre."""
    seed: int = 0
    """Seed of the sector starts."""
    output_dir: Path = Path("starts")
    """Folder for the files."""
    check: Path | None = None
    """Only report on this file: entries, headings, speeds, and whether its declared type fits."""

    def __post_init__(self) -> None:
        if self.check is None and not self.stages and self.source is None:
            raise UserError("Name stages such as ne:slow, a --source, or a file to --check.")
        if self.stages and self.source is not None:
            raise UserError("Stages by sector and --source exclude each other; make them in two calls.")
        if self.count < 1 or self.iterations < 1:
            raise UserError("--count and --iterations must be at least 1.")
        if not 0 < self.position_radius <= ARENA_RADIUS:
            raise UserError(f"--position-radius is {self.position_radius:g}, expected more than 0 and at most 10 m.")
        for stage in self.stages:
            parse_sector_stage(stage, self.iterations)


@dataclass(frozen=True)
class SectorStage:
    """What a word of `stages` asks for."""

    sector_name: str
    speed_name: str
    sector: tuple[float, float]  # degrees
    speeds: tuple[float, float]  # m/s
    iterations: int


def parse_sector_stage(text: str, iterations: int) -> SectorStage:
    """`sw:slow:24` or `sw:slow`."""
    flag = "--stages"
    parts = text.split(":")
    if len(parts) not in (2, 3):
        raise UserError(f"{flag} contains '{text}', expected sector:speeds or sector:speeds:iterations.")
    if len(parts) == 3:
        iterations = whole(parts[2], flag)
    if iterations < 1:
        raise UserError(f"{flag} contains '{text}', expected a positive number of iterations.")
    return SectorStage(parts[0], parts[1], sector_range(parts[0], flag), speed_range(parts[1], flag), iterations)


def make_starts(config: StartsConfig) -> Path:
    """Write the stage files and print the stage spec that uses them; returns their folder.

    With `check` it only prints the report and returns the file.
    """
    if config.check is not None:
        path = find_start_file(str(config.check))
        print(describe_starts(load_starts(path)).text())
        return path
    if config.source is not None:
        words = [_write_from_source(config, config.source)]
    else:
        rng = np.random.default_rng(config.seed)
        words = [_write_sector(config, word, i, rng) for i, word in enumerate(config.stages, start=1)]
    print(f"--tail-seed-stage-spec '{';'.join(words)}'")
    return config.output_dir


# --- by sector ----------------------------------------------------------------------------------------------


def sector_states(
    stage: SectorStage, count: int, position_radius: float, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Predators spread evenly over a sector of headings, a range of speeds and a disc of positions."""
    heading = np.radians(rng.uniform(*stage.sector, size=count))
    speed = rng.uniform(*stage.speeds, size=count)
    radius = position_radius * np.sqrt(rng.uniform(size=count))
    angle = rng.uniform(0.0, 2 * np.pi, size=count)
    position = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    velocity = np.stack([speed * np.cos(heading), speed * np.sin(heading)], axis=1)
    return [
        {"position": [round(x, 6) for x in p], "velocity": [round(x, 6) for x in v]}
        for p, v in zip(position.tolist(), velocity.tolist())
    ]


def _write_sector(config: StartsConfig, word: str, index: int, rng: np.random.Generator) -> str:
    stage = parse_sector_stage(word, config.iterations)
    states = sector_states(stage, config.count, config.position_radius, rng)
    path = config.output_dir / f"stage{index}_{stage.sector_name}_{stage.speed_name}.json"
    low, high = stage.sector
    note = f"headings {low:g} to {high:g} degrees, speeds {stage.speeds[0]:g} to {stage.speeds[1]:g} m/s"
    kind = stage.sector_name if stage.sector_name in SECTORS else None
    write_starts(path, states, source=f"sector, seed {config.seed}", note=note, type=kind, full=config.full_states)
    option = f"|type={kind}" if kind else ""
    return f"{stage.iterations}:{path.as_posix()}{option}|label={stage.sector_name}_{stage.speed_name}"


def write_starts(
    path: Path, states: Sequence[Mapping[str, Any]], *, source: str, note: str, type: str | None, full: bool
) -> None:
    """Write a start file; without `full` only the velocities."""
    body: dict[str, Any] = {"states": list(states)} if full else {"velocities": [s["velocity"] for s in states]}
    declared = {"type": type} if type else {}
    head = {"generated_at": now(), "source": source, "note": note, **declared}
    (key, rows), *_ = body.items()
    lines = [f"  {json.dumps(k)}: {json.dumps(v)}," for k, v in head.items()]
    entries = ",\n".join(f"    {json.dumps(row)}" for row in rows)  # one entry a line: short files, readable diffs
    write_text(path, "\n".join(["{", *lines, f"  {json.dumps(key)}: [", entries, "  ]", "}"]) + "\n")


# --- from a run ---------------------------------------------------------------------------------------------


def _write_from_source(config: StartsConfig, source: Path) -> str:
    kind = f"{config.pick} episodes" if source.suffix == ".jsonl" else "step-one records"
    with trusting(f"{source} holds no {kind} to make starts from"):
        if source.suffix == ".jsonl":
            states = states_of_history(read_history(source), config.pick, config.count)
        else:
            data = read_json(source, lambda reason: UserError(f"The source {reason}."))
            states = states_of_records(data.get("records", []) if isinstance(data, dict) else [])[: config.count]
        states = [{**state, "velocity": _pair(state["velocity"]), "position": _pair(state["position"])}
                  for state in states]  # fmt: skip
    if not states:
        raise UserError(f"{source} holds no {kind} to make starts from.")
    path = config.output_dir / f"{source.parent.name or 'run'}_{kind.split()[0]}.json"
    write_starts(path, states, source=source.as_posix(), note=kind, type=None, full=config.full_states)
    return f"{config.iterations}:{path.as_posix()}|label={kind.split()[0]}"


def _pair(value: Any) -> list[float]:
    x, y = (float(part) for part in value)
    if not math.isfinite(x + y):
        raise ValueError(f"{x:g}, {y:g} are not finite")
    return [x, y]


def read_history(path: Path) -> list[dict[str, Any]]:
    """The probe records of an `eval_multi_history.jsonl`."""
    try:
        lines = read_text(path).splitlines()
        records = [json.loads(line) for line in lines if line.strip()]
    except FileNotFoundError:
        raise UserError(f"The source {path} does not exist.") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"The source {path} is not JSON lines ({str(error)[:200]}).") from None
    if not all(isinstance(record, dict) for record in records):
        raise UserError(f"The source {path} holds a line that is not a probe record.")
    # A resumed run writes its last probes again; the later record of an iteration is the one that counts.
    return list({r["iteration"]: r for r in records if "iteration" in r}.values())


def states_of_history(
    records: Sequence[Mapping[str, Any]], pick: Literal["worst", "step_one"], count: int
) -> list[dict[str, Any]]:
    """Predator starts of probed episodes, worst first; `count` at most."""
    episodes = [(r.get("iteration", 0), e) for r in records for e in r.get("episodes", [])]
    if pick == "step_one":
        episodes = [(i, e) for i, e in episodes if e["step_one_count"] > 0]
        episodes.sort(key=lambda pair: -pair[1]["step_one_count"])
    else:
        episodes.sort(key=lambda pair: (pair[1]["min_survival_rate"], pair[0]))
    return [
        {
            "position": e["predator_position"],
            "velocity": e["predator_velocity"],
            "arena_seed": e["seed"],
            "iteration": i,
        }
        for i, e in episodes[:count]
    ]


def states_of_records(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Predator starts behind step-one records: the recorded state, one step back; one per predator.

    Records are taken after the first step. Where the predator touched the wall in that step its start is not known
    and the record is left out.
    """
    states: dict[tuple[float, ...], dict[str, Any]] = {}
    for record in records:
        (x, y), (vx, vy) = record["predator_position"], record["predator_velocity"]
        if math.hypot(x, y) < ARENA_RADIUS - 1e-4:
            state = {"position": [x - DT * vx, y - DT * vy], "velocity": [vx, vy - DT * PREDATOR_PULL]}
            states.setdefault((x, y, vx, vy), state)
    return list(states.values())


# --- the worst-seed export of a run -------------------------------------------------------------------------


def export_worst_seeds(probes: Sequence[Mapping[str, Any]], path: Path, run_name: str) -> Path:
    """Write `step_one_worst_seeds.json` from the probe records of a run."""
    records = [{"iteration": p["iteration"], **record} for p in probes for record in p["step_one_deaths"]]
    write_json(path, worst_seed_export(records, run_name, now()))
    return path


def worst_seed_export(records: Sequence[Mapping[str, Any]], run_name: str, generated_at: str) -> dict[str, Any]:
    """`step_one_worst_seeds.json`: the most frequent clusters of all step-one records, each with a sample.

    A record is a step-one record with the `iteration` of its probe. The file is valid input for the loader: full
    states for us, `summary.clusters[].sample` for older programs.
    """
    velocity = np.array([r["predator_velocity"] for r in records], dtype=np.float64).reshape(-1, 2)
    angle, speed = headings(velocity)
    first: dict[tuple[int, int], int] = {}
    for i, key in enumerate(cluster_bins(velocity)):
        first.setdefault(key, i)
    clusters = step_one_clusters(velocity)[:EXPORTED_CLUSTERS]
    for cluster in clusters:
        key = round(cluster["angle_deg_start"] / HEADING_BIN), round(cluster["speed_bin_start"] / SPEED_BIN)
        i = first[key]
        sample: Any = {
            "iteration": records[i].get("iteration"), "angle_deg": float(angle[i]), "speed": float(speed[i]),
            "predator_velocity": [float(v) for v in velocity[i]], "fish_idx": records[i].get("fish_idx"),
        }  # fmt: skip
        cluster["sample"] = sample
    return {
        "generated_at": generated_at,
        "run_name": run_name,
        "records": [dict(r) for r in records],
        "states": states_of_records(records),
        "summary": {
            "total_events": len(records),
            "angle_bin_deg": HEADING_BIN,
            "speed_bin": SPEED_BIN,
            "clusters": clusters,
        },
    }
