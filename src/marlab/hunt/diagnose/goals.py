"""Diagnosis of the models of others: the goal VAE, the predictor of actions (MOA), and beliefs computed with them.

Everything is measured anew from the saved models and the data; only loss curves and what was trained on come from
the run's own record.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from marlab.hunt.data.dataset import Dataset, Part, load_dataset
from marlab.hunt.diagnose.parts import Check, Section, Table, fitting_weights
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.others.models import LoadedModels, load_goal_models
from marlab.hunt.others.vae import recon_error
from marlab.hunt.players.published import CONFUSION, TOP1, TOP3, VAE_LOSSES
from marlab.hunt.players.seats import Kind
from marlab.hunt.pretraining.answers import Prediction, Stage, predict, vae_scores
from marlab.hunt.pretraining.data import GoalData, goal_data
from marlab.hunt.pretraining.floor import Truth, truth_of
from marlab.hunt.pretraining.metrics import ActionScores, class_table, score_actions
from marlab.hunt.pretraining.report import belief_figures, codebook_or_labels, probe_table
from marlab.hunt.pretraining.run import overfit_one_batch
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_table, trusting
from marlab.lab.runs.metrics import read_metrics

ORIGINAL = class_table(CONFUSION)
PROBE_TIME = 4
FINAL_STAGE: dict[str, Stage] = {"history": "history", "state": "vae"}
OVERFIT_ROWS, OVERFIT_STEPS = 128, 200
"""One batch by heart where the run has no record of it."""


@dataclass(frozen=True)
class Judged:
    """One split with what the models say about it."""

    part: Part
    data: GoalData
    predicted: Prediction
    truth: Truth
    scores: ActionScores  # given the goal
    free: ActionScores  # without a goal

    def exact(self, name: str) -> ActionScores:
        """Scores of an exact predictor on the same rows: known, bayes or mixture."""
        p: Tensor = getattr(self.truth, name)
        return score_actions(p.clamp_min(1e-30).log(), self.part.rows.a, self.truth.known)


@dataclass(frozen=True)
class GoalRun:
    """A run of `hunt pretrain vae`, opened."""

    name: str
    path: Path
    config: PretrainGoalsConfig
    loaded: LoadedModels
    dataset: Dataset
    record: dict[str, Any]  # eval/final.json
    metrics: list[dict[str, Any]]

    @property
    def stage(self) -> Stage:
        return FINAL_STAGE.get(self.loaded.spec.goal_source, "labels")

    @property
    def learnt_after_exit(self) -> float:
        """Share of the rows it learnt from whose player had left."""
        return float(self.record["data"]["post_exit_share"])

    def judge(self, split: Any) -> Judged:
        part = self.dataset.part(split)
        data = goal_data(self.dataset.game, part, "type", self.config.horizon, "cpu", paths=self.loaded.spec.paths)
        predicted = predict(self.loaded.models, data, self.stage)
        truth = truth_of(self.dataset.game, part)
        scores = score_actions(predicted.logits, data.action, truth.known)
        return Judged(part, data, predicted, truth, scores, score_actions(predicted.free, data.action, truth.known))


def open_goal_run(path: Path, name: str, data: Path | None) -> GoalRun:
    """Load everything that a diagnosis needs; what is missing or of another game is refused."""
    stored = read_table(path / "config.json", UserError)
    config = from_dict(PretrainGoalsConfig, stored, f"{path / 'config.json'}")
    dataset = load_dataset(data or config.data)
    with fitting_weights(path):
        loaded = load_goal_models(path, dataset.game)
    record = read_table(path / "eval" / "final.json", UserError)
    return GoalRun(name, path, config, loaded, dataset, record, read_metrics(path / "metrics.jsonl"))


# --- measuring ------------------------------------------------------------------------------------------------------


def diagnose_goals(run: GoalRun, gates: Gates, belief_games: int) -> tuple[Section, dict[str, Judged]]:
    """Checks and tables of a run; pictures are drawn from the judged splits."""
    splits = {name: run.judge(name) for name in ("train", "validation")}
    section = Section(f"Models of others {run.name} (goals from: {run.loaded.spec.goal_source})")
    validation = splits["validation"]
    section.checks = _moa_checks(run, splits, gates)
    section.tables = [_score_table(splits), _class_scores(validation.scores), _by_type(validation)]
    section.figures = {
        "moa": {name: judged.scores.to_dict() for name, judged in splits.items()},
        "free": {name: judged.free.to_dict() for name, judged in splits.items()},
    }
    if run.loaded.models.vae is not None:
        _add_vae(run, splits, gates, section)
    section.tables.append(_loss_table(run))
    if belief_games and codebook_or_labels(run.loaded.models, run.loaded.codebook):
        _add_beliefs(run, gates, belief_games, section)
    best = validation.exact("known").top1
    wanted = next(check.gate for check in section.checks if check.name == "top-1")
    if best < wanted:
        section.remarks.append(
            f"On these {validation.scores.rows} validation rows even the exact rules reach only top-1 {best:.3f}; "
            "the gate cannot be met by anybody, collect more rows."
        )
    return section, splits


def _moa_checks(run: GoalRun, splits: dict[str, Judged], gates: Gates) -> list[Check]:
    validation = splits["validation"]
    scores, source = validation.scores, run.loaded.spec.goal_source
    typed, latent = source == "type", run.loaded.models.vae is not None
    needs = ("data", "goal VAE") if latent else ("data",)
    one, three = (gates.top1_typed, gates.top3_typed) if typed else (gates.top1, gates.top3)
    checks = [
        Check("MOA", "top-1", scores.top1, one, "at least", ORIGINAL.accuracy, needs, run.name),
        Check("MOA", "top-3", scores.top3, three, "at least", TOP3[-1], needs, run.name),
        Check("MOA", "one batch by heart", _overfit(run), gates.overfit, "at most", None, ("data",), run.name),
    ]
    if run.loaded.spec.goal_width:
        # Neither goals nor codes matter here: what is left is the predictor, its inputs and its labels.
        lost = validation.free.cross_entropy - validation.exact("mixture").cross_entropy
        checks.append(
            Check("MOA", "excess without goal", lost, gates.free_excess, "at most", None, ("data",), run.name)
        )
    if typed:
        checks.append(Check("MOA", "calibration error", scores.ece, gates.ece, "at most", None, needs, run.name))
    if source == "history":
        value = scores.cross_entropy
        checks.append(Check("MOA", "cross-entropy", value, gates.cross_entropy, "at most", None, needs, run.name))
    return checks


def _overfit(run: GoalRun) -> float:
    """Nats above the label noise after learning one batch by heart, as recorded or else tried now."""
    record = run.path / "eval" / "overfit.json"
    if record.exists():
        test = read_table(record, UserError)
        with trusting(f"{record} does not tell a loss"):
            return float(test["loss"] - test["floor"])
    data = goal_data(
        run.dataset.game, run.dataset.part("train"), run.config.goal_source, run.config.horizon, "cpu",
        paths=run.loaded.spec.paths,
    )  # fmt: skip
    return overfit_one_batch(run.config, run.loaded.spec, data, OVERFIT_ROWS, OVERFIT_STEPS).excess


def _score_table(splits: dict[str, Judged]) -> Table:
    rows: list[tuple[Any, ...]] = []
    for name, judged in splits.items():
        shown = {"MOA": judged.scores, "MOA without goal": judged.free}
        shown |= {f"exact, {label}": judged.exact(key) for key, label in EXACT.items()}
        for label, s in shown.items():
            rows.append((name, label, s.top1, s.top3, s.cross_entropy, s.ece, s.excess))
        stay = judged.scores.table.majority
        rows.append((name, "always the most frequent action", stay, None, None, None, None))
    rows.append(("its training rows", "original, last epoch", TOP1[-1], TOP3[-1], None, None, None))
    header = ("rows", "predictor", "top-1", "top-3", "cross-entropy [nats]", "calibration error", "excess [nats]")
    return Table("Predictions of actions, ceiling and floor", header, rows)


EXACT = {"known": "type known", "bayes": "Bayes within the episode", "mixture": "type unknown"}


def _class_scores(scores: ActionScores) -> Table:
    ours = scores.table
    rows: list[tuple[Any, ...]] = [
        (ACTION_NAMES[a], int(ours.count[a]), *(float(getattr(t, k)[a]) for k in KEYS for t in (ours, ORIGINAL)))
        for a in range(len(ours.confusion))
    ]
    rows.append(("macro", ours.rows, *(t.macro(getattr(t, k)) for k in KEYS for t in (ours, ORIGINAL))))
    header = ("action", "rows", *(name for k in KEYS for name in (k, f"{k} (original)")))
    return Table("Per action, validation rows", header, rows)


KEYS = ("ratio", "precision", "recall", "f1")


def _by_type(judged: Judged) -> Table:
    """Excess over the players' own randomness, type by type: what self-play with known players may lose at most."""
    rows: list[tuple[Any, ...]] = []
    for kind in (Kind.NS, Kind.NH, Kind.RAND):
        which = judged.part.rows.type == kind
        if bool(which.any()):
            s = score_actions(judged.predicted.logits[which], judged.data.action[which], judged.truth.known[which])
            rows.append((kind.name, s.rows, s.top1, s.top3, s.cross_entropy, s.floor, s.excess, 0.15))
    header = ("players", "rows", "top-1", "top-3", "cross-entropy", "floor", "excess", "most for planning")
    return Table("Predictions by type of player, validation rows [nats]", header, rows)


