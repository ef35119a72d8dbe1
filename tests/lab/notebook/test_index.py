from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from marlab.lab.notebook.charts import Line
from marlab.lab.notebook.index import entry_of, progress, thumbnail
from marlab.lab.runs.records import read_run
from tests.lab.report.cases import make_run

LINES = [Line("a", np.array([1, 30]), np.array([[0.0, 1.0]]), [""])]


def test_an_entry_has_what_the_index_shows(tmp_path: Path) -> None:
    entry = entry_of(read_run(make_run(tmp_path, goal="survive")), [0, 100], LINES)
    assert (entry["id"], entry["status"], entry["goal"], entry["seconds"]) == ("fish/a", "finished", "survive", 3723.0)
    assert entry["figures"] == [
        {"name": {"en": "survival", "zh": "survival"}, "value": 0.98, "low": 0.97, "high": 0.99, "unit": "share"}
    ]


@pytest.mark.parametrize(("status", "total", "share"), [
    ("interrupted", 90, 0.333), ("interrupted", None, None), ("finished", 90, 1.0), ("interrupted", 10, 1.0),
])  # fmt: skip
def test_progress_is_known_where_the_total_is(
    tmp_path: Path, status: str, total: int | None, share: float | None
) -> None:
    assert progress(read_run(make_run(tmp_path, status=status, total=total)), LINES) == share


def test_a_thumbnail_is_a_moment_of_a_film_and_never_a_figure(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    Image.new("RGB", (1000, 500), "red").save(path / "figures" / "survival.png")
    assert thumbnail(read_run(path)) is None
    Image.new("RGB", (50, 50), "red").save(path / "media" / "a_curve.gif")
    film = path / "media" / "tail.gif"
    frames = [Image.new("RGB", (500, 500), colour) for colour in ("red", "lime", "blue")]
    frames[0].save(film, save_all=True, append_images=frames[1:])
    found = thumbnail(read_run(path))
    assert found is not None
    with Image.open(found) as picture:
        assert picture.size == (192, 128) and np.argmax(picture.getpixel((96, 64))) == 1
    film.write_bytes(b"none")
    assert thumbnail(read_run(path)) is None
