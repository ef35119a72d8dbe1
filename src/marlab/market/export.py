"""`marlab market export`: recorded worlds as tracker logs, the JSON files that other tools read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq

from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.market.logs import read_world
from marlab.market.tracker import FOLDER, write_tracker


@dataclass(frozen=True)
class ExportConfig:
    """Write what was recorded in the format of trackers: one file per tracked agent and world."""

    run: str
    """The run of `marlab market collect` (its name or folder), any folder with world logs, or one log."""
    format: Literal["tracker"] = "tracker"
    """tracker: tracker_logs/agent_*.json."""
    agents: tuple[str, ...] = ()
    """Only agents of these classes, by their exact names; all tracked agents by default."""
    output_dir: Path | None = None
    """Folder that gets tracker_logs/; by default the run itself."""
    compressed: bool = False
    """Write .json.gz, about a twentieth of the size."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    folder: Path
    worlds: int
    files: int
    size: int  # bytes


def export(config: ExportConfig) -> Exported:
    """Write the tracker logs of a run; files that exist are replaced."""
    place = _place(config.run)
    worlds = world_files(place)
    if not worlds:
        raise UserError(f"{place} holds no log of a market world; `marlab market collect` makes them.")
    folder = (config.output_dir or (place if place.is_dir() else place.parent)) / FOLDER
    sizes: list[int] = []
    found: set[str] = set()
    with Progress("exporting", total=len(worlds), unit="worlds") as bar:
        for path in worlds:
            for log in read_world(path).tracked():
                found.add(log.agent_type)
                if not config.agents or log.agent_type in config.agents:
                    sizes.append(write_tracker(log, folder, compressed=config.compressed).stat().st_size)
            bar.advance(1)
    if not sizes:
        raise UserError(
            f"{place} has no tracked agent of {', '.join(config.agents) or 'any class'}; "
            f"it has {', '.join(sorted(found)) or 'none at all'}."
        )
    return Exported(folder, len(worlds), len(sizes), sum(sizes))


def world_files(place: Path) -> list[Path]:
    """The world logs in a folder and below it, sorted; other Parquet files are passed over."""
    if place.is_file():
        return [place]
    return [path for path in sorted(place.rglob("*.parquet")) if _is_world(path)]


def _is_world(path: Path) -> bool:
    try:
        return {"meta", "days.agent"} <= set(pq.read_schema(path).names)
    except (OSError, pa.ArrowInvalid):
        return False


def _place(run: str) -> Path:
    path = Path(run)
    if path.exists():
        return path
    from marlab.lab.runs import find_run

    return find_run(run).path


def main(argv: Sequence[str]) -> None:
    """The command."""
    from marlab.lab.flags import parse

    done = export(parse(ExportConfig, argv, prog="marlab market export", positional=("run",)))
    print(f"{done.files} files of {done.worlds} worlds, {done.size / 1e6:.1f} MB, in {done.folder}")
