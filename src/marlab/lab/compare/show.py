"""A comparison for people: a table, what differs, and at most three sentences; the same as a page."""

from __future__ import annotations

from collections.abc import Sequence

from marlab.lab.compare.compare import Comparison, Difference, Outcome, Row
from marlab.lab.report import markdown
from marlab.lab.report.runs_table import cell_width, fit
from marlab.lab.stats import Measured, show
from marlab.lab.text import clean
from marlab.lab.verdict import Sentence, say, texts, written

Cells = list[list[str]]
WIDEST_VALUE = 28
"""Letters of a setting that a terminal shows; the page has all of it."""


def rows_of(found: Comparison) -> Cells:
    """The table, its header first; the reference has no difference."""
    iqm = any(row.iqm is not None for row in found.rows)
    header = ["group", "trainings", found.measure.title, "95 %", *(["IQM", "bootstrap 95 %"] if iqm else [])]
    header += [f"minus {found.against}", "95 % together", "verdict"] if len(found.rows) > 1 else []
    cells = [header]
    for row in found.rows:
        line = [row.name, str(len(row.members)), show(row.mean.value), row.mean.interval()]
        if iqm:
            line += ["", ""] if row.iqm is None else [show(row.iqm.value), row.iqm.interval()]
        if len(found.rows) > 1:
            line += difference_cells(row)
        cells.append(line)
    return cells


def difference_cells(row: Row) -> list[str]:
    """The difference to the reference, its interval, and what that says."""
    if row.difference is None or row.outcome is None:
        return ["", "", "the reference"]
    gap = row.difference
    interval = "" if gap.low is None else written([gap.low, gap.high], "+.3g")
    return [written(gap.value, "+.3g"), interval, "cannot tell" if row.outcome == "unknown" else row.outcome]


def setting_rows(found: Comparison) -> Cells:
    """Every setting that differs, its value in each group."""
    if not found.settings:
        return []
    return [["setting", *(row.name for row in found.rows)], *([key, *row] for key, row in found.settings.items())]


def other_rows(found: Comparison) -> Cells:
    """Other results that all have: means over trainings."""
    if not found.others:
        return []
    told = [[name, *(_plain(value) for value in row)] for name, row in found.others.items()]
    return [["result", *(row.name for row in found.rows)], *told]


def _plain(value: Measured) -> str:
    return " ".join(part for part in (show(value.value), value.interval()) if part)


def verdict(found: Comparison) -> list[Sentence]:
    """Is anything better than the reference, is the best better than the second, and how sure that is."""
    if len(found.rows) < 2:
        return [say("lab.compare.one_group", count=found.rows[0].runs)]
    other, second = found.runner_up, found.second
    assert other is not None and second is not None
    leader = found.row(other if found.best == found.against else found.best)
    gap, outcome = leader.difference, leader.outcome
    assert gap is not None and outcome is not None
    told = [difference_sentence(found, leader.name, found.against, gap, outcome)]
    if found.against not in (found.best, other):
        told.append(difference_sentence(found, found.best, other, second, second.outcome(found.measure.better)))
    return [*told, how_sentence(gap, outcome)]


def difference_sentence(found: Comparison, name: str, other: str, gap: Difference, outcome: Outcome) -> Sentence:
    """One group beside another."""
    return say(
        f"lab.compare.{outcome.replace(' ', '_')}", name=name, other=other, what=found.measure.title,
        value=found.row(name).mean.value, base=found.row(other).mean.value, difference=gap.value,
        interval=(gap.low, gap.high),
    )  # fmt: skip


def how_sentence(gap: Difference, outcome: Outcome) -> Sentence:
    """What a difference is over."""
    unclear = outcome == "within noise" and gap.how == "seeds"
    return say(f"lab.compare.{'seeds_needed' if unclear else gap.how}", pairs=gap.pairs, needed=gap.needed())


def sentences(found: Comparison) -> list[str]:
    """The verdict in words, and what to keep in mind."""
    told = texts(verdict(found), "")
    if found.unfinished:
        some = ", ".join(found.unfinished[:3]) + (" and others" if len(found.unfinished) > 3 else "")
        told.append(f"Not all runs have come to their end: {some}.")
    return told


def text(found: Comparison, everything: bool = False, words: bool = True) -> str:
    """What a terminal shows; without `words` only the tables."""
    parts = [aligned(rows_of(found))]
    settings = setting_rows(found)
    if settings:
        parts.append(aligned([[_cut(cell) for cell in row] for row in settings], right=False))
    else:
        parts.append("All settings are the same.")
    if everything and found.others:
        parts.append(aligned(other_rows(found)))
    if found.measure.better is None:
        parts.append(f"Nobody says whether more {found.measure.title} is better; --better higher or lower does.")
    return clean("\n\n".join([*parts, *(["\n".join(sentences(found))] if words else [])]).strip())


def _cut(cell: str) -> str:
    return cell if len(cell) <= WIDEST_VALUE else cell[: WIDEST_VALUE - 1] + "…"


def aligned(cells: Sequence[Sequence[str]], right: bool = True) -> str:
    """Columns under their titles, numbers on the right; the last and the first on the left."""
    widths = [max(map(cell_width, column)) for column in zip(*cells)]
    lines = []
    for row in cells:
        parts = []
        for place, (cell, width) in enumerate(zip(row, widths)):
            left = not right or place in (0, len(widths) - 1)
            parts.append(fit(cell, width) if left else " " * (width - cell_width(cell)) + cell)
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def page(found: Comparison, figure: str | None = None) -> str:
    """Everything as Markdown."""
    parts = ["# Comparison", markdown.bullets(map(markdown.plain, sentences(found))), _table(rows_of(found))]
    if figure is not None:
        parts.append(markdown.image("Curves with their bands, and every group with its interval", figure))
    if found.settings:
        parts += ["## Settings that differ", _table(setting_rows(found))]
    if found.others:
        parts += ["## Other results, means over trainings", _table(other_rows(found))]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(cells: Cells) -> str:
    plain = [[markdown.plain(cell) for cell in row] for row in cells]
    return markdown.table(plain[0], plain[1:])
