"""How well a model predicts the actions of others: always all the numbers together.

A single accuracy hides what matters here: rare hunts, over-confidence, and how random the other player really is.
So scores hold the confusion matrix with its per-class table, top-1 and top-3, cross-entropy, calibration, and,
where the player's own distribution is known, the floor that no predictor can beat. Letters: R rows, A actions.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from marlab.lab.report.figures import Reliability, reliability_bins
from marlab.lab.runs.files import replacing, write_json, write_text

CALIBRATION_BINS = 15
CSV_COLUMNS = ("class", "count", "ratio", "precision", "recall", "f1")
ALARM = math.log(7)
"""Cross-entropy of knowing nothing about seven actions; a model above it is confidently wrong."""


@dataclass(frozen=True)
class ClassTable:
    """Per-class figures of a confusion matrix (rows true, columns predicted); 0 where a figure has no rows."""

    confusion: NDArray[np.int64]  # [A, A]

    @property
    def rows(self) -> int:
        return int(self.confusion.sum())

    @property
    def count(self) -> NDArray[np.int64]:
        """[A] rows whose true class this is."""
        return self.confusion.sum(1)

    @property
    def ratio(self) -> NDArray[np.float64]:
        """[A] share of the rows."""
        return _divide(self.count, np.full(len(self.confusion), self.rows))

    @property
    def precision(self) -> NDArray[np.float64]:
        """[A] how often a prediction of this class is right."""
        return _divide(self.confusion.diagonal(), self.confusion.sum(0))

    @property
    def recall(self) -> NDArray[np.float64]:
        """[A] how often this class is found."""
        return _divide(self.confusion.diagonal(), self.count)

    @property
    def f1(self) -> NDArray[np.float64]:
        """[A] harmonic mean of precision and recall."""
        return _divide(2 * self.precision * self.recall, self.precision + self.recall)

    @property
    def predicted_ratio(self) -> NDArray[np.float64]:
        """[A] share of the predictions."""
        return _divide(self.confusion.sum(0), np.full(len(self.confusion), self.rows))

    @property
    def accuracy(self) -> float:
        return float(self.confusion.trace() / self.rows) if self.rows else 0.0

    @property
    def majority(self) -> float:
        """Accuracy of always naming the most frequent class."""
        return float(self.ratio.max())

    def macro(self, values: NDArray[np.float64]) -> float:
        """Mean of per-class values over the classes that occur."""
        return float(values[self.count > 0].mean()) if self.rows else 0.0

    @property
    def macro_recall(self) -> float:
        return self.macro(self.recall)

    @property
    def macro_f1(self) -> float:
        return self.macro(self.f1)

    @property
    def weighted_f1(self) -> float:
        return float((self.f1 * self.ratio).sum())

    def csv(self) -> str:
        """The per-class table as CSV text, six decimals."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for a in range(len(self.confusion)):
            figures = (self.ratio[a], self.precision[a], self.recall[a], self.f1[a])
            writer.writerow([a, self.count[a], *(f"{value:.6f}" for value in figures)])
        return text.getvalue()


