"""The page of a run: verdict, film, results, curves, figures; what was asked and where it ran come last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from marlab.lab.errors import UserError
from marlab.lab.notebook import story
from marlab.lab.notebook.charts import Line, lines_of, ordered, spark
from marlab.lab.notebook.compare_page import data_name, run_data
from marlab.lab.notebook.index import Entry, entry_of
from marlab.lab.notebook.panels import Contribution, Page, Panel, contribution, package_of, world_pages
from marlab.lab.notebook.sheet import Sheet, as_json, data_uri
from marlab.lab.notebook.words import word
from marlab.lab.report.facts import duration, file_size, parent_of, when
from marlab.lab.report.page import MIME, render_fragment
from marlab.lab.runs import folders
from marlab.lab.runs.records import RunInfo
from marlab.lab.stats import show

MOST_SINGLE = 7_000_000
"""Bytes of a page that is one file."""
MOST_OF_A_PANEL = 700_000
"""Bytes of data of one panel in such a page."""
FEWEST_TOGETHER = 2
"""Results in one unit that are worth a drawing of their intervals."""


@dataclass
class Built:
    """What was made of a run."""

    entry: Entry
    packages: set[str]
    hashes: dict[str, Any] = field(default_factory=dict)


def _own_words(info: RunInfo) -> set[str]:
    """The world of a run: titles and columns of the lab's kinds of panels are its words too."""
    package = package_of(info)
    return {package} if package is not None and world_pages(package) is not None else set()


def write_run(info: RunInfo, sheet: Sheet, hashes: dict[str, Any]) -> Built:
    """Write the page of a run to `sheet`, and its further pages beside it."""
    given, problem = _given(info)
    lines = ordered(lines_of(info.path), info)
    packages = {p for panel in _all_panels(given) if (p := panel.package) is not None} | _own_words(info)
    pictures = _Pictures(sheet)
    given_panels = [_that_fits(panel, sheet.language) for panel in given.panels] if sheet.single else given.panels
    panels = {place: sheet.panels([p for p in given_panels if p.place == place]) for place in _places(given)}
    place = place_of(info, sheet)
    curves = sheet.panels([Panel("training", "", run_data(info, lines))], data_name(place))
    intervals = [] if given.results else sheet.panels(interval_panels(info))
    pages = [] if sheet.single else [write_page(info, page, sheet) for page in given.pages]
    values = _facts(info, hashes)
    figures, films = story.figures(info), story.films(info)
    left = pictures.room(figures, films)
    sheet.write(
        "run.html.j2", packages, info=info, place=place, panels=panels, curves=curves if lines else [],
        intervals=intervals, plain=not given.results, problem=problem,
        figures=[pictures.shown(p, left) for p in figures], films=[pictures.shown(p, left) for p in films],
        pages=list(zip(given.pages, pages)), **values,
    )  # fmt: skip
    entry = entry_of(info, spark(lines, info.judged.metric or _first(lines)), lines)
    entry |= {"place": place, "data": data_name(place), "data_at": quote(f"{place}/report/data/{data_name(place)}.js")}
    return Built(entry, packages, hashes)


def write_single(info: RunInfo, target: Path, language: str = "en") -> Path:
    """The page of a run as one file that can be sent to somebody."""
    write_run(info, Sheet(target, target.parent, None, True, language), {})
    return target


def _given(info: RunInfo) -> tuple[Contribution, str | None]:
    """What the world shows, or why it cannot."""
    try:
        return contribution(info), None
    except UserError as error:
        return Contribution(), str(error)


def _that_fits(panel: Panel, language: str) -> Panel:
    """A panel for a page that is one file; in place of one whose data would fill it stands a sentence."""
    size = len(as_json(panel.data)) + sum(len(as_json(make())) for make in panel.parts.values())
    if size <= MOST_OF_A_PANEL:
        return panel
    return Panel("prose", panel.title, {"text": word("run.left_out", language)}, place=panel.place)


