"""Hard starts ("tail seeds"): predator states from which episodes begin more often than chance would have it.

A start file is a JSON object with any of

    states      [{"position": [x, y], "velocity": [vx, vy]}, ...]               the predator as the fish meet it
    velocities  [[vx, vy], ...]                                                 the older form, without a position
    summary     {"clusters": [{"sample": {"predator_velocity": [vx, vy]}}]}     what the worst-seed export writes

and optionally `type` (a sector such as "ne", checked against the content), `source`, `note`, `generated_at`. A state
may carry more, such as the `arena_seed` of the episode it comes from; that is kept for the reader.

Angles are counter-clockwise from +x, so 90 degrees is north on the screen; speeds are in m/s.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.fish.schedule.syntax import number, whole, words
from marlab.fish.sea.constants import ARENA_RADIUS
from marlab.lab.checks import at_least, share
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json

Floats = NDArray[np.float64]

SHIPPED = Path(__file__).parents[1] / "presets" / "starts"
FASTEST = 6.0
"""m/s; the predator has never been seen above 4.5, so more is a mistake in the file."""

SECTORS: dict[str, tuple[float, float]] = {
    "e": (-45.0, 45.0),
    "n": (45.0, 135.0),
    "w": (135.0, 225.0),
    "s": (225.0, 315.0),
    "ne": (0.0, 90.0),
    "nw": (90.0, 180.0),
    "sw": (180.0, 270.0),
    "se": (270.0, 360.0),
    "log-ne": (90.0, 150.0),  # what the metric step_one_ne_high_speed_share calls north-east
    "all": (0.0, 360.0),
}
"""Heading ranges in degrees, start included, end excluded; quarters of the compass by name."""

SPEEDS: dict[str, tuple[float, float]] = {
    "slow": (0.2, 1.2), "medium": (1.2, 2.0), "fast": (2.0, 3.0), "any": (0.2, 3.0),
}  # fmt: skip
"""Speed ranges in m/s by name."""

LABEL_SHARE = 0.5
"""A file that claims a sector must have at least this share of its headings there."""


@dataclass(frozen=True)
class StartSet:
    """Starts of one file, in file order. n entries."""

    name: str
    position: Floats  # [n, 2], NaN where the file gives only a velocity
    velocity: Floats  # [n, 2]
    declared_type: str | None = None

    def __len__(self) -> int:
        return len(self.velocity)

    @property
    def heading_deg(self) -> Floats:
        """[n] in 0..360."""
        return np.degrees(np.arctan2(self.velocity[:, 1], self.velocity[:, 0])) % 360.0

    @property
    def speed(self) -> Floats:
        return np.linalg.norm(self.velocity, axis=1)


# --- reading ------------------------------------------------------------------------------------------------


def find_start_file(text: str) -> Path:
    """The file itself, or the one of that name shipped with the presets (so that old commands find theirs)."""
    path = Path(os.path.expanduser(text))  # a user who is not known stays what was written
    shipped = SHIPPED / path.name
    return shipped if not path.is_file() and shipped.is_file() else path


def load_starts(path: Path, *, lenient: bool = False) -> StartSet:
    """Read and check a start file; `lenient` (compat) skips malformed entries instead of refusing the file."""
    data = read_json(path, lambda reason: UserError(f"The start file {reason}."))
    if not isinstance(data, dict):
        raise UserError(f"The start file {path} holds a {type(data).__name__}, expected a JSON object.")
    rows = _state_rows(data, path, lenient)
    if not rows:  # a file with full states may repeat them in the older form for older readers
        rows = _velocity_rows(data, path, lenient)
    if not rows:
        raise UserError(f"The start file {path} has no usable entry; expected 'states' or 'velocities'.")
    declared = data.get("type")
    if declared is not None and not isinstance(declared, str):
        raise UserError(f"The start file {path} has a 'type' that is not a text.")
    return StartSet(
        name=path.name, position=np.array([r[0] for r in rows], dtype=np.float64),
        velocity=np.array([r[1] for r in rows], dtype=np.float64), declared_type=declared,
    )  # fmt: skip


Row = tuple[tuple[float, float], tuple[float, float]]  # position, velocity
NOWHERE = (math.nan, math.nan)


def _entries(data: dict[str, Any], key: str, path: Path) -> list[Any]:
    entries = data.get(key, [])
    if not isinstance(entries, list):
        raise UserError(f"The start file {path} has '{key}' that is not a list.")
    return entries


def _state_rows(data: dict[str, Any], path: Path, lenient: bool) -> list[Row]:
    rows = []
    for index, entry in enumerate(_entries(data, "states", path)):
        try:
            rows.append(_state(entry, index, path))
        except UserError:
            if not lenient:
                raise
    return rows


def _state(entry: Any, index: int, path: Path) -> Row:
    where = f"states[{index}] of the start file {path}"
    if not isinstance(entry, dict):
        raise UserError(f"{where} is not an object with 'position' and 'velocity'.")
    velocity = _vector(entry.get("velocity"))
    position = NOWHERE if entry.get("position") is None else _vector(entry["position"])
    if velocity is None or position is None:
        raise UserError(f"{where} needs 'velocity' (and 'position') as two finite numbers.")
    if math.hypot(*velocity) > FASTEST:
        raise UserError(f"{where} has a speed of {math.hypot(*velocity):.2f} m/s, expected at most {FASTEST:g}.")
    if position is not NOWHERE and math.hypot(*position) > ARENA_RADIUS:
        raise UserError(f"{where} lies outside the arena of radius {ARENA_RADIUS:g} m.")
    return position, velocity


def _velocity_rows(data: dict[str, Any], path: Path, lenient: bool) -> list[Row]:
    summary = data.get("summary")
    clusters = summary.get("clusters", []) if isinstance(summary, dict) else []
    samples = [c.get("sample") if isinstance(c, dict) else None for c in clusters if c is not None]
    candidates = [(f"velocities[{i}]", v) for i, v in enumerate(_entries(data, "velocities", path))]
    candidates += [
        (f"summary.clusters[{i}].sample.predator_velocity", s.get("predator_velocity") if isinstance(s, dict) else None)
        for i, s in enumerate(samples)
    ]
    rows: list[Row] = []
    for where, value in candidates:
        velocity = _vector(value)
        if velocity is not None:
            rows.append((NOWHERE, velocity))
        elif not lenient:
            raise UserError(f"{where} of the start file {path} is {value!r}, expected two finite numbers.")
    return rows


def _vector(value: Any) -> tuple[float, float] | None:
    """Two finite numbers, or None."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    if any(isinstance(v, bool) or not isinstance(v, int | float) or not math.isfinite(v) for v in value):
        return None
    return float(value[0]), float(value[1])


