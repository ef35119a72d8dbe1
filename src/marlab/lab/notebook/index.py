"""The index of all runs: one small entry each, drawn by the page's own script; sweeps are one entry."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from marlab.lab.notebook import story
from marlab.lab.notebook.charts import Line
from marlab.lab.notebook.sheet import put
from marlab.lab.runs.records import RunInfo

Entry = dict[str, Any]
MOST_FIGURES = 3
THUMB_FILE, THUMB = "thumb.webp", (192, 128)
"""File and pixels of a picture in the index."""


def entry_of(info: RunInfo, spark: Sequence[int | None], lines: Sequence[Line]) -> Entry:
    """What the index shows of a run."""
    numbers = [row for row in story.results(info) if row.value.number is not None]
    return {
        "id": info.id, "world": info.world, "kind": info.kind, "status": info.status, "reason": info.reason,
        "created": info.created, "ended": info.ended, "seconds": info.seconds(), "preset": info.preset,
        "seed": info.seed, "tags": info.tags, "group": info.group, "goal": info.goal, "parent": info.parent,
        "command": info.command, "verdict": story.verdict(info), "better": info.judged.better,
        "figures": [_figure(row) for row in numbers[:MOST_FIGURES]], "spark": list(spark),
        "spark_of": info.judged.metric, "progress": progress(info, lines), "thumb": None,
    }  # fmt: skip


def _figure(row: story.Result) -> dict[str, Any]:
    value = row.value
    return {"name": row.said, "value": value.number, "low": value.low, "high": value.high, "unit": value.unit}


def progress(info: RunInfo, lines: Sequence[Line]) -> float | None:
    """The share of its work that a training has done; None where that is not known."""
    if info.status == "finished":
        return 1.0
    steps = max((int(line.steps[-1]) for line in lines if len(line.steps)), default=0)
    if not info.total or not steps:
        return None
    return min(1.0, math.floor(1000 * steps / info.total) / 1000)


def thumbnail(info: RunInfo) -> Path | None:
    """A moment of the first film for the index; a figure so small could not be read, nor one that moves."""
    films = (film.path for film in story.films(info) if film.path.suffix == ".gif")
    source = next((film for film in films if not film.stem.endswith("curve")), None)
    if source is None:
        return None
    from PIL import Image, ImageOps

    target = info.path / "report" / THUMB_FILE
    try:
        with Image.open(source) as picture:
            picture.seek(getattr(picture, "n_frames", 1) // 3)  # the start says little
            small = ImageOps.fit(picture.convert("RGB"), THUMB)
            content = io.BytesIO()
            small.save(content, "WEBP", quality=70, method=1)
    except (OSError, ValueError, SyntaxError):  # a picture that is none
        return None
    put(target, content.getvalue())
    return target