def class_table(confusion: ArrayLike) -> ClassTable:
    """The per-class table of a confusion matrix [A true, A predicted] of counts."""
    counts = np.asarray(confusion, dtype=np.int64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(f"a confusion matrix is square, not {counts.shape}")
    return ClassTable(counts)


@dataclass(frozen=True)
class ActionScores:
    """Scores of predicted action distributions on the actions that happened."""

    table: ClassTable
    top3: float
    cross_entropy: float  # nats
    entropy: float  # nats, mean entropy of the predictions
    reliability: Reliability
    floor: float | None  # nats, mean entropy of the players' true distributions, where known

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def top1(self) -> float:
        return self.table.accuracy

    @property
    def ece(self) -> float:
        """Expected calibration error of the best guess."""
        return self.reliability.error

    @property
    def excess(self) -> float | None:
        """Nats lost to ignorance rather than to the players' own randomness."""
        return None if self.floor is None else self.cross_entropy - self.floor

    @property
    def alarm(self) -> bool:
        """Worse than knowing nothing: the model is confidently wrong, more data will not help."""
        return self.cross_entropy > ALARM

    def flat(self, prefix: str) -> dict[str, float]:
        """The scalars as metrics, such as `moa/validation/top1` and `moa/validation/recall/5`."""
        values: dict[str, float | None] = {
            "top1": self.top1, "top3": self.top3, "ce": self.cross_entropy, "ece": self.ece, "entropy": self.entropy,
            "floor": self.floor, "excess": self.excess, "macro_recall": self.table.macro_recall,
        }  # fmt: skip
        values |= {f"recall/{a}": value for a, value in enumerate(self.table.recall.tolist())}
        return {f"{prefix}/{name}": value for name, value in values.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        t, r = self.table, self.reliability
        per_class = {k: getattr(t, k).tolist() for k in ("count", "ratio", "precision", "recall", "f1")}
        bins = {k: _plain(getattr(r, k)) for k in ("edges", "confidence", "accuracy", "count")}
        return {
            "rows": self.rows, "top1": self.top1, "top3": self.top3, "cross_entropy": self.cross_entropy,
            "entropy": self.entropy, "ece": self.ece, "floor": self.floor, "excess": self.excess,
            "macro_recall": t.macro_recall, "macro_f1": t.macro_f1, "weighted_f1": t.weighted_f1,
            "majority": t.majority, "predicted_ratio": t.predicted_ratio.tolist(), "per_class": per_class,
            "confusion": t.confusion.tolist(), "reliability": bins, "alarm": self.alarm,
        }  # fmt: skip


def score_actions(logits: Tensor, actions: Tensor, truth: Tensor | None = None) -> ActionScores:
    """Score logits [R, A] (masked already) on the executed actions [R].

    truth: [R, A] the players' own distributions where they are known. Guesses are ordered by probability, equal ones
    by the lowest action number.
    """
    if logits.shape[0] == 0:
        raise ValueError("there are no rows to score")
    log_p = torch.log_softmax(logits.double(), 1).cpu()
    actions = actions.cpu()
    order = log_p.argsort(dim=1, descending=True, stable=True)  # stable: the lowest number first among equals
    hit = order == actions.unsqueeze(1)
    size = logits.shape[1]
    cells = torch.bincount(actions * size + order[:, 0], minlength=size * size).view(size, size)
    p = log_p.exp()
    confidence = p.gather(1, order[:, :1]).squeeze(1).clamp_max(1.0)
    return ActionScores(
        table=class_table(cells.numpy()),
        top3=float(hit[:, :3].any(1).double().mean()),
        cross_entropy=float(-log_p.gather(1, actions.unsqueeze(1)).mean()),
        entropy=float(distribution_entropy(p).mean()),
        reliability=reliability_bins(confidence.numpy(), hit[:, 0].numpy(), CALIBRATION_BINS),
        floor=None if truth is None else float(distribution_entropy(truth.double()).mean()),
    )


def distribution_entropy(p: Tensor) -> Tensor:
    """[*S] entropy in nats of distributions [*S, A]; impossible actions add nothing."""
    return -torch.special.xlogy(p, p).sum(-1)


def write_evaluation(
    folder: Path, epoch: int, scores: ActionScores, logits: Tensor, actions: Tensor, split: str, sample: int = 2000
) -> None:
    """Write `moa_eval_epoch{epoch}` as .csv (per class), .json (everything) and .npz (matrix and a sample)."""
    stem = folder / f"moa_eval_epoch{epoch}"
    write_text(stem.with_suffix(".csv"), scores.table.csv())
    write_json(stem.with_suffix(".json"), {"epoch": epoch, "split": split, **scores.to_dict()})
    with replacing(stem.with_suffix(".npz")) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            confusion=scores.table.confusion,
            logits=logits[:sample].cpu().numpy(),
            labels=actions[:sample].cpu().numpy(),
            split=np.array(split),
        )


def _divide(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    return np.divide(a, b, out=np.zeros(len(a)), where=b > 0)


def _plain(values: NDArray[Any]) -> list[float | None]:
    """A list for JSON, with None where there is no number."""
    return [None if np.isnan(v) else v for v in values.tolist()]
