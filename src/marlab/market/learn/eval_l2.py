"""`marlab market eval-l2`: errors of a trained L2 in raw units on one split, beside goals that need no learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from marlab.lab.config import from_dict
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json, write_json
from marlab.market.learn.evaluate import evaluate_goals
from marlab.market.learn.phases import MarketTrainConfig
from marlab.market.networks.manager import find_manager
from marlab.market.networks.weights import load_manager
from marlab.market.samples.dataset import open_dataset
from marlab.market.samples.goals import check_network


@dataclass(frozen=True)
class EvalL2Config:
    """Errors of L2's goals on a split."""

    run: Path = Path()
    """Run directory of `marlab market train`, or L2 weights together with --data."""
    split: Literal["train", "val", "test"] = "val"
    """Which worlds to judge on."""
    data: Path | None = None
    """Samples to judge on; by default those the run learnt from."""
    device: str = "auto"
    """cpu, cuda, cuda:N or auto."""
    output: Path | None = None
    """Also write the figures as JSON to this file."""


def eval_l2(config: EvalL2Config) -> dict[str, Any]:
    """The report of `evaluate.evaluate_goals`; what does not fit together is refused."""
    if config.run == Path():
        raise UserError("Say which L2 to judge: the run directory of `marlab market train`.")
    path, device = find_manager(config.run), choose_device(config.device)
    dataset = open_dataset(config.data or _data_of(config.run))
    model = load_manager(path, device)
    check_network(path, model, dataset.sizes, dataset.options)
    samples = dataset.split(config.split)
    if not samples.rows("macro"):
        raise UserError(f"The split '{config.split}' of {dataset.folder} has no days.")
    return evaluate_goals(model, samples, device)


def _data_of(run: Path) -> Path:
    if not (run / "config.json").is_file():
        raise UserError(f"{run} is not a run directory, so say which samples to judge on with --data.")
    stored = read_json(run / "config.json", lambda why: UserError(f"The run cannot be read: {why}."))
    return from_dict(MarketTrainConfig, stored, f"{run / 'config.json'}").data


def main(argv: Sequence[str]) -> int:
    """`marlab market eval-l2 RUN [--split val]`"""
    from marlab.lab.flags import parse

    config = parse(EvalL2Config, argv, prog="marlab market eval-l2", positional=("run",))
    found = eval_l2(config)
    if config.output is not None:
        write_json(config.output, found)
    console = Console()
    for part, unit in (("Q", "units"), ("P", "money per unit")):
        name = "Quantities" if part == "Q" else "Prices"
        table = Table(title=f"{name} ({unit}), {config.split}, {found['days']:,} days", box=SIMPLE, padding=(0, 1))
        for column in ("", "MAE", "RMSE", "95 % interval", "mean target", "rel. error"):
            table.add_column(column, justify="left" if not column else "right", no_wrap=True)
        for row in ("L2", "zero and spot", "gap only"):
            e = found[row][part]
            low, high = e["rmse_interval"]
            table.add_row(row, f"{e['mae']:.3f}", f"{e['rmse']:.3f}", f"[{low:.3f}, {high:.3f}]",
                          f"{e['mean_target']:.3f}", f"{e['mean_rel_err']:.4f}")  # fmt: skip
        console.print(table)
    return 0
