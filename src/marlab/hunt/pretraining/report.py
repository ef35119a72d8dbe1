"""What a finished pretraining leaves behind: models, final figures on held-out episodes, probes, codes, pictures.

models.pt            averaged weights of the best epoch and the codebook (`goal_models.load_goal_models`)
eval/moa_eval_epoch{k}.csv/.json/.npz   validation scores of every epoch
eval/final.json      everything below in one file
eval/codes.parquet   codes of the validation rows with type, outcome, prototype and a place in two dimensions
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from marlab.hunt.data.dataset import SPLITS, Dataset, Part, SplitName
from marlab.hunt.game.build import game_with_blocks, make_game
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.others.at_play import LearnedLikelihoods, pretrained
from marlab.hunt.others.codes import Codebook, linear_probe, two_dimensions
from marlab.hunt.others.models import FILE, GoalModels, LoadedModels, save_goal_models
from marlab.hunt.players.rollout import OUTCOMES
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.answers import Prediction, codebook_of, predict, vae_scores
from marlab.hunt.pretraining.belief_report import BeliefSource, exact_source, measure_beliefs
from marlab.hunt.pretraining.data import GoalData, goal_data
from marlab.hunt.pretraining.floor import Truth, truth_of
from marlab.hunt.pretraining.metrics import ActionScores, score_actions
from marlab.hunt.pretraining.trainer import OthersTrainer
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.report.figures import Curve, Reliability, curves, reference_lines, reliability, scatter
from marlab.lab.report.heat import confusion
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.arrays import read_parquet
from marlab.lab.runs.checkpoint import CheckpointStore, building
from marlab.lab.runs.files import plain_json, read_json, replacing, trusting, write_json
from marlab.lab.runs.metrics import column, read_metrics
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run
from marlab.lab.stats import mean_interval

PROBE_TIMES = (0, 1, 2, 4, 8)


def finish(
    run: Run, store: CheckpointStore, trainer: OthersTrainer, dataset: Dataset, *, quiet: bool = False
) -> dict[str, Any]:
    """Take the best epoch's models, judge them on all splits, and write everything down; returns what was found.

    Between its parts the run may be left, and a resumed one does them again.
    """
    best = store.load_best(trainer.device)
    with building(best.path, "the state of this training"):
        trainer.load_state_dict(best.state)
    with Progress("judging the models", unit="parts", quiet=quiet) as bar:

        def part_done() -> None:
            bar.advance(1)
            if run.must_stop():
                run.leave()

        found, codebook = evaluate_all(trainer, dataset, run.path / "eval", part_done)
        found["epoch"] = best.step - 1
        save_goal_models(run.path / FILE, trainer.averaged, codebook, best.step - 1)
        if trainer.config.belief_games and codebook_or_labels(trainer.averaged, codebook):
            loaded = LoadedModels(trainer.averaged.eval(), codebook, best.step - 1)
            found["belief"] = belief_figures(loaded, dataset, trainer.config.belief_games, trainer.config.seed)
            part_done()
        overfit = run.path / "eval" / "overfit.json"
        if overfit.exists():
            found["overfit"] = read_json(overfit, UserError)
        write_json(run.path / "eval" / "final.json", plain_json(found))
        run.add_results(results_of(found))
        draw_figures(run, found)
    if not quiet:
        print(describe(found))
    return found


def codebook_or_labels(models: GoalModels, codebook: Codebook | None) -> bool:
    """Whether there are goals that beliefs can be about."""
    return codebook is not None or models.spec.goal_source in ("type", "outcome")


def evaluate_all(
    trainer: OthersTrainer, dataset: Dataset, folder: Path, part_done: Callable[[], None] = lambda: None
) -> tuple[dict[str, Any], Codebook | None]:
    """Scores on every split beside the best possible ones, and what the codes hold."""
    config, models = trainer.config, trainer.averaged
    source = trainer.spec.goal_source
    stage = trainer.final_stage
    report: dict[str, Any] = {"goal_source": source, "spec": trainer.spec.to_dict(), "splits": {}}
    clean_rows = int((dataset.split_of == 0).repeat_interleave(dataset.offsets.diff()).sum())
    report["data"] = {
        "rows": dataset.rows.size,
        "training_rows": trainer.data.train.rows,
        "post_exit_share": 1.0 - clean_rows / trainer.data.train.rows,
    }
    parts: dict[str, tuple[Part, GoalData, Prediction]] = {}
    for name in present_splits(dataset):
        part = dataset.part(name)
        data = goal_data(dataset.game, part, "type", config.horizon, trainer.device, config.paths)
        predicted = predict(models, data, stage)
        parts[name] = (part, data, predicted)
        report["splits"][name] = split_scores(dataset, part, data, predicted)
        part_done()
    if models.vae is None:
        return report, None
    report["vae"] = vae_scores(models, parts["validation"][1])
    report["probes"] = probe_table(models, parts)
    part_done()
    _, data, predicted = parts["train"]
    assert predicted.code is not None
    codebook = codebook_of(models, data, predicted.code, config.seed)
    report["codebook"] = {k: getattr(codebook, k).tolist() for k in ("outcome", "usage", "goal")}
    write_codes(folder / "codes.parquet", *parts["validation"], codebook)
    part_done()
    return report, codebook


def present_splits(dataset: Dataset) -> list[SplitName]:
    """The splits that have rows."""
    names: tuple[SplitName, ...] = ("train", "validation", "test")
    return [name for name in names if bool((dataset.split_of == SPLITS.index(name)).any())]


def split_scores(dataset: Dataset, part: Part, data: GoalData, predicted: Prediction) -> dict[str, Any]:
    """Scores of the models on a split, with and without the goal, and of the exact predictors on the same rows."""
    truth = truth_of(dataset.game, part)
    return {
        "moa": score_actions(predicted.logits, data.action, truth.known).to_dict(),
        "free": score_actions(predicted.free, data.action, truth.known).to_dict(),
        "gain": _gain(part, data, predicted),
        "ceilings": {k: _brief(_exact(getattr(truth, k), part, truth)) for k in ("known", "bayes", "mixture")},
    }


def _gain(part: Part, data: GoalData, predicted: Prediction) -> dict[str, float | None]:
    """How much more often the best guess is right with the goal than without, over sequences of rows."""
    right, free = (x.argmax(-1).cpu() == data.action.cpu() for x in (predicted.logits, predicted.free))
    more = right.double() - free.double()
    sums = torch.cat([more.new_zeros(1), more.cumsum(0)])
    each = (sums[part.offsets[1:]] - sums[part.offsets[:-1]]) / part.offsets.diff()
    value, low, high = (float(x) for x in mean_interval(each.numpy()))
    return {"value": value, "low": None if math.isnan(low) else low, "high": None if math.isnan(high) else high}


def _exact(p: Tensor, part: Part, truth: Truth) -> ActionScores:
    """Scores of an exact predictor; what it excludes never happens."""
    return score_actions(p.clamp_min(1e-30).log(), part.rows.a, truth.known)


def _brief(scores: ActionScores) -> dict[str, float]:
    return {"top1": scores.top1, "top3": scores.top3, "cross_entropy": scores.cross_entropy, "ece": scores.ece}


# --- what is in the codes -----------------------------------------------------------------------------------------


def probe_table(models: GoalModels, parts: dict[str, tuple[Part, GoalData, Prediction]]) -> list[dict[str, Any]]:
    """At some times of an episode: how well type can be read off the code, the situation's code, and its planes."""
    table_rows = []
    for t in PROBE_TIMES:
        table = [_probe_rows(models, *parts[name], t) for name in ("train", "validation")]
        if any(len(labels) < 20 or labels.float().std() == 0 for labels, _ in table):
            continue  # hardly anybody is left at that time
        (train_y, train_x), (test_y, test_x) = table
        probes = {k: linear_probe(train_x[k], train_y, test_x[k], test_y)._asdict() for k in train_x}
        table_rows.append({"t": t, **probes})
    return table_rows


