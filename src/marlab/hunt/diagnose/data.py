"""Diagnosis of offline data: does it agree with the game, and are its labels what players did?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from marlab.hunt.data.collect import class_report
from marlab.hunt.data.dataset import Dataset, Rows, check_integrity
from marlab.hunt.diagnose.parts import Check, Picture, Section, Table, save_picture
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.players.published import CONFUSION, ROWS
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.floor import rule_rows
from marlab.hunt.pretraining.metrics import class_table
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.report.figures import bars
from marlab.lab.report.style import legend, panels


def diagnose_data(dataset: Dataset, learnt_after_exit: float, gates: Gates, out: Path | None, run: str) -> Section:
    """Judge a data set; pictures go to `out`.

    learnt_after_exit: share of rows of players who had left among those that models learnt from.
    """
    section = Section(f"Data {run}")
    integrity = check_integrity(dataset.game, dataset.rows)
    shares = integrity.shares()
    wrong = label_faults(dataset)
    gone = max(learnt_after_exit, float((~dataset.rows.alive[:, 0]).float().mean()))
    section.checks = [
        Check("data", "replay equality", integrity.equality, gates.replay, "at least", run=run),
        Check("data", "true labels", 1.0 - wrong["any"], gates.labels, "at least", run=run),
        Check("data", "rows after exit", gone, gates.rows_after_exit, "at most", run=run),
    ]
    classes = class_report(dataset.rows)
    section.figures = {"replay": shares, "label_faults": wrong, "rows_after_exit": gone, "classes": classes}
    section.tables = [
        Table("Rows that a replay reproduces", ("field", "share"), [*shares.items()]),
        Table("Rows with a wrong label", ("fault", "share"), [*wrong.items()]),
        _class_distribution(classes),
        Table(
            "Why players stayed",
            ("cause", "rows", "share of all rows"),
            [(name, v["count"], v["share_of_rows"]) for name, v in classes["stay_causes"].items()],
        ),
    ]
    if out is not None:
        section.pictures.append(_draw_classes(classes, out, run))
    return section


def label_faults(dataset: Dataset) -> dict[str, float]:
    """Shares of rows whose action is not in the joint action, is illegal, or is one that the player never takes."""
    rows = dataset.rows
    faults = {
        "not in the joint action": rows.a != rows.joint_a[:, 0],
        "illegal": ~rows.mask.gather(1, rows.a.unsqueeze(1)).squeeze(1),
        "never done by such a player": _impossible(dataset, rows),
    }
    faults["any"] = torch.stack([*faults.values()]).any(0)
    return {name: float(which.double().mean()) for name, which in faults.items()}


def _impossible(dataset: Dataset, rows: Rows) -> torch.Tensor:
    """[R] actions that a player of the row's type takes with probability 0."""
    kinds = (Kind.NS, Kind.NH, Kind.RAND)
    by_kind = rule_rows(dataset.game, rows, kinds)  # [R, 3, A]
    chance = by_kind.gather(2, rows.a.view(-1, 1, 1).expand(-1, len(kinds), 1)).squeeze(2)
    impossible = torch.zeros(rows.size, dtype=torch.bool)
    for place, kind in enumerate(kinds):
        impossible |= (rows.type == kind) & (chance[:, place] == 0)
    return impossible


def _class_distribution(classes: dict[str, Any]) -> Table:
    original = class_table(CONFUSION)
    rows: list[tuple[Any, ...]] = [
        (name, v["count"], v["share"], int(original.count[i]), float(original.ratio[i]))
        for i, (name, v) in enumerate(classes["actions"].items())
    ]
    rows.append(("L1 distance of shares", None, classes["l1_to_original"], None, None))
    return Table("Class distribution", ("action", "rows", "share", "rows (original)", "share (original)"), rows)


def _draw_classes(classes: dict[str, Any], out: Path, run: str) -> Picture:
    figure, (ax,) = panels(size=(9.6, 4.4), title="Actions in the data")
    ours = [v["share"] for v in classes["actions"].values()]
    original = class_table(CONFUSION).ratio.tolist()
    series = {f"ours, {classes['rows']:,} rows": ours, f"original, {ROWS:,} rows": original}
    bars(ax, [name.replace("_", " ") for name in ACTION_NAMES], series, ylabel="share of rows", digits=3)
    legend(figure)
    caption = "Class distribution of the data beside that of the original"
    return save_picture(figure, out, f"actions-{run}.png", caption)