# --- judging ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StartReport:
    """What a start file really contains."""

    name: str
    entries: int
    distinct: int
    with_position: int
    heading_counts: tuple[int, ...]  # 12 bins of 30 degrees from 0
    speed_counts: tuple[int, ...]  # bins of 0.4 m/s from 0
    speed_range: tuple[float, float]
    declared: str | None
    declared_share: float | None  # share of the headings inside the declared sector; None: nothing to compare

    @property
    def label_fits(self) -> bool:
        return self.declared_share is None or self.declared_share >= LABEL_SHARE

    def text(self) -> str:
        """The report of `marlab fish starts --check`."""
        lines = [
            f"{self.name}: {self.entries} entries, {self.distinct} distinct, {self.with_position} with a position",
            f"speed {self.speed_range[0]:.2f} to {self.speed_range[1]:.2f} m/s",
            "heading (degrees, 90 = north)",
            *(self._row(f"{30 * i:3d}-{30 * i + 30:3d}", n) for i, n in enumerate(self.heading_counts)),
            "speed (m/s)",
            *(self._row(f"{0.4 * i:.1f}-{0.4 * i + 0.4:.1f}", n) for i, n in enumerate(self.speed_counts)),
        ]
        if self.declared is None:
            lines.append("declared type: none")
        elif self.declared_share is None:
            lines.append(f"declared type: '{self.declared}', which names no sector, so it is not compared")
        else:
            verdict = "fits" if self.label_fits else "DOES NOT FIT"
            there = f"{self.declared_share:.0%} of the headings are there"
            lines.append(f"declared type: '{self.declared}' {verdict}, {there}")
        return "\n".join(lines)

    def _row(self, name: str, count: int) -> str:
        return f"  {name}  {count:6d}  {'#' * round(40 * count / self.entries)}".rstrip()


def sector_range(text: str, flag: str) -> tuple[float, float]:
    """A sector by name, or `200-260` in degrees."""
    if text in SECTORS:
        return SECTORS[text]
    return _range(text, flag, f"a sector ({', '.join(SECTORS)}) or degrees such as 200-260")


def speed_range(text: str, flag: str) -> tuple[float, float]:
    """Speeds by name, or `0.5-1.5` in m/s."""
    if text in SPEEDS:
        return SPEEDS[text]
    return _range(text, flag, f"speeds ({', '.join(SPEEDS)}) or m/s such as 0.5-1.5")


def _range(text: str, flag: str, right: str) -> tuple[float, float]:
    left, dash, end = text.partition("-")
    if not dash or not left or not end:
        raise UserError(f"{flag} contains '{text}', expected {right}.")
    span = number(left, flag), number(end, flag)
    if span[1] <= span[0]:
        raise UserError(f"{flag} contains '{text}', which is empty; expected {right}.")
    return span


def in_sector(heading_deg: Floats, sector: tuple[float, float]) -> NDArray[np.bool_]:
    """Whether headings lie in a sector; the sector may cross 0 degrees."""
    return (heading_deg - sector[0]) % 360.0 < sector[1] - sector[0]


