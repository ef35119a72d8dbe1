"""Recorded worlds as tracker logs, the JSON files that other tools read (`marlab market export`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.market.collect.command import ExportConfig
from marlab.market.logs.find import UNUSABLE, choose_experts, find_logs, place_of, read_logs, why_unusable
from marlab.market.logs.tracker import FOLDER, write_tracker


@dataclass(frozen=True)
class Exported:
    """What was written."""

    folder: Path
    worlds: int
    files: int
    size: int  # bytes
    bad: dict[str, str]  # path of a damaged world -> why


def export(config: ExportConfig) -> Exported:
    """Write the tracker logs of a run; files that exist are replaced."""
    place = place_of(config.run)
    logs = find_logs(place)
    worlds = [log for log in logs.logs if log.path.suffix == ".parquet"]
    if not worlds:
        raise UserError(f"{place} holds no recorded world; `marlab market collect` makes them.")
    experts = choose_experts(config.agent_name, (kind for world in worlds for kind in world.types))
    folder = (config.output_dir or (place if place.is_dir() else place.parent)) / FOLDER
    sizes: list[int] = []
    bad = dict(logs.bad)
    with Progress("exporting", total=len(worlds), unit="worlds") as bar:
        for world in worlds:
            try:
                recorded = list(read_logs(world.path, experts))
            except UNUSABLE as error:
                bad[world.path.as_posix()] = why_unusable(world.path, error)
            else:
                written = (write_tracker(log, folder, compressed=config.compressed) for log in recorded)
                sizes += [path.stat().st_size for path in written]
            bar.advance(1)
    return Exported(folder, len(worlds) - (len(bad) - len(logs.bad)), len(sizes), sum(sizes), bad)
