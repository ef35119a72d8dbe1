"""Runs side by side: a page whose script lays settings, results and curves of chosen runs beside each other.

The page works without a server, with what every run keeps beside its own page (`run_data`); what a difference is worth
is told by `marlab.lab.compare`, which a served notebook asks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from marlab.lab.compare.compare import Comparison, compare_groups
from marlab.lab.compare.groups import Group, open_groups
from marlab.lab.compare.show import difference_cells, verdict
from marlab.lab.errors import UserError
from marlab.lab.notebook import story
from marlab.lab.notebook.charts import CLOCK, Line, clock, line_data
from marlab.lab.notebook.panels import Panel, package_of
from marlab.lab.notebook.sheet import FOLDER, Sheet
from marlab.lab.notebook.words import LANGUAGES, word
from marlab.lab.report.facts import config_of, parameter
from marlab.lab.runs.records import RunInfo
from marlab.lab.stats import student_quantiles
from marlab.lab.verdict import texts

MOST_SEEDS = 30
"""Trainings of a group whose band the page can draw."""
SEEDS = ("seed", "seeds")


def data_name(place: str) -> str:
    """What the data of a run is called, alone among all runs."""
    return f"run-{hashlib.sha256(place.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


def run_data(info: RunInfo, lines: Sequence[Line]) -> dict[str, Any]:
    """What a comparison needs of a run, and the page of the run for its curves."""
    package = package_of(info)
    try:
        settings = {key: parameter(value) for key, value in config_of(info).items()}
    except UserError:
        settings = {}
    stages = [
        {"name": stage["name"], "first": stage["first_step"], "last": stage["last_step"]}
        for stage in info.stages
        if isinstance(stage.get("first_step"), int) and isinstance(stage.get("last_step"), int)
    ]
    return {
        "id": info.id, "world": info.world, "status": info.status, "judged": info.judged.metric,
        "better": info.judged.better, "settings": settings, "stages": stages,
        "results": [
            {"name": r.said, "key": r.key, "value": r.value.number, "low": r.value.low, "high": r.value.high,
             "unit": r.value.unit}
            for r in story.results(info) if r.value.number is not None
        ],
        "lines": [line_data(line, package) for line in lines if line.name != CLOCK],
        "clock": clock(lines, info.attempts),
    }  # fmt: skip


def write_compare(root: Path, language: str) -> Path:
    """The page, which reads from its address what to compare."""
    sheet = Sheet(root / FOLDER / "compare.html", root / FOLDER, root / "index.html", language=language)
    data = {"student": [float(f"{q:.5g}") for q in student_quantiles(MOST_SEEDS)], "seeds": SEEDS}
    return sheet.write(
        "compare.html.j2", scripts=("compare.js",), panels=sheet.panels([Panel("comparison", "", data)]),
        title_text=word("compare.title", language),
    )  # fmt: skip


def compared(paths: Sequence[Path], root: Path) -> dict[str, Any]:
    """The comparison of runs as a served page shows it: sentences, and every group beside the first."""
    groups = open_groups([str(path) for path in paths], root)
    found = compare_groups(groups)
    said = {language: texts(verdict(found), "", language) for language in LANGUAGES}
    return {
        "verdict": [{lang: said[lang][i] for lang in LANGUAGES} for i in range(len(said["en"]))],
        "measure": found.measure.title, "unit": found.measure.unit, "better": found.measure.better,
        "rows": [_row(found, group, i) for i, group in enumerate(groups)],
    }  # fmt: skip


def _row(found: Comparison, group: Group, place: int) -> dict[str, Any]:
    row = found.rows[place]
    gap, interval, outcome = difference_cells(row)
    return {
        "name": group.name, "runs": [info.id for info in group.runs], "value": row.mean.value, "low": row.mean.low,
        "high": row.mean.high, "marks": [member.value for member in row.members], "gap": gap, "interval": interval,
        "outcome": outcome,
    }  # fmt: skip
