"""What a fish training leaves behind at its end: tables, figures, results, the evaluation, a film and the verdict.

It reads the run directory and nothing else, so `marlab draw` makes all of it again. Under a time limit the end is
planned before the training begins: a few steps of an evaluation and one figure are timed, and what the smallest honest
end needs (all figures, and the model beside the best script on one batch of arenas) is kept back.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from marlab.fish.measure.compare import ARENAS, EvalReport, ladder
from marlab.fish.measure.config import PROBES, EvalConfig
from marlab.fish.measure.plots import TrainingReferences, draw_run, plot_step_one_by_type
from marlab.fish.measure.policies import Policy
from marlab.fish.measure.probe import greedy
from marlab.fish.starts.make import export_worst_seeds
from marlab.fish.training import assemble
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.evaluate import evaluate_checkpoint, reference_lines, training_steps
from marlab.fish.training.forecast import time_of_an_episode
from marlab.fish.training.networks import checkpoints
from marlab.fish.training.outputs import STATS
from marlab.lab.device import choose_device
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.progress import stage
from marlab.lab.report.style import time_of_a_figure
from marlab.lab.runs.files import replacing, write_json, write_text
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import Run
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import Sentence, say

FIGURES = 12
"""Figures of a whole run in the time of one: the training curve is also drawn as a GIF."""
MARGIN = 1.3
"""A few steps and one figure stand for all: what is kept back is a little more."""


class Ending:
    """The end of one training."""

    def __init__(self, run: Run, config: FishTrainConfig, device: torch.device, quiet: bool = True) -> None:
        self.run, self.config, self.device, self.quiet = run, config, device, quiet
        self.store = checkpoints(run.path, config)
        self._drawn_at = self._figure_s = 0.0

    # --- before the training --------------------------------------------------------------------------------

    def expect(self, net: ActorCritic) -> None:
        """Keep time back for the end, where there is a limit."""
        if not self.run.budget.limited:
            return
        with stage("planning the end", self.quiet):
            self.run.budget.expect("figures", MARGIN * (FIGURES * time_of_a_figure() + self._time_of_references()))
            if not self.config.measure.skip_final_eval:
                seconds = sum(self._time_of_a_batch(p) for p in (greedy(net), ladder(self.device)["sidestep"]))
                self.run.budget.expect("evaluation", MARGIN * seconds)

    def _time_of_references(self) -> float:
        return 1.5 * self._time_of_a_batch(ladder(self.device)["sidestep"])  # three scripts on half as many arenas

    def _time_of_a_batch(self, policy: Policy) -> float:
        measure = self.config.measure
        cfg = assemble.sea_config(self.config, max(1, measure.eval_multi_fish))
        return time_of_an_episode(policy, cfg, min(ARENAS, measure.eval_multi_episodes), self.device)

    # --- after it -------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Everything that fits into the time that is left. A run that lacks a part counts as interrupted."""
        rows, probes = (read_metrics(self.run.path / file) for file in (STATS, PROBES))
        if not rows:
            self.run.set_verdict(say("fish.not_judged"), say("lab.go_on"))
            return
        with self.run.budget.part("figures"), stage("figures and tables", self.quiet):
            references = self._draw(rows, probes)
        report = None
        if not self.config.measure.skip_final_eval and self.store.steps() and not self.run.signalled:
            with self.run.budget.part("evaluation"):
                report = self._evaluate()
        sentences = _last_probe(probes, references) if report is None else report[1].verdict(report[0])
        self.run.set_verdict(*sentences, self._next(sentences))

    def _next(self, sentences: Sequence[Sentence]) -> Sentence:
        first = sentences[0].key if sentences else ""
        if self.run.unfinished:
            return say("lab.go_on")
        if not first.endswith("_script"):
            return say("fish.next_eval")
        return say("fish.next_watch" if first == "fish.above_script" else "fish.next_who_dies")

    # --- tables and figures ---------------------------------------------------------------------------------

    def _draw(self, rows: list[dict[str, Any]], probes: list[dict[str, Any]]) -> dict[str, float]:
        self._tables(rows, probes)
        self._results(rows, probes)
        if probes:
            export_worst_seeds(probes, self.run.path / "step_one_worst_seeds.json", self.run.path.name)
        references, shorter = reference_lines(self.config, self.device)
        self._stage_summary(rows)
        self._drawn_at, self._figure_s = time.monotonic(), 0.0
        training = TrainingReferences(shorter, training_steps(self.config))
        draw_run(rows, probes, self.run.path, references, training, self._no_time)
        return references

    def _no_time(self) -> bool:
        """Whether the next figure would take too long (as long as the one before); then the run lacks something."""
        now = time.monotonic()
        self._figure_s, self._drawn_at = now - self._drawn_at, now
        fits = self.run.budget.fits(self._figure_s)
        if not fits:
            self.run.stop()
        return not fits

    def _tables(self, rows: list[dict[str, Any]], probes: list[dict[str, Any]]) -> None:
        with replacing(self.run.path / "stats.parquet") as temporary:
            flat = [{k: v for k, v in r.items() if not isinstance(v, dict | list)} for r in rows]
            pq.write_table(pa.Table.from_pylist(flat), temporary)
        write_json(self.run.path / "schedule_trace.json", {"trace": rows})
        if probes:
            lines = [PROBE_COLUMNS, *(_probe_row(probe) for probe in probes)]
            write_text(self.run.table("probes.csv"), "".join(",".join(map(str, line)) + "\n" for line in lines))

    def _stage_summary(self, rows: list[dict[str, Any]]) -> None:
        """Step-one deaths of the whole training by the type of start."""
        totals: dict[str, dict[str, Any]] = {}
        for row in rows:
            for kind, counts in row["step_one_by_type"].items():
                total = totals.setdefault(kind, {"count": 0, "fish": 0})
                total["count"], total["fish"] = total["count"] + counts["count"], total["fish"] + counts["fish"]
        for total in totals.values():
            total["ratio"] = total["count"] / total["fish"] if total["fish"] else None
        write_json(self.run.path / "step_one_stage_summary.json", totals)
        plot_step_one_by_type(totals, self.run.figure(f"{self.run.path.name}_step_one_by_type.png"))

    def _results(self, rows: list[dict[str, Any]], probes: list[dict[str, Any]]) -> None:
        last_rows = rows[-10:]
        ten = _known(last_rows, "survival_rate")
        results: dict[str, Any] = {}
        if ten:
            note = "with exploration, iterations of the last ten in which an episode ended"
            if self.config.starts.force_reset_steps > 0:
                note += f", episodes cut at {self.config.starts.force_reset_steps} steps"
            results["training survival"] = {"value": sum(ten) / len(ten), "unit": "share of fish", "note": note}
            if len(ten) > 1:
                told = "standard deviation over these"
                results["training survival, spread"] = {
                    "value": float(np.std(ten)),
                    "unit": "share of fish",
                    "note": told,
                }
        if first := _known(last_rows, "first_death_step"):
            told = "mean over the last ten iterations, of episodes in which somebody died"
            results["first death"] = {"value": sum(first) / len(first), "unit": "step", "note": told}
        if ratios := _known(last_rows, "step_one_death_ratio"):
            told = "mean over the last ten iterations"
            results["step-one ratio"] = {"value": sum(ratios) / len(ratios), "unit": "share of fish", "note": told}
        if probes:
            last = probes[-1]
            size = f"{last['multi_eval_episodes']} x {last['multi_eval_num_fish']} fish"
            value = last["summary"]["avg_final_survival_rate"]
            results["last probe survival"] = {"value": value, "unit": "share of fish", "note": size}
            ratio = {"value": last["step_one_death_ratio"], "unit": "share of fish", "note": size}
            results["last probe step-one ratio"] = ratio
            if "penalty_gate" in last:
                results["last gate stage"] = last["penalty_gate"]["stage"]
        self.run.add_results(results)

    # --- the evaluation -------------------------------------------------------------------------------------

    def _evaluate(self) -> tuple[int, EvalReport] | None:
        """The last and the best model on arenas that no probe saw; the best one, where there was time, is judged."""
        measure, best = self.config.measure, self.store.best()
        models = {"final": self.store.steps()[-1]} | ({} if best is None else {"best": best[0]})
        judged: tuple[int, EvalReport] | None = None
        for label, step in models.items():
            if judged is not None and step == judged[0]:  # the last model is the best one: it has been played
                self._add_results(label, judged[1])
                break
            if judged is not None and self.run.must_stop():
                self.run.stop()
                break
            file = self.store.path(step)
            settings = EvalConfig(
                str(file), measure.eval_multi_episodes, measure.eval_multi_fish, measure.final_eval_seed_base,
                film_fish=measure.video_num_fish, film_steps=measure.video_max_steps, film_fps=measure.video_fps,
                device=self.config.device,
            )  # fmt: skip
            folder = self.run.path / "eval" / f"{label}_iter_{step}"
            report = evaluate_checkpoint(
                file, settings, folder, judged[1] if judged else None, run=self.run, quiet=self.quiet
            )
            if report is None or (judged is not None and not report.complete):
                break  # the key figure is of the model that the verdict is about
            judged = step, report
            self._add_results(label, report)
        return judged

    def _add_results(self, label: str, report: EvalReport) -> None:
        self.run.add_results({f"{label} model: {name}": value for name, value in report.results().items()})
        self.run.add_cases(f"{label} model: survival", {self.config.seed: report.cases()})