def _probe_rows(
    models: GoalModels, part: Part, data: GoalData, predicted: Prediction, t: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """Types (0 NS, 1 NH) and features of the rows at time t."""
    kinds = part.rows.type
    rows = ((part.rows.t == t) & ((kinds == Kind.NS) | (kinds == Kind.NH))).nonzero().squeeze(1)
    here = rows.to(data.planes.device)
    assert predicted.code is not None and models.vae is not None
    with torch.no_grad():
        state_code = models.vae.encode(data.planes[here]).mean
    features = {"code": predicted.code[here], "state_code": state_code, "state": data.planes[here].flatten(1).float()}
    return (kinds[rows] == Kind.NH).long(), {k: v.cpu() for k, v in features.items()}


def write_codes(path: Path, part: Part, data: GoalData, predicted: Prediction, codebook: Codebook) -> None:
    """Codes of all rows of a split, with what is known about the rows."""
    assert predicted.code is not None
    code = predicted.code
    flat = two_dimensions(code).cpu()
    rows = part.rows
    named = {name: getattr(rows, name).numpy() for name in ("episode", "player", "t", "type", "outcome")}
    named |= {"prototype": codebook.nearest(code).cpu().numpy(), "x": flat[:, 0].numpy(), "y": flat[:, 1].numpy()}
    columns = {name: pa.array(values) for name, values in named.items()}
    numbers = pa.array(code.float().cpu().numpy().reshape(-1))
    columns["code"] = pa.FixedSizeListArray.from_arrays(numbers, code.shape[1])
    with replacing(path) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")


# --- beliefs with the learned models ------------------------------------------------------------------------------


def learned_source(loaded: LoadedModels, game: Any) -> BeliefSource:
    """The models as the source of beliefs: over stag and hare, or over the codebook's prototypes."""
    goals = loaded.goals().to(game.device)
    to_goal = torch.stack([goals.stag, 1 - goals.stag])
    return BeliefSource(LearnedLikelihoods(game, pretrained(loaded)), to_goal, goals.evidence)


def belief_figures(loaded: LoadedModels, dataset: Dataset, games: int, seed: int) -> dict[str, Any]:
    """Beliefs with exact and with learned likelihoods on the same games, on the data's own obstacle maps."""
    device = next(loaded.models.parameters()).device
    if dataset.game.max_block_comp:
        blocks = torch.unique(dataset.rows.obs[..., dataset.game.players].flatten(1).bool(), dim=0)
        game = game_with_blocks(dataset.game, blocks, device)
    else:
        game = make_game(dataset.game, device=device)
    return {
        "exact": measure_beliefs(game, exact_source(game), games, Rngs(seed, device)),
        "learned": measure_beliefs(game, learned_source(loaded, game), games, Rngs(seed, device)),
    }


# --- in a few words -----------------------------------------------------------------------------------------------


def results_of(report: dict[str, Any]) -> dict[str, Any]:
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


def describe(report: dict[str, Any]) -> str:
    """A table of the final scores beside the best possible ones."""
    lines = [f"{'split':<12}{'predictor':<22}{'top-1':>8}{'top-3':>8}{'CE':>8}{'ECE':>8}"]
    for split, scores in report["splits"].items():
        shown = {"model": scores["moa"], "model without goal": scores["free"]}
        shown |= {f"exact, {name}": value for name, value in scores["ceilings"].items()}
        for name, s in shown.items():
            lines.append(
                f"{split:<12}{name:<22}{s['top1']:>8.4f}{s['top3']:>8.4f}{s['cross_entropy']:>8.4f}{s['ece']:>8.4f}"
            )
    for probe in report.get("probes", []):
        kinds = {"code": "code", "state_code": "code of the state", "state": "state"}
        accuracies = ", ".join(
            f"{name} {probe[k]['accuracy']:.3f} ({probe[k]['balanced']:.3f})" for k, name in kinds.items()
        )
        lines.append(f"type read at t = {probe['t']}, right (mean of both types' recalls): {accuracies}; "
                     f"{probe['code']['rows']} rows, {probe['code']['majority']:.0%} of one type")  # fmt: skip
    for name, belief in report.get("belief", {}).items():
        steps = " ".join(f"{value:.3f}" for value in belief["true_type_by_step"][:6])
        after = belief["prior_by_episode"][-1]
        turned = belief["switch"]["share"]
        lines.append(f"belief, {name}: true type by step {steps}; prior after 10 episodes {after:.3f}; "
                     f"turned after a switch {turned:.1%}")  # fmt: skip
    return "\n".join(lines)


# --- pictures ---------------------------------------------------------------------------------------------------------


TYPE_NAMES = {0: "NS", 1: "NH", 2: "RAND"}


def draw_figures(run: Run, report: dict[str, Any]) -> None:
    """losses, epochs, confusion, calibration, and where they exist codes and beliefs."""
    rows = read_metrics(run.path / "metrics.jsonl")
    draw_losses(run, rows)
    draw_epochs(run, rows, report["splits"]["validation"]["ceilings"])
    _predictions(run, report)
    if (run.path / "eval" / "codes.parquet").exists():
        _codes(run)
    if "belief" in report:
        _beliefs(run, report["belief"])


def draw_losses(run: Run, rows: list[dict[str, Any]]) -> None:
    """Three panels against optimiser steps: losses, KL divergence, KL factor."""
    joined: dict[str, list[float]] = {}
    for row in rows:
        for name, values in row.get("curve", {}).items():
            joined.setdefault(name, []).extend(values)
    figure, (left, middle, right) = panels(1, 3, title="Training of the models of others")
    steps = joined["step"]
    shown = {"prediction of actions": "policy", "reconstruction": "recon", "total": "total"}
    lines = {name: Curve(steps, joined[key]) for name, key in shown.items()}
    curves(left, lines, xlabel="optimiser step", ylabel="loss [nats]", title="losses")
    curves(middle, {"KL": Curve(steps, joined["kl"])}, xlabel="optimiser step", ylabel="KL [nats]", title="KL")
    middle.set_yscale("symlog", linthresh=1.0)
    middle.set_ylim(bottom=0.0)
    factor = {"KL factor": Curve(steps, joined["kl_factor"])}
    curves(right, factor, xlabel="optimiser step", ylabel="weight", title="KL factor")
    legend(figure)
    save(figure, run.figure("losses.png"))


def draw_epochs(run: Run, rows: list[dict[str, Any]], ceilings: dict[str, Any]) -> None:
    """Top-1, top-3 and cross-entropy per epoch with the exact predictors as lines."""
    figure, axes = panels(1, 3, title="Predictions of actions, held-out episodes")
    for ax, (key, exact, unit) in zip(
        axes, (("top1", "top1", "share"), ("top3", "top3", "share"), ("ce", "cross_entropy", "nats"))
    ):
        series = {}
        for name, prefix in (("validation", "moa/validation/"), ("training rows", "moa/train/")):
            series[name] = Curve(*column(rows, prefix + key))
        series["without goal"] = Curve(*column(rows, f"moa/validation/free_{key}"))
        curves(ax, series, xlabel="epoch", ylabel=f"{exact.replace('_', '-')} [{unit}]")
        reference_lines(ax, {f"exact, {name}": values[exact] for name, values in ceilings.items()})
    legend(figure)
    save(figure, run.figure("epochs.png"))


def _predictions(run: Run, report: dict[str, Any]) -> None:
    moa = report["splits"]["validation"]["moa"]
    names = [name.removeprefix("hunt ") for name in ACTION_NAMES[: len(moa["confusion"])]]
    figure, (left, right) = panels(1, 2, size=(7.6, 6.0), title="Validation rows")
    confusion(left, moa["confusion"], names, title="true (rows) and predicted (columns)")
    bins = {k: np.array([np.nan if v is None else v for v in values]) for k, values in moa["reliability"].items()}
    reliability(right, Reliability(**bins, error=moa["ece"]), title="calibration of the best guess")
    legend(figure)
    save(figure, run.figure("predictions.png"))


def _codes(run: Run) -> None:
    path = run.path / "eval" / "codes.parquet"
    with trusting(f"{path} does not hold codes"):
        table = read_parquet(path).to_pydict()
    data = {name: np.asarray(values) for name, values in table.items() if name != "code"}
    late = data["t"] >= 2  # before that nobody has shown much
    figure, (left, right) = panels(1, 2, size=(6.0, 5.6), title="Codes of validation rows from t = 2 on")
    by_type = {name: data["type"] == number for number, name in TYPE_NAMES.items()}
    by_outcome = {name: data["outcome"] == number for number, name in enumerate(OUTCOMES)}
    for ax, groups, title in ((left, by_type, "by type"), (right, by_outcome, "by outcome")):
        series = {n: (data["x"][late & m], data["y"][late & m]) for n, m in groups.items() if (late & m).any()}
        scatter(ax, series, xlabel="first component", ylabel="second component", title=title)
        legend(ax)
    save(figure, run.figure("codes.png"))


def _beliefs(run: Run, belief: dict[str, Any]) -> None:
    figure, (left, right) = panels(1, 2, title="Belief in the true type")
    steps = {name: belief[name]["true_type_by_step"] for name in belief}
    curves(left, {k: Curve(range(len(v)), v) for k, v in steps.items()}, xlabel="step", ylabel="probability",
           title="within an episode")  # fmt: skip
    series = {}
    for name, values in belief.items():
        for key, label in (("prior_by_episode", "discount 0.9"), ("prior_by_episode_slow", "discount 0.995")):
            series[f"{name}, {label}"] = Curve(range(len(values[key])), values[key])
    curves(right, series, xlabel="episode", ylabel="probability", title="before the first step of an episode")
    legend(figure)
    save(figure, run.figure("belief.png"))