def _places(given: Contribution) -> list[str]:
    return list(dict.fromkeys(panel.place for panel in given.panels))


def _all_panels(given: Contribution) -> list[Panel]:
    return [*given.panels, *(panel for page in given.pages for panel in page.panels)]


def _first(lines: Sequence[Line]) -> str | None:
    return lines[0].name if lines else None


def write_page(info: RunInfo, page: Page, beside: Sheet) -> str:
    """A further page of a run; returns its address as seen from the run's own page."""
    sheet = Sheet(beside.folder / f"{page.name}.html", beside.assets, beside.home, False, beside.language)
    packages = {p for panel in page.panels if (p := panel.package) is not None} | _own_words(info)
    sheet.write(
        "page.html.j2", packages, title=page.title, title_text=f"{word(page.title, sheet.language)} · {info.id}",
        lead=page.lead, panels=sheet.panels(page.panels), up=beside.file.name, up_text=info.id,
    )  # fmt: skip
    beside.written += [sheet.file, *sheet.written]
    return sheet.file.name


def place_of(info: RunInfo, sheet: Sheet) -> str:
    """Where a run lies below the folder of all runs; its id where there is no such folder."""
    if sheet.home is None:
        return info.id
    return folders.place_of(info.path, sheet.home.parent)


def interval_panels(info: RunInfo) -> list[Panel]:
    """Results that can be laid beside each other, baselines among them: those with intervals and the key's unit."""
    rows = story.results(info)
    unit = next((r.value.unit for r in rows if r.value.low is not None), None)
    together = [r for r in rows if r.value.low is not None and r.value.unit == unit and r.value.number is not None]
    if len(together) < FEWEST_TOGETHER:
        return []
    drawn = [{"name": r.said, "value": r.value.number, "low": r.value.low, "high": r.value.high} for r in together]
    return [Panel("intervals", "", {"rows": drawn, "unit": unit or ""})]


def _facts(info: RunInfo, hashes: dict[str, Any]) -> dict[str, Any]:
    """What the template says about the run itself."""
    parameters = story.parameters(info)
    parent = parent_of(info)
    log = story.end_of_log(info)
    return {
        "verdict": story.verdict(info), "results": story.results(info), "show": show, "when": when,
        "duration": duration, "size": file_size, "parameters": parameters,
        "changed": [] if isinstance(parameters, str) else [p for p in parameters if p.changed],
        "same": [] if isinstance(parameters, str) else [p for p in parameters if not p.changed],
        "weights": story.weights(info, hashes), "parent": parent, "log": log, "words": _words(info),
        "stages": info.stages,
    }  # fmt: skip


def _words(info: RunInfo) -> str:
    """What a person wrote into the note, as HTML made safe."""
    text = story.own_words(info)
    return render_fragment(text, info.path, info.path / "report") if text else ""


class _Pictures:
    """Figures and films as the template shows them: beside the page, or inside as far as there is room."""

    def __init__(self, sheet: Sheet) -> None:
        self.sheet = sheet

    def room(self, figures: Sequence[story.Picture], films: Sequence[story.Picture]) -> set[Path]:
        """Those that go into a page that is one file, figures first."""
        if not self.sheet.single:
            return set()
        left = MOST_SINGLE - self.sheet.weight()
        chosen = set()
        for picture in [*figures, *films]:
            need = picture.size * 4 // 3 + 200
            if need <= left:
                chosen.add(picture.path)
                left -= need
        return chosen

    def shown(self, picture: story.Picture, chosen: set[Path]) -> dict[str, Any]:
        film = picture.path.suffix.lower() in (".mp4", ".webm")
        if not self.sheet.single:
            address: str | None = self.sheet.href(picture.path)
        elif picture.path in chosen:
            address = data_uri(picture.path.read_bytes(), MIME[picture.path.suffix.lower()])
        else:
            address = None
        pixels = picture.path.suffix.lower() in (".png", ".gif")  # figures on white, which a dark page turns over
        return {"address": address, "caption": picture.caption, "film": film, "pixels": pixels}
