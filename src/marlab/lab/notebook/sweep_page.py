"""What the page of a sweep shows: every setting beside the others, as its comparison found it, and its trainings."""

from __future__ import annotations

from typing import Any

from marlab.lab.errors import UserError
from marlab.lab.notebook.panels import Cell, Contribution, Panel, Table
from marlab.lab.report.facts import results_of
from marlab.lab.runs.files import read_table
from marlab.lab.runs.records import RunInfo, read_run

COMPARISON = "comparison.json"


def sweep(info: RunInfo) -> Contribution:
    """Settings with their intervals and differences, then all trainings with links to their pages."""
    panels = []
    if (info.path / COMPARISON).exists():
        panels += _compared(read_table(info.path / COMPARISON, UserError))
    trials = _trials(info)
    if trials:
        panels.append(Panel("table", "sweep.trials", trials))
    return Contribution(panels)


def _compared(found: dict[str, Any]) -> list[Panel]:
    rows = [
        {"name": row["name"], **row["mean"], "marks": [each["value"] for each in row["by_training"]]}
        for row in found["rows"]
    ]
    against = next(row for row in rows if row["name"] == found["against"])
    title = f"{found['measure']} [{found['unit']}]" if found["unit"] else found["measure"]
    drawn = {"rows": rows, "unit": title, "reference": {"name": against["name"], "value": against["value"]}}
    columns = ["sweep.setting", found["measure"], "sweep.outcome", "sweep.gap", "sweep.count"]
    cells: list[list[Cell]] = [
        [row["name"], row["mean"], _outcome(row["outcome"]), row["difference"], len(row["by_training"])]
        for row in found["rows"]
    ]
    settings = Table(["sweep.setting", *(row["name"] for row in rows)], [[k, *v] for k, v in found["settings"].items()])
    return [
        Panel("intervals", "sweep.settings", drawn, "sweep.marks"),
        Panel("table", "", Table(columns, cells).data()),
        *([Panel("table", "sweep.differ", settings.data(), place="details")] if found["settings"] else []),
    ]


def _outcome(outcome: str | None) -> str:
    told = {None: "the_reference", "unknown": "cannot_tell"}.get(outcome, outcome) or ""
    return f"compare.outcome.{told.replace(' ', '_')}"


def _trials(info: RunInfo) -> dict[str, Any] | None:
    """All trainings, with the figure that they are judged by."""
    rows: list[list[Cell]] = []
    for record in sorted(info.path.glob("trials/*/run.json")):
        try:
            trial = read_run(record.parent)
        except UserError as error:
            rows.append([record.parent.name, None, str(error), None])
            continue
        results = results_of(trial)
        key = trial.judged.key({name: r for name, r in results.items() if r.number is not None})
        best = results[key] if key is not None else None
        value = None if best is None else {"value": best.number, "low": best.low, "high": best.high}
        link = {"text": trial.name, "href": f"../trials/{trial.name}/report/index.html"}
        rows.append([link, value, f"status.{trial.status}", trial.seed])
    return Table(["sweep.training", "run.value", "run.status", "seed"], rows).data() if rows else None