def describe_starts(starts: StartSet, declared: str | None = None) -> StartReport:
    """Count what is in a file and compare it with what it (or the stage that uses it) claims."""
    declared = declared or starts.declared_type
    declared_share = None
    if declared in SECTORS:
        declared_share = float(in_sector(starts.heading_deg, SECTORS[declared]).mean())
    rows = np.concatenate([starts.position, starts.velocity], axis=1)
    return StartReport(
        name=starts.name, entries=len(starts),
        distinct=len({tuple(None if math.isnan(x) else round(x, 6) for x in row) for row in rows.tolist()}),
        with_position=int(np.isfinite(starts.position[:, 0]).sum()),
        heading_counts=tuple(np.histogram(starts.heading_deg, bins=12, range=(0, 360))[0].tolist()),
        speed_counts=tuple(np.bincount((starts.speed / 0.4 + 1e-9).astype(int)).tolist()),
        speed_range=(float(starts.speed.min()), float(starts.speed.max())),
        declared=declared, declared_share=declared_share,
    )  # fmt: skip


# --- stages -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StageSpec:
    """One entry of the stage spec: a file that serves `iterations` times the number of arenas."""

    iterations: int
    path: str
    type: str = "main"
    label: str = ""


@dataclass(frozen=True)
class Stage:
    """A stage with its file read."""

    spec: StageSpec
    starts: StartSet


def parse_stage_spec(text: str) -> tuple[StageSpec, ...]:
    """`16:a.json|type=ne|label=early;16:b.json`; type and label are optional."""
    return tuple(_stage_spec(word, i) for i, word in enumerate(words(text, ";"), start=1))


def _stage_spec(word: str, index: int) -> StageSpec:
    flag = "tail_seed_stage_spec"
    head, *options = [part.strip() for part in word.split("|")]
    count, colon, path = head.partition(":")
    if not colon or not path.strip():
        raise UserError(f"{flag} contains '{word}', expected iterations:file such as 16:stage1.json.")
    iterations = whole(count.strip(), flag)
    if iterations < 1:
        raise UserError(f"{flag} contains '{word}', expected a positive number of iterations.")
    named = {"type": "main", "label": f"stage{index}"}
    for option in options:
        key, equals, value = (part.strip() for part in option.partition("="))
        if key not in named or not equals or not value:
            raise UserError(f"{flag} contains the option '{option}', expected type=WORD or label=WORD.")
        named[key] = value
    return StageSpec(iterations, path.strip(), named["type"], named["label"])


def load_stages(specs: Sequence[StageSpec], *, lenient: bool = False) -> tuple[list[Stage], list[str]]:
    """Read the files of all stages; a fault stops with one sentence.

    `lenient` (compat) warns instead: a stage without a readable file is left out, a wrong label is let through.
    """
    stages: list[Stage] = []
    warnings: list[str] = []
    for spec in specs:
        try:
            starts = load_starts(find_start_file(spec.path), lenient=lenient)
        except UserError as error:
            if not lenient:
                raise
            warnings.append(str(error))
            continue
        if Path(spec.path).name != spec.path and find_start_file(spec.path).parent == SHIPPED:
            warnings.append(f"The start file {spec.path} is not there; the one of its name in the package is used.")
        report = describe_starts(starts, spec.type if spec.type in SECTORS else None)
        if not report.label_fits:
            sentence = (
                f"The start file {spec.path} is declared '{report.declared}', but only {report.declared_share:.0%} "
                "of its headings lie there; see `marlab fish starts --check`."
            )
            if not lenient:
                raise UserError(sentence)
            warnings.append(sentence)
        stages.append(Stage(spec, starts))
    return stages, warnings


@dataclass(frozen=True)
class HardStartConfig:
    """Stages of hard starts, and when to warn that few of them are used."""

    seed_stage_spec: str = ""
    """Stages of hard starts as iterations:file|type=T|label=L, separated by semicolons."""
    seed_replay_path: str = ""
    """One file for a single stage; used where tail_seed_stage_spec is empty."""
    seed_prewarm_iterations: int = 0
    """Iterations of that single stage."""
    override_probability: float = 0.5
    """Chance that a reset takes a hard start (tail_queue=cyclic)."""
    force_reset_steps: int = 0
    """Cut every training episode after so many steps; 0 plays all 500."""
    stage_warn_ratio: float = 0.0
    """Warn when at most this share of the hard starts is left; 0: never."""
    stage_warn_patience: int = 2
    """Iterations in a row before that warning."""
    override_warn_ratio: float = 0.25
    """Warn when at most this share of the last 256 resets took a hard start; 0: never."""

    def __post_init__(self) -> None:
        share(self, "override_probability", "stage_warn_ratio", "override_warn_ratio", prefix="tail_")
        at_least(self, 1, "stage_warn_patience", prefix="tail_")
        if self.seed_replay_path and not self.seed_stage_spec and self.seed_prewarm_iterations < 1:
            raise UserError("tail_seed_replay_path needs tail_seed_prewarm_iterations of at least 1.")
        _ = self.stages

    @property
    def stages(self) -> tuple[StageSpec, ...]:
        """The stages asked for; the older pair of flags makes a single one."""
        if self.seed_stage_spec:
            return parse_stage_spec(self.seed_stage_spec)
        if self.seed_replay_path:
            return (StageSpec(self.seed_prewarm_iterations, self.seed_replay_path, label="stage1"),)
        return ()
