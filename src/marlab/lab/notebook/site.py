"""The whole notebook of a folder of runs: every page that has to be made again, the index, and shared files.

    runs/index.html                     the index
    runs/_notebook/                     shared files, the entries of the index (runs.js) and what is known (state.json)
    runs/WORLD/NAME/report/index.html   the page of a run, further pages beside it, their data in report/data

A page is made again when something in its run's folder has changed, or the program has. Nothing of a run is changed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from marlab.lab.errors import UserError
from marlab.lab.notebook.compare_page import write_compare
from marlab.lab.notebook.index import Entry, thumbnail
from marlab.lab.notebook.panels import table, world_pages
from marlab.lab.notebook.run_page import Built, write_run
from marlab.lab.notebook.sheet import FOLDER, Sheet, as_data, put, write_assets
from marlab.lab.notebook.words import LANGUAGES, word
from marlab.lab.report.facts import Unreadable, headless
from marlab.lab.runs import folders
from marlab.lab.runs.files import read_text
from marlab.lab.runs.folders import place_of
from marlab.lab.runs.records import RunInfo, read_run

STATE = "state.json"
SCHEMA = 1
NOT_WATCHED = {"report", "lock", "tb", "trials", "log.txt"}
"""What may change in a run's folder without a word on its page; a log is read when something else has changed."""
TRIALS = "trials"


@dataclass
class Site:
    """What was made, and what could not be read."""

    root: Path
    entries: list[Entry] = field(default_factory=list)
    made: list[Path] = field(default_factory=list)
    gone: bool = False  # whether a run is no longer there
    broken: list[Unreadable] = field(default_factory=list)
    assets: set[Path] = field(default_factory=set)

    @property
    def index(self) -> Path:
        return self.root / "index.html"


def build(root: Path, language: str = "en", tick: Callable[[Path], None] | None = None) -> Site:
    """Make whatever is missing or older than its run; `tick` is called with every run that was looked at."""
    site = Site(root)
    _refuse_links(root / FOLDER)
    known = _read_state(root, language)
    fresh: dict[str, Any] = {}
    packages: set[str] = set(known.get("packages", []))
    for path, sweep in run_folders(root):
        if tick is not None:
            tick(path)
        place = place_of(path, root)
        mark, old = signature(path), known.get("runs", {}).get(place)
        same = old is not None and old["mark"] == mark and (path / "report" / "index.html").exists()
        if same and old["entry"]["status"] != "running":
            fresh[place] = old
            site.entries.append(old["entry"])
            continue
        try:
            info = read_run(path)
            if same and info.status == "running":  # a process that died leaves no trace in the folder
                fresh[place] = old
                site.entries.append(old["entry"])
                continue
            built = _make(info, root, language, old, sweep)
        except UserError as error:
            site.broken.append(Unreadable(path, str(error)))
            continue
        packages |= built.packages
        fresh[place] = {"mark": mark, "entry": built.entry, "hashes": built.hashes}
        site.entries.append(built.entry)
        site.made.append(path)
    site.broken += headless(root)
    worlds = sorted(packages | set(_contributors()))
    site.assets = write_assets(root / FOLDER, worlds)
    state = {
        "schema": SCHEMA, "program": program_mark(), "language": language, "packages": sorted(packages), "runs": fresh,
    }  # fmt: skip
    site.gone = not set(known.get("runs", {})) <= set(fresh)
    if site.made or site.gone or not site.index.exists():
        _write_index(site, language)
        put(root / FOLDER / STATE, json.dumps(state))
    return site


def run_folders(root: Path) -> Iterator[tuple[Path, str | None]]:
    """(folder, place of its sweep) of every run of `root`, trials of sweeps among them."""
    for path in folders.run_folders(root):
        yield path, None
        for trial in sorted(path.glob(f"{TRIALS}/*/run.json")):
            yield trial.parent, place_of(path, root)


