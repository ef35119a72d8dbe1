"""`marlab draw RUN`: figures, tables, results, films and the verdict of a run made again, from what is on its disk.

How, is known to the package that made the run: its module `marlab.PACKAGE.draw` has a table `DRAWERS` from the config's
type to a function `(run, config, quiet)`. A record may come from a stranger, so nothing else is ever imported.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from marlab.lab.command import begins_anew
from marlab.lab.config import from_dict
from marlab.lab.door import resolve
from marlab.lab.errors import UserError
from marlab.lab.flags import parse
from marlab.lab.progress import stage
from marlab.lab.runs.records import RunInfo, find_run
from marlab.lab.runs.run import Run

CONFIG_TYPE = re.compile(r"marlab\.([a-z]+)\.[a-z0-9_.]+:\w+")


@dataclass(frozen=True)
class DrawArgs:
    """Make figures, tables, results, films and the verdict of a run again, from what is on its disk."""

    run: str = ""
    """The run: a path, world/name, or a name that only one run has."""
    root: Path = Path("runs")
    """Folder of all runs."""

    def __post_init__(self) -> None:
        if not self.run:
            raise UserError("Name a run: marlab draw RUN (a path, world/name or a unique name).")


def drawers(package: str) -> Mapping[str, str]:
    """What a package can draw: type of the config -> `module:function`."""
    name = f"marlab.{package}.draw"
    try:
        found: Mapping[str, str] = importlib.import_module(name).DRAWERS
    except ModuleNotFoundError as error:
        if error.name not in (name, f"marlab.{package}"):
            raise
        return {}
    return found


def draw(info: RunInfo, quiet: bool = True) -> Run:
    """Draw a run of any world; one that nothing here can draw is refused in a sentence."""
    kind = info.config_type or ""
    known = CONFIG_TYPE.fullmatch(kind)
    target = drawers(known[1]).get(kind) if known else None
    if target is None:
        raise UserError(
            f"{info.path} was made by {kind or 'something that is not recorded'}, which nothing here draws."
        )
    if info.status == "running":
        raise UserError(f"{info.id} is running; it draws itself when it ends.")
    stored = info.config()
    if not isinstance(stored, dict) or not stored:
        raise UserError(f"{info.path / 'config.json'} does not hold the settings of the run, so it cannot be drawn.")
    config = from_dict(resolve(kind), stored, str(info.path / "config.json"))
    with Run.revisit(info.path) as run:
        try:
            resolve(target)(run, config, quiet)
        except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
            raise UserError(
                f"{info.path} is damaged or of another version: {type(error).__name__}: {str(error)[:200]}"
            ) from error
    return run


def main(argv: Sequence[str]) -> int:
    """The command."""
    from marlab.lab.report.note import write_note

    args = parse(DrawArgs, argv, prog="marlab draw", positional=("run",))
    info = find_run(args.run, args.root)
    with begins_anew("marlab draw"):
        with stage("drawing"):
            run = draw(info, quiet=False)
        write_note(run.path)
    print("\n".join([*run.verdict, f"Drawn: {run.path}; `marlab note {run.path}` tells its story."]))
    return 0
