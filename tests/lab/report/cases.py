"""Small run directories for the report tests, written as a trainer would leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from marlab.lab.report.facts import read_all
from marlab.lab.runs.files import write_json
from marlab.lab.runs.records import RunInfo

PNG = bytes.fromhex(  # a red dot
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc000000301010018dd8db0"
    "0000000049454e44ae426082"
)


def make_run(root: Path, /, run_id: str = "fish/a", config: dict[str, Any] | None = None, **fields: Any) -> Path:
    """A finished run with everything in it; `fields` replace entries of run.json, None in `config` leaves it out."""
    world, name = run_id.split("/")
    path = root / world / name
    start, end = "2026-03-01T10:00:00+00:00", "2026-03-01T11:02:03+00:00"
    record: dict[str, Any] = {
        "schema": 1, "world": world, "name": name, "status": "finished", "reason": None,
        "command": f"marlab fish train --name {name}", "config_hash": "0123456789ab", "config_type": None, "seed": 7,
        "versions": {"marlab": "0.1.0", "python": "3.11.7", "torch": "2.13.0", "commit": "abc123"},
        "host": {"platform": "Linux", "cpu": "8 cores", "cores": 8, "device": "cpu"},
        "created": start, "started": start, "ended": end,
        "attempts": [{"started": start, "ended": end, "status": "finished", "reason": None, "seconds": 3723.0}],
        "parent": None, "tags": ["v32"], "group": None, "goal": None, "preset": "v32", "inferred": ["fish"],
        "stages": [{"name": "phase 1", "lr": "2.5e-4 -> 6e-6", "first_step": 1, "last_step": 9, "fish": 15}],
        "results": {"survival": {"value": 0.98, "low": 0.97, "high": 0.99, "unit": "share", "note": "200 x 96"}},
    }  # fmt: skip
    write_json(path / "run.json", record | fields)
    write_json(path / "config.json", config if config is not None else {"lr": 0.0003, "fish": 25, "net": {"width": 64}})
    rows = [{"step": i, "time": 1.0 + i, "survival/mean": 0.1 * i, "loss/policy": 1.0 / i} for i in range(1, 10)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    weights = ("checkpoints/model_iter_2.pt", "checkpoints/model_iter_10.pt")
    for file in ("figures/survival.png", "media/tail 1.mp4", *weights):
        (path / file).parent.mkdir(exist_ok=True)
        (path / file).write_bytes(PNG)
    return path


NOT_STARTED: dict[str, object] = {"attempts": [], "command": None, "started": None, "ended": None, "results": {}}


def runs_of(root: Path) -> dict[str, RunInfo]:
    return {info.id: info for info in read_all(root)[0]}
