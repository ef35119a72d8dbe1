"""What a pretraining of models of others says at its end, finished or stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marlab.hunt.pretraining.report import draw_epochs, draw_losses
from marlab.hunt.pretraining.trainer import OthersTrainer
from marlab.lab.progress import stage
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import Run
from marlab.lab.stats import share_interval
from marlab.lab.verdict import Sentence, say, side

JUDGED = "moa/validation/"


def conclude_stopped(run: Run, trainer: OthersTrainer, *, quiet: bool) -> None:
    """Curves, results of the best epoch so far, and a verdict, from what every epoch has measured."""
    rows = read_metrics(run.path / "metrics.jsonl")
    with run.budget.part("figures"), stage("figures", quiet=quiet):
        if rows:
            draw_losses(run, rows)
            draw_epochs(run, rows, {})
    best = best_epoch(rows)
    if best is None:
        run.set_verdict(say("hunt.no_epoch", total=trainer.total), say("lab.go_on"))
        return
    found = {key: best[JUDGED + name] for key, name in (("top1", "top1"), ("top3", "top3"), ("cross_entropy", "ce"))}
    run.add_results({"best_epoch": best["step"] - 1, **{f"validation_{key}": value for key, value in found.items()}})
    count = trainer.data.validation.rows
    top1, low, high = share_interval(round(found["top1"] * count), count)
    without = best.get(f"{JUDGED}free_top1")
    run.set_verdict(
        say("hunt.models_so_far", done=trainer.step, total=trainer.total, top1=top1, interval=(low, high),
            without=without),
        say("lab.go_on"),
    )  # fmt: skip


def best_epoch(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The epoch with the lowest cross-entropy on held-out rows."""
    return min((row for row in rows if f"{JUDGED}ce" in row), key=lambda row: float(row[f"{JUDGED}ce"]), default=None)


def final_verdict(report: Mapping[str, Any]) -> list[Sentence]:
    """Do goals help to predict what players do, and how far is it from the most that anybody could?"""
    scores = report["splits"]["validation"]
    gain, count = scores["gain"], scores["moa"]["rows"]
    top1, low, high = share_interval(round(scores["moa"]["top1"] * count), count)
    bounds = (gain["low"], gain["high"])
    key = {"above": "goals_help", "below": "goals_harm", "unclear": "goals_unclear"}[side(bounds)]
    numbers = {"top1": top1, "interval": (low, high), "gain": gain["value"], "gain_interval": bounds}
    return [say(f"hunt.{key}", best=scores["ceilings"]["known"]["top1"], **numbers), say("hunt.next_models")]