# --- codes ----------------------------------------------------------------------------------------------------------


def _add_vae(run: GoalRun, splits: dict[str, Judged], gates: Gates, section: Section) -> None:
    models = run.loaded.models
    validation = splits["validation"]
    scores = vae_scores(models, validation.data)
    share = scores["recon"] / _mean_situation_error(splits, models.spec.map_plane)
    parts = {name: (judged.part, judged.data, judged.predicted) for name, judged in splits.items()}
    probes = probe_table(models, parts)
    late = next((p for p in probes if p["t"] == PROBE_TIME), None)
    gain = None if late is None else late["code"]["balanced"] - late["state"]["balanced"]
    predictor = ("data", "MOA/one batch by heart", "MOA/excess without goal")  # codes are learnt through it
    checks: list[Check] = [
        Check("goal VAE", "type read from code beyond situation, t = 4", gain, gates.probe_gain, "at least", None,
              predictor, run.name),
        Check("goal VAE", "units in use", float(scores["active_units"]), gates.active_units, "at least", None,
              ("data",), run.name),
    ]  # fmt: skip
    if run.config.vae_loss != "moa":
        figure = ("goal VAE", "reconstruction error of the mean situation's", share, gates.reconstruction)
        checks.append(Check(*figure, "at most", None, ("data",), run.name))  # type: ignore[arg-type]
    section.checks = checks + section.checks
    section.figures |= {"vae": scores, "probes": probes, "reconstruction_share": share}
    planes = [*(f"player {k + 1}" for k in range(run.dataset.game.players)), "obstacles", "stags", "hares"]
    recall = [(name, scores.get(f"recall/{c}")) for c, name in enumerate(planes)]
    section.tables += [
        Table("Occupied cells that the reconstruction shows, validation rows", ("plane", "share"), recall),
        _probes(probes),
    ]


