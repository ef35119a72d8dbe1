"""`marlab report [RUN...]`: runs as pages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from marlab.lab.errors import UserError
from marlab.lab.flags import parse
from marlab.lab.text import clean

PORT = 8760


@dataclass(frozen=True)
class ReportArgs:
    """Make pages of runs: an index of all of them, a page for each. They open without a server."""

    runs: tuple[str, ...] = ()
    """Runs (paths, world/name or unique names) whose pages are wanted; by default all runs and their index."""
    single_file: bool = False
    """One file for each named run, with everything inside, to be sent to somebody."""
    output_dir: Path | None = None
    """With --single-file: the folder to write to; by default the folder `report` of the run."""
    serve: bool = False
    """Serve the pages on this machine (loopback only), and follow runs that are going on."""
    port: int = PORT
    """With --serve: the port to listen on; 0 takes any that is free."""
    language: Literal["en", "zh"] = "en"
    """The language that pages open in: English or Chinese; every page can change it."""
    root: Path = Path("runs")
    """Folder of all runs."""

    def __post_init__(self) -> None:
        if self.single_file and not self.runs:
            raise UserError("--single-file needs the runs to make a file of: marlab report RUN --single-file.")
        if self.output_dir is not None and not self.single_file:
            raise UserError("--output-dir belongs to --single-file; other pages lie beside their runs.")
        if self.serve and (self.single_file or self.runs):
            raise UserError("--serve serves all runs; leave out the names of runs and --single-file.")
        if not 0 <= self.port <= 65535:
            raise UserError(f"port is {self.port}, expected 0 to 65535.")


def main(argv: Sequence[str]) -> int:
    """The command."""
    args = parse(ReportArgs, argv, prog="marlab report", positional=("runs...",))
    if args.single_file:
        return _single(args)
    if not args.root.is_dir():
        raise UserError(f"There is no folder {args.root} with runs.")
    return _serve(args) if args.serve else _all(args)


def _all(args: ReportArgs) -> int:
    from marlab.lab.notebook.site import build
    from marlab.lab.progress import stage
    from marlab.lab.runs.records import find_run

    wanted = [find_run(name, args.root) for name in args.runs]
    with stage("pages"):
        site = build(args.root, args.language)
    for item in site.broken:
        print(clean(f"marlab: {item.path} is unreadable: {item.reason}"), file=sys.stderr)
    print(clean(f"{len(site.made)} of {len(site.entries)} pages were made: open {site.index}"))
    for info in wanted:
        print(clean(str(info.path / "report" / "index.html")))
    return 0


def _serve(args: ReportArgs) -> int:
    from marlab.lab.notebook.serve import serve

    serve(args.root, args.port, args.language)
    return 0


def _single(args: ReportArgs) -> int:
    from marlab.lab.notebook.run_page import write_single
    from marlab.lab.runs.records import find_run

    for name in args.runs:
        info = find_run(name, args.root)
        folder = args.output_dir or info.path / "report"
        print(clean(str(write_single(info, folder / f"{info.world}-{info.name}.html", args.language))))
    return 0
