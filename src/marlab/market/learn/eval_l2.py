"""Errors of a trained L2 in raw units on one split, beside goals that need no learning (`marlab market eval-l2`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from marlab.lab.config import from_dict
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json
from marlab.market.learn.command import EvalL2Config, MarketTrainConfig
from marlab.market.learn.evaluate import evaluate_goals
from marlab.market.networks.manager import find_manager
from marlab.market.networks.weights import load_manager
from marlab.market.samples.dataset import open_dataset
from marlab.market.samples.goals import check_network


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


def show(report: dict[str, Any], split: str) -> None:
    """Print the errors as two tables, of quantities and of prices."""
    console = Console()
    for part, unit in (("Q", "units"), ("P", "money per unit")):
        name = "Quantities" if part == "Q" else "Prices"
        table = Table(title=f"{name} ({unit}), {split}, {report['days']:,} days", box=SIMPLE, padding=(0, 1))
        for column in ("", "MAE", "RMSE", "95 % interval", "mean target", "rel. error"):
            table.add_column(column, justify="left" if not column else "right", no_wrap=True)
        for row in ("L2", "zero and spot", "gap only"):
            e = report[row][part]
            low, high = e["rmse_interval"]
            table.add_row(row, f"{e['mae']:.3f}", f"{e['rmse']:.3f}", f"[{low:.3f}, {high:.3f}]",
                          f"{e['mean_target']:.3f}", f"{e['mean_rel_err']:.4f}")  # fmt: skip
        console.print(table)
