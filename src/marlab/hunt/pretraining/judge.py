"""Everything measured about opponent models once they are trained, in plain values: `eval/final.json`.

Predictions of every split with and without the goal beside those of exact predictors, what codes hold, and beliefs in
play. Diagnoses read what stands there, and measure it again only on other data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from marlab.hunt.data.dataset import SPLITS, Dataset, Part, SplitName
from marlab.hunt.others.codes import Codebook, linear_probe, two_dimensions
from marlab.hunt.others.models import GoalModels, ModelSpec
from marlab.hunt.others.vae import recon_error
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.answers import Prediction, Stage, codebook_of, predict, vae_scores
from marlab.hunt.pretraining.data import GoalData, goal_data
from marlab.hunt.pretraining.floor import ExactPredictions, truth_of
from marlab.hunt.pretraining.metrics import score_actions
from marlab.lab.runs.files import replacing
from marlab.lab.stats import mean_interval, share_interval
from marlab.lab.verdict import Sentence, say, side

PROBE_TIMES = (0, 1, 2, 4, 8)
BRIEF = ("rows", "top1", "top3", "cross_entropy", "ece", "floor", "excess")


def stage_of(spec: ModelSpec) -> Stage:
    """What the models of a finished training are asked with."""
    stages: dict[str, Stage] = {"history": "history", "state": "vae"}
    return stages.get(spec.goal_source, "labels")


class Split(NamedTuple):
    """The rows of a split with what models and rules say about them."""

    part: Part
    data: GoalData
    predicted: Prediction
    truth: ExactPredictions


def open_split(models: GoalModels, dataset: Dataset, name: SplitName, horizon: int) -> Split:
    part, device = dataset.part(name), next(models.parameters()).device
    data = goal_data(dataset.game, part, "type", horizon, device, models.spec.paths)
    return Split(part, data, predict(models, data, stage_of(models.spec)), truth_of(dataset.game, part))


def judge(
    models: GoalModels,
    dataset: Dataset,
    horizon: int,
    seed: int,
    codes: Path | None = None,
    part_done: Callable[[], None] = lambda: None,
) -> tuple[dict[str, Any], Codebook | None]:
    """Scores on every split beside the best possible ones, and what codes hold; those of validation rows go to the file
    `codes`."""
    report: dict[str, Any] = {"goal_source": models.spec.goal_source, "spec": models.spec.to_dict(), "splits": {}}
    splits: dict[SplitName, Split] = {}
    names: tuple[SplitName, ...] = ("train", "validation", "test")
    for name in (name for name in names if bool((dataset.split_of == SPLITS.index(name)).any())):
        splits[name] = open_split(models, dataset, name, horizon)
        report["splits"][name] = split_scores(splits[name])
        part_done()
    if models.vae is None:
        return report, None
    train, validation = splits["train"], splits["validation"]
    report["vae"] = vae_scores(models, validation.data)
    # The training rows' mean situation needs no code at all.
    mean = train.data.planes.float().mean(0).clamp(1e-6, 1 - 1e-6)
    planes = validation.data.planes
    without = recon_error(torch.logit(mean).expand(planes.shape), planes, "bce", models.spec.map_plane).item()
    report["vae"]["recon_share"] = report["vae"]["recon"] / without
    report["probes"] = probe_table(models, train, validation)
    part_done()
    assert train.predicted.code is not None
    codebook = codebook_of(models, train.data, train.predicted.code, seed)
    report["codebook"] = {k: getattr(codebook, k).tolist() for k in ("outcome", "usage", "goal")}
    if codes is not None:
        write_codes(codes, validation, codebook)
    part_done()
    return report, codebook


def split_scores(split: Split) -> dict[str, Any]:
    """Scores of the models with and without the goal, by type of player, and of exact predictors on the same rows."""
    part, data, predicted, truth = split

    def brief(logits: Tensor, rows: Tensor | slice = slice(None)) -> dict[str, Any]:
        found = score_actions(logits[rows], data.action[rows], truth.known[rows]).to_dict()
        return {name: found[name] for name in BRIEF}

    kinds = {kind.name: part.rows.type == kind for kind in (Kind.NS, Kind.NH, Kind.RAND)}
    return {
        "moa": score_actions(predicted.logits, data.action, truth.known).to_dict(),
        "free": score_actions(predicted.free, data.action, truth.known).to_dict(),
        "gain": _gain(split),
        "by_type": {name: brief(predicted.logits, which) for name, which in kinds.items() if bool(which.any())},
        # What an exact predictor excludes never happens.
        "ceilings": {k: brief(getattr(truth, k).clamp_min(1e-30).log()) for k in ("known", "bayes", "mixture")},
    }


def _gain(split: Split) -> dict[str, float | None]:
    """How much more often the best guess is right with the goal than without, over sequences of rows."""
    part, data, predicted, _ = split
    right, free = (x.argmax(-1).cpu() == data.action.cpu() for x in (predicted.logits, predicted.free))
    more = right.double() - free.double()
    sums = torch.cat([more.new_zeros(1), more.cumsum(0)])
    each = (sums[part.offsets[1:]] - sums[part.offsets[:-1]]) / part.offsets.diff()
    value, low, high = (float(x) for x in mean_interval(each.numpy()))
    return {"value": value, "low": None if math.isnan(low) else low, "high": None if math.isnan(high) else high}


# --- what is in the codes -----------------------------------------------------------------------------------------


def probe_table(models: GoalModels, train: Split, validation: Split) -> list[dict[str, Any]]:
    """At some times of an episode: how well type can be read off the code, the situation's code, and its planes."""

    def rows_at(split: Split, t: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Types (0 NS, 1 NH) and features of the rows at time t."""
        kinds, planes = split.part.rows.type, split.data.planes
        rows = ((split.part.rows.t == t) & ((kinds == Kind.NS) | (kinds == Kind.NH))).nonzero().squeeze(1)
        here = rows.to(planes.device)
        assert split.predicted.code is not None and models.vae is not None
        with torch.no_grad():
            state_code = models.vae.encode(planes[here]).mean
        features = {
            "code": split.predicted.code[here],
            "state_code": state_code,
            "state": planes[here].flatten(1).float(),
        }
        return (kinds[rows] == Kind.NH).long(), {k: v.cpu() for k, v in features.items()}

    table = []
    for t in PROBE_TIMES:
        (train_y, train_x), (test_y, test_x) = both = [rows_at(split, t) for split in (train, validation)]
        if all(len(labels) >= 20 and labels.float().std() > 0 for labels, _ in both):  # else hardly anybody is left
            probes = {k: linear_probe(train_x[k], train_y, test_x[k], test_y)._asdict() for k in train_x}
            table.append({"t": t, **probes})
    return table


def write_codes(path: Path, split: Split, codebook: Codebook) -> None:
    """Codes of all rows of a split, with what is known about the rows."""
    code, rows = split.predicted.code, split.part.rows
    assert code is not None
    flat = two_dimensions(code).cpu()
    named = {name: getattr(rows, name).numpy() for name in ("episode", "player", "t", "type", "outcome")}
    named |= {"prototype": codebook.nearest(code).cpu().numpy(), "x": flat[:, 0].numpy(), "y": flat[:, 1].numpy()}
    columns = {name: pa.array(values) for name, values in named.items()}
    numbers = pa.array(code.float().cpu().numpy().reshape(-1))
    columns["code"] = pa.FixedSizeListArray.from_arrays(numbers, code.shape[1])
    with replacing(path) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")


# --- in a few words -----------------------------------------------------------------------------------------------


def results_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The figures that a lab note shows."""
    results: dict[str, Any] = {"best_epoch": report["epoch"]}
    for split in ("validation", "test"):
        if split in report["splits"]:
            moa = report["splits"][split]["moa"]
            results |= {f"{split}_{k}": moa[k] for k in ("top1", "top3", "cross_entropy", "excess", "ece")}
            recall = moa["per_class"]["recall"]
            results |= {f"{split}_recall_stag": recall[5], f"{split}_recall_hare": recall[-1]}
    for probe in report.get("probes", []):
        if probe["t"] == 4:
            for name, key in (("probe_t4", "code"), ("probe_t4_state", "state")):
                results |= {name: probe[key]["accuracy"], f"{name}_balanced": probe[key]["balanced"]}
    if "belief" in report:
        results["belief_t4"] = report["belief"]["learned"]["true_type_by_step"][4]
    return results


def final_verdict(report: Mapping[str, Any]) -> list[Sentence]:
    """Do goals help to predict what players do, and how far is it from the most that anybody could?"""
    scores = report["splits"]["validation"]
    gain, count = scores["gain"], scores["moa"]["rows"]
    top1, low, high = share_interval(round(scores["moa"]["top1"] * count), count)
    bounds = (gain["low"], gain["high"])
    key = {"above": "goals_help", "below": "goals_harm", "unclear": "goals_unclear"}[side(bounds)]
    numbers = {"top1": top1, "interval": (low, high), "gain": gain["value"], "gain_interval": bounds}
    return [say(f"hunt.{key}", best=scores["ceilings"]["known"]["top1"], **numbers), say("hunt.next_models")]


def describe(report: Mapping[str, Any]) -> str:
    """A table of the final scores beside the best possible ones."""
    lines = [f"{'split':<12}{'predictor':<22}{'top-1':>8}{'top-3':>8}{'CE':>8}{'ECE':>8}"]
    for split, scores in report["splits"].items():
        shown = {"model": scores["moa"], "model without goal": scores["free"]}
        shown |= {f"exact, {name}": value for name, value in scores["ceilings"].items()}
        for name, s in shown.items():
            numbers = "".join(f"{s[key]:>8.4f}" for key in ("top1", "top3", "cross_entropy", "ece"))
            lines.append(f"{split:<12}{name:<22}{numbers}")
    for probe in report.get("probes", []):
        kinds = {"code": "code", "state_code": "code of the state", "state": "state"}
        read = (f"{name} {probe[k]['accuracy']:.3f} ({probe[k]['balanced']:.3f})" for k, name in kinds.items())
        lines.append(f"type read at t = {probe['t']}, right (mean of both types' recalls): {', '.join(read)}")
    for name, belief in report.get("belief", {}).items():
        steps = " ".join(f"{value:.3f}" for value in belief["true_type_by_step"][:6])
        after, turned = belief["prior_by_episode"][-1], belief["switch"]["share"]
        lines.append(
            f"belief, {name}: true type by step {steps}; prior after 10 episodes {after:.3f}; "
            f"turned after a switch {turned:.1%}"
        )
    return "\n".join(lines)
