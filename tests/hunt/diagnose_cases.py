"""Data with planted faults, and what a diagnosis says about runs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import torch

from marlab.hunt.data.collect import _sequence_table
from marlab.hunt.data.dataset import Part, load_dataset, metadata, rows_table
from marlab.hunt.diagnose.config import DiagnoseConfig
from marlab.hunt.diagnose.work import Report, diagnose

TINY = """
top1_typed = 0.60
top3_typed = 0.88
ece = 0.07
belief_learned = 0.65
vanish = 0.02
position = 0.98
position_5 = 0.93
reward_mse = 0.05
"""


def judged(*runs: Path, data: Path | None = None) -> Report:
    names = tuple(str(run) for run in runs)
    with tempfile.TemporaryDirectory() as folder:
        gates = Path(folder) / "gates.toml"
        gates.write_text(TINY)
        return diagnose(DiagnoseConfig(runs=names, data=data, figures=False, episodes=8, belief_games=6, gates=gates))


def statuses(report: Report) -> dict[str, str]:
    return {verdict.module: verdict.status for verdict in report.verdicts}


def missed(report: Report) -> set[str]:
    return {check.key for check in report.checks if not check.met}


def spoilt(data: Path, out: Path, change: Callable[[Part, int], Part]) -> Path:
    """A copy of a data set's run directory with changed rows."""
    shutil.copytree(data, out)
    dataset = load_dataset(data)
    part = change(Part(dataset.rows, dataset.offsets), dataset.game.players)
    told = metadata(dataset.game, dataset.about)
    pq.write_table(rows_table(part.rows).replace_schema_metadata(told), out / "data" / "rows.parquet")
    steps = part.offsets.diff().view(-1, dataset.game.players)
    sequences = _sequence_table(part.rows._replace(episode=part.rows.episode), steps, 0)
    old = pq.read_table(out / "data" / "sequences.parquet")
    for name in ("offset", "split"):
        sequences = sequences.append_column(name, old[name])
    pq.write_table(sequences.replace_schema_metadata(told), out / "data" / "sequences.parquet")
    return out


def shuffle_labels(part: Part, players: int) -> Part:
    order = torch.randperm(part.rows.size, generator=torch.Generator().manual_seed(0))
    return Part(part.rows._replace(a=part.rows.a[order]), part.offsets)


def swap_channels(part: Part, players: int) -> Part:
    return Part(part.rows._replace(next_obs=part.rows.next_obs[..., [0, 2, 1, 3, 4, 5, 6]]), part.offsets)
