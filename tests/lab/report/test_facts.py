"""Facts about runs as people read them."""

from __future__ import annotations

from pathlib import Path

from marlab.lab.report.facts import (
    config_of,
    defaults_of_run,
    duration,
    file_size,
    is_inferred,
    last_metrics,
    parent_of,
    when,
)
from marlab.lab.runs.records import read_run
from tests.lab.report.cases import make_run


def test_times_durations_and_sizes() -> None:
    assert when("2026-03-01T12:30:00+02:00") == "2026-03-01 10:30 UTC"
    assert when("2026-03-01T12:30:00") == "2026-03-01 12:30 (no time zone)"
    assert when("yesterday") == "yesterday" and when(None) == "unknown"
    assert [duration(s) for s in (0.53, 59.9, 61, 3723, 90000, None, float("nan"))] == [
        "0.53 s", "59.9 s", "1 min 1 s", "1 h 2 min", "25 h 0 min", "unknown", "unknown",
    ]  # fmt: skip
    assert [file_size(s) for s in (0, 999, 1234, 5_000_000, 7e9)] == ["0 B", "999 B", "1.23 kB", "5 MB", "7 GB"]


def test_last_metrics_keep_the_last_number_of_each(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    (path / "metrics.jsonl").write_text(
        '{"step": 1, "time": 1.0, "a": 1.0, "b": 5}\n{"step": 2, "time": 2.0, "a": 2.0, "c": true, "d": "x"}\n'
    )
    info = read_run(path)
    assert last_metrics(info) == {"a": (2, 2.0), "b": (1, 5)}
    assert last_metrics(info, records=1) == {"a": (2, 2.0)}


def test_parents_and_inferred_values(tmp_path: Path) -> None:
    make_run(tmp_path, "fish/parent")
    child = read_run(make_run(tmp_path, "fish/child", parent="fish/parent", inferred=["net"]))
    parent = parent_of(child)
    assert parent is not None and parent.id == "fish/parent" and parent_of(parent) is None
    assert is_inferred(child, "net.width") and is_inferred(child, "net") and not is_inferred(child, "network")
    assert config_of(child)["net.width"] == 64


def test_defaults_are_read_from_our_own_modules_only(tmp_path: Path) -> None:
    ours = read_run(make_run(tmp_path, "fish/a", config_type="marlab.lab.engine.tasks:EngineConfig"))
    defaults = defaults_of_run(ours)
    assert defaults is not None and defaults["retries"] == 1
    for kind in (None, "os:environ", "marlab.lab.errors:UserError", "marlab.no_such:Config"):
        assert defaults_of_run(read_run(make_run(tmp_path, "fish/b", config_type=kind))) is None