PROBE_COLUMNS = (
    "iteration", "survival", "worst arena", "of the savable", "step-one deaths", "step-one ratio", "doomed ratio",
    "early deaths", "death p10", "penalty", "boost", "gate", "stage",
)  # fmt: skip


def _probe_row(probe: Mapping[str, Any]) -> list[Any]:
    gate = probe.get("penalty_gate", {})
    values = (
        probe["iteration"], probe["summary"]["avg_final_survival_rate"], probe["summary"]["min_final_survival_rate"],
        probe.get("saved_share"), probe["step_one_death_count"], probe["step_one_death_ratio"],
        probe.get("doomed_ratio"), probe["death_stats"]["early_death_fraction_100"], probe["death_stats"]["p10"],
        probe["density_penalty_coef"], probe["escape_boost_speed"], gate.get("event"), gate.get("stage"),
    )  # fmt: skip
    return ["" if v is None else round(v, 4) if isinstance(v, float) else v for v in values]


def _known(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [row[name] for row in rows if row.get(name) is not None]


def _last_probe(probes: Sequence[Mapping[str, Any]], references: Mapping[str, float]) -> list[Sentence]:
    """How the last probe went, beside the best script."""
    if not probes:
        return [say("fish.not_judged")]
    last = probes[-1]
    shares = [e["final_num_alive"] / last["multi_eval_num_fish"] for e in last["episodes"]]
    mean, low, high = (float(x) for x in mean_interval(shares))
    return [
        say(
            "fish.probe", iteration=last["iteration"], survival=mean, interval=(low, high), episodes=len(shares),
            fish=last["multi_eval_num_fish"], script="sidestep", script_survival=references["sidestep"],
        )
    ]  # fmt: skip


def draw(run: Run, config: FishTrainConfig, quiet: bool) -> None:
    """The end of a training made again, on the device that there is."""
    Ending(run, replace(config, device="auto"), choose_device("auto"), quiet).finish()