def _mean_situation_error(splits: dict[str, Judged], leave_out: int | None) -> float:
    """Reconstruction error of the training rows' mean situation, which needs no code at all."""
    mean = splits["train"].data.planes.float().mean(0).clamp(1e-6, 1 - 1e-6)
    planes = splits["validation"].data.planes
    return recon_error(torch.logit(mean).expand(planes.shape), planes, "bce", leave_out).item()


def _probes(probes: list[dict[str, Any]]) -> Table:
    sources = {"code": "code", "state_code": "code of the situation", "state": "situation"}
    rows = [(p["t"], p["code"]["rows"], *(p[k]["balanced"] for k in sources), p["code"]["majority"]) for p in probes]
    header = ("t", "rows", *sources.values(), "most frequent type (plain accuracy)")
    return Table("Type read by a linear probe, mean of both types' recalls", header, rows)


def _loss_table(run: GoalRun) -> Table:
    last = run.metrics[-1] if run.metrics else {}
    names = {"recon": "loss/recon", "policy": "loss/policy", "total": "loss/total", "kl": "loss/kl"}
    rows: list[tuple[Any, ...]] = [
        (f"ours ({run.config.vae_loss}), {last.get('stage', '')} stage", *(last.get(key) for key in names.values()),
         last.get("kl_factor"), last.get("updates"))
    ]  # fmt: skip
    titles = {"recon": "original", "moa": "original, actions only", "restored": "original, reconstruction put back"}
    rows += [(titles[key], v.recon, v.policy, v.total, v.kl, v.factor, v.steps) for key, v in VAE_LOSSES.items()]
    header = ("training", "reconstruction", "policy", "total", "KL [nats]", "KL factor", "optimiser steps")
    return Table("Losses at the end of training", header, rows)


# --- beliefs --------------------------------------------------------------------------------------------------------


def belief_bar(exact: float, share: float) -> float:
    """What a learned belief in the true type must reach where the exact rules reach `exact`.

    Four steps tell less on a large grid with obstacles than on a small one, and no model can know more than they tell:
    it is asked for a share of the exact belief's distance from an even guess.
    """
    return 0.5 + share * (exact - 0.5)


def _add_beliefs(run: GoalRun, gates: Gates, games: int, section: Section) -> None:
    beliefs = run.record.get("belief") or belief_figures(run.loaded, run.dataset, games, run.config.seed)
    exact, learned = beliefs["exact"], beliefs["learned"]
    steps = {name: values["true_type_by_step"] for name, values in beliefs.items()}
    bar = belief_bar(steps["exact"][4], gates.belief_learned)
    section.checks += [
        Check("belief", "true type at t = 4, exact rules", steps["exact"][4], gates.belief_step, "at least",
              run=run.name),
        Check("belief", "prior after 10 episodes, exact rules", exact["prior_by_episode"][-1], gates.belief_prior,
              "at least", run=run.name),
        Check("belief", "true type at t = 4, learned MOA", steps["learned"][4], bar, "at least", None,
              ("data", "goal VAE", "MOA"), run.name),
    ]  # fmt: skip
    section.figures["belief"] = beliefs
    rows: list[tuple[Any, ...]] = [(t, steps["exact"][t], steps["learned"][t]) for t in range(len(steps["exact"]))]
    section.tables.append(Table("Belief in the true type, by step", ("t", "exact rules", "learned MOA"), rows))
    more = [
        (name, v["prior_by_episode"][-1], v["prior_by_episode_slow"][-1], v["switch"]["share"],
         v["switch"]["mean_steps"])
        for name, v in (("exact rules", exact), ("learned MOA", learned))
    ]  # fmt: skip
    header = ("likelihoods", "prior, 10 episodes, discount 0.9", "discount 0.995", "turned after a switch", "in steps")
    section.tables.append(Table("Belief across episodes and after a change of goal", header, more))