def _refuse_links(shared: Path) -> None:
    """Pages are never written through a link: the whole folder of runs may come from a stranger. Runs may be links."""
    for folder in (shared, *(Path(place, name) for place, names, _ in os.walk(shared) for name in names)):
        if folder.is_symlink():
            raise UserError(f"{folder} is a link to another folder; pages are not written through one: remove it.")


def _make(info: RunInfo, root: Path, language: str, old: dict[str, Any] | None, sweep: str | None) -> Built:
    hashes = dict(old["hashes"]) if old is not None else {}
    sheet = Sheet(info.path / "report" / "index.html", root / FOLDER, root / "index.html", language=language)
    built = write_run(info, sheet, hashes)
    built.entry |= {"href": quote(f"{place_of(info.path, root)}/report/index.html"), "sweep": sweep}
    picture = thumbnail(info)
    built.entry["thumb"] = None if picture is None else quote(place_of(picture, root))
    return built


# --- what has changed ---------------------------------------------------------------------------------------------


def signature(path: Path) -> str:
    """A mark of everything in a run's folder that its pages tell of: files by size and time, folders by time."""
    found = []
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.name in NOT_WATCHED or entry.name.startswith("."):
                continue
            try:
                stat = entry.stat()
            except OSError:  # gone in between
                continue
            found.append(f"{entry.name} {0 if entry.is_dir() else stat.st_size} {stat.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(found)).encode("utf-8", "surrogateescape")).hexdigest()[:24]


def program_mark() -> str:
    """A mark of the program: its pages are made again when it has changed."""
    import marlab

    house = Path(marlab.__file__).parent
    files = [file for kind in ("*.py", "*.js", "*.css", "*.j2") for file in house.rglob(kind)]
    told = sorted(f"{file.relative_to(house)} {(s := file.stat()).st_size} {s.st_mtime_ns}" for file in files)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:24]


def _read_state(root: Path, language: str) -> dict[str, Any]:
    """What an earlier call knew; nothing, if the program or the language is another one."""
    try:
        state = json.loads(read_text(root / FOLDER / STATE))
        right = (state["schema"], state["program"], state["language"]) == (SCHEMA, program_mark(), language)
        return state if right and isinstance(state["runs"], dict) else {}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _contributors() -> list[str]:
    """Packages of the program that have something to show."""
    import marlab

    return sorted(file.parent.name for file in Path(marlab.__file__).parent.glob("*/pages.py"))


# --- the index ----------------------------------------------------------------------------------------------------


def _write_index(site: Site, language: str) -> None:
    put(site.root / FOLDER / "runs.js", as_data("runs", site.entries))
    write_compare(site.root, language)
    words = [f"{package}/words.js" for package in _contributors()]  # of pages that it links to
    sheet = Sheet(site.index, site.root / FOLDER, None, language=language)
    sheet.write(
        "index.html.j2", scripts=("index.js", *words), title_text=word("notebook", language), count=len(site.entries),
        broken=[{"path": str(b.path), "reason": b.reason} for b in site.broken], links=_site_pages(site, language),
    )  # fmt: skip


def _site_pages(site: Site, language: str) -> list[tuple[dict[str, str], str]]:
    """(title, address) of pages that belong to no run."""
    from marlab.lab.door import resolve

    root, links = site.root, []
    for package in _contributors():
        for name, target in table(world_pages(package), "SITE").items():
            page = resolve(target)(root)
            if page is None:  # nothing to show yet
                continue
            sheet = Sheet(
                root / FOLDER / package / f"{name}.html", root / FOLDER, root / "index.html", language=language
            )
            packages = {package, *(p for panel in page.panels if (p := panel.package) is not None)}
            sheet.write(
                "page.html.j2", packages, title=page.title, title_text=word(page.title, language), lead=page.lead,
                panels=sheet.panels(page.panels), up=sheet.href(site.index), up_text=word("notebook", language),
            )  # fmt: skip
            title = {each: word(page.title, each) for each in LANGUAGES}  # the index has no words of worlds
            links.append((title, f"{FOLDER}/{package}/{name}.html"))
    return links
