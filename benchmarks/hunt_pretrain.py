"""Pretraining on offline rows of msh_4x4: how long it takes, and how good models of others and of the world get.

    python benchmarks/hunt_pretrain.py                      # time of 10 epochs on 107,010 rows
    python benchmarks/hunt_pretrain.py --quality            # models of others: seeds where a gate asks, then the faults
    python benchmarks/hunt_pretrain.py --world              # world models: structured, dense, dense with weights
    python benchmarks/hunt_pretrain.py --quality --folder F --jobs 8   # keeps data and runs in F, 8 trainings at once

Time is that of the training epochs and of their evaluations on held-out rows; CPU seconds are those of all threads.
Quality is on the validation and test episodes; "exact" rows are predictors that know the players' rules, on the same
rows. Means and 95 % intervals are over training seeds on one data set. Finished runs in F are not repeated.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import torch
from machine import commit, describe

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.pretraining.run import load_goal_dataset, make_trainer, pretrain_goals
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.pretrain import pretrain_world
from marlab.lab.runs.run import RunOptions
from marlab.lab.stats import mean_interval

SPEED: dict[str, dict[str, Any]] = {
    "state (the note's: autoencoder and predictor in one)": {"goal_source": "state"},
    "history (2 epochs autoencoder, 8 epochs history encoder and predictor)": {"goal_source": "history"},
}
GATED: dict[str, dict[str, Any]] = {"type": {"goal_source": "type"}, "history": {"goal_source": "history"}}
ONCE: dict[str, dict[str, Any]] = {
    "state": {"goal_source": "state"},
    "state, recon": {"goal_source": "state", "vae_loss": "recon"},
    "state, moa": {"goal_source": "state", "vae_loss": "moa"},
    "none": {"goal_source": "none"},
    "type, no balance": {"goal_source": "type", "class_balance": "none"},
}
FAULTS: dict[str, dict[str, Any]] = {
    "type, double softmax": {"goal_source": "type", "legacy_double_softmax": True},
    "type, rows after exit": {"goal_source": "type", "legacy_post_exit_rows": True},
}
WORLDS: dict[str, dict[str, Any]] = {
    "structured": {},
    "dense": {"model": "dense"},
    "dense, weights 2 2 2 2 1 1 1": {"model": "dense", "channel_weights": (2, 2, 2, 2, 1, 1, 1)},
}


class Job(NamedTuple):
    """One training; `world` says of which kind."""

    world: bool
    folder: Path
    data: Path
    name: str
    seed: int
    changes: dict[str, Any]

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name.replace(', ', '-').replace(' ', '_')}-{self.seed}"

    @property
    def result(self) -> Path:
        return self.path / ("world_report.json" if self.world else "eval/final.json")


def train(job: Job) -> dict[str, Any]:
    """The final figures of a run, which is trained if it is not there yet."""
    if not job.result.exists():
        options = RunOptions(output_dir=job.path, resume=(job.path / "run.json").exists())
        if job.world:
            pretrain_world(PretrainWorldConfig(data=job.data, seed=job.seed, **job.changes), options, quiet=True)
        else:
            pretrain_goals(PretrainGoalsConfig(data=job.data, seed=job.seed, **job.changes), options, quiet=True)
    return json.loads(job.result.read_text())


def train_all(jobs: list[Job], at_once: int, threads: int) -> dict[str, list[dict[str, Any]]]:
    """Final figures of all runs by name, in order of seeds."""
    if at_once == 1:
        found = [train(job) for job in jobs]
    else:
        fresh = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(at_once, fresh, torch.set_num_threads, (threads,)) as pool:
            found = list(pool.map(train, jobs))
    named: dict[str, list[dict[str, Any]]] = {}
    for job, final in zip(jobs, found):
        named.setdefault(job.name, []).append(final)
    return named


def data_in(folder: Path) -> Path:
    """The data set in a folder, collected if it is not there yet."""
    path = folder / "data"
    if not (path / "run.json").exists():
        collect(HuntCollectConfig(rows=107_010), RunOptions(output_dir=path), quiet=True)
    return path


def speed(data: Path, epochs: int) -> None:
    """Time the epochs of both ways to train the autoencoder and the predictor."""
    for name, changes in SPEED.items():
        config = PretrainGoalsConfig(data=data, epochs=epochs, **changes)
        started = time.perf_counter()
        trainer = make_trainer(config, load_goal_dataset(config))
        ready, cpu = time.perf_counter(), time.process_time()
        values: dict[str, Any] = {}
        parts = {"train": 0.0, "evaluate": 0.0}
        for _ in range(epochs):
            values = dict(trainer.iterate())
            parts = {k: v + values[f"time/{k}"] for k, v in parts.items()}
        wall, busy = time.perf_counter() - ready, time.process_time() - cpu
        print(
            f"{name}: {epochs} epochs of {trainer.data.train.rows} training rows in {wall:.1f} s, CPU {busy:.1f} s "
            f"(training {parts['train']:.1f} s, evaluation {parts['evaluate']:.1f} s; loading and tensors before it "
            f"{ready - started:.1f} s); {trainer.updates} steps of about {config.batch_size} rows; validation top-1 "
            f"{values['moa/validation/top1']:.4f}, cross-entropy {values['moa/validation/ce']:.4f}"
        )


def quality(args: argparse.Namespace, folder: Path, data: Path) -> None:
    """Tables over seeds (of the kinds with a gate; the others once), then the faults once each."""
    plan = [(name, changes, args.seeds) for name, changes in GATED.items()]
    plan += [(name, changes, 1) for name, changes in (ONCE | FAULTS).items()]
    jobs = [Job(False, folder, data, name, seed, changes) for name, changes, n in plan for seed in range(n)]
    runs = train_all(jobs, args.jobs, args.threads)
    faults = {name: runs.pop(name) for name in FAULTS}
    print("\npredictions of held-out actions (mean, 95 % interval over seeds)")
    any_run = next(iter(runs.values()))[0]
    for split in ("validation", "test"):
        for name, values in any_run["splits"][split]["ceilings"].items():
            print(f"  {split:<11} exact, {name:<18} " + _row([values]))
        for name, finals in runs.items():
            scores = [final["splits"][split] for final in finals]
            print(f"  {split:<11} {name:<25} " + _row([s["moa"] for s in scores]))
            recalls = [[s["moa"]["per_class"]["recall"][a] for s in scores] for a in (5, 6)]
            print(f"  {'':<11} {'  recall of hunts 5, 6':<25} {_interval(recalls[0])}  {_interval(recalls[1])}")
        free = [final["splits"][split]["free"] for final in runs["history"]]
        print(f"  {split:<11} {'history, goal-free head':<25} " + _row(free))
    _codes_and_beliefs(runs)
    print("\nfaults of the original, one seed each")
    for name, finals in faults.items():
        _fault(name, finals[0])


def world_quality(args: argparse.Namespace, folder: Path, data: Path) -> None:
    """World models on the test episodes, all seeds."""
    jobs = [
        Job(True, folder, data, name, seed, {**changes, "device": args.device})
        for name, changes in WORLDS.items()
        for seed in range(args.seeds)
    ]
    print("\nworld models, test rows (mean, 95 % interval over seeds; worst player where there is one per player)")
    for name, reports in train_all(jobs, args.jobs, args.threads).items():
        tests = [report["splits"]["test"] for report in reports]
        ones = [test["metrics"] for test in tests]
        fives = [test["drift"]["5"] for test in tests]
        shown = {
            "observation MSE": [one["obs_mse"] for one in ones],
            "reward MSE": [one["reward_mse"] for one in ones],
            "position": [min(one["position_accuracy"]) for one in ones],
            "teleport": [max(one["teleport_rate"]) for one in ones],
            "vanish": [max(one["vanish_rate"]) for one in ones],
            "position after 5 steps": [min(five["position_accuracy"]) for five in fives],
        }
        print(f"  {name} ({reports[0]['parameters']:,} parameters)")
        if name.startswith("dense"):  # the same errors under the note's weights and under equal ones
            shown["weighted / unweighted loss"] = [_weighted(one) / one["obs_mse"] for one in ones]
        print("    " + "  ".join(f"{key} {_scientific(values)}" for key, values in shown.items()))


def _weighted(metrics: dict[str, Any]) -> float:
    weights = WORLDS["dense, weights 2 2 2 2 1 1 1"]["channel_weights"]
    return sum(w * e for w, e in zip(weights, metrics["channel_mse"])) / sum(weights)


def _scientific(values: list[float]) -> str:
    mean, low, _ = mean_interval(values)
    return f"{float(mean):.4g}" + (f" ± {float(mean - low):.1g}" if len(values) > 1 else "")


def _row(scores: list[dict[str, Any]]) -> str:
    shown = (("top-1", "top1"), ("top-3", "top3"), ("CE", "cross_entropy"), ("ECE", "ece"))
    return "  ".join(f"{label} {_interval([s[key] for s in scores])}" for label, key in shown)


def _interval(values: list[float]) -> str:
    mean, low, _ = mean_interval(values)
    return f"{float(mean):.4f}" + (f" ± {float(mean - low):.4f}" if len(values) > 1 else "")


def _codes_and_beliefs(runs: dict[str, list[dict[str, Any]]]) -> None:
    print("\ntype read off by a linear probe, validation rows (accuracy; balanced accuracy)")
    for i, probe in enumerate(runs["history"][0]["probes"]):
        told = []
        for key in ("code", "state_code", "state"):
            found = [final["probes"][i][key] for final in runs["history"]]
            accuracy, balanced = ([p[k] for p in found] for k in ("accuracy", "balanced"))
            told.append(f"{key} {_interval(accuracy)}; {_interval(balanced)}")
        print(f"  t = {probe['t']} ({probe['code']['rows']} rows): " + "  |  ".join(told))
    print("\nbelief in the true type by step, prior after 10 episodes (discount 0.9, 0.995), turned after a switch")
    for name, finals in runs.items():
        if "belief" not in finals[0]:
            continue
        for source in ("exact", "learned"):
            found = [final["belief"][source] for final in finals]
            steps = " ".join(f"{sum(f['true_type_by_step'][t] for f in found) / len(found):.3f}" for t in range(6))
            at_four = _interval([f["true_type_by_step"][4] for f in found])
            priors = [_interval([f[key][-1] for f in found]) for key in ("prior_by_episode", "prior_by_episode_slow")]
            turned = _interval([f["switch"]["share"] for f in found])
            print(f"  {name:<11} {source:<8} {steps}; t = 4: {at_four}; {' and '.join(priors)}; turned {turned}")


def _fault(name: str, final: dict[str, Any]) -> None:
    scores = final["splits"]["validation"]
    overfit = final["overfit"]
    excess, verdict = overfit["loss"] - overfit["floor"], "pass" if overfit["passed"] else "FAIL"
    print(f"  {name:<25} " + _row([scores["moa"]]))
    print(
        f"  {'':<25} one batch by heart: {excess:.3f} nats above its noise ({verdict}); "
        f"rows after exit {final['data']['post_exit_share']:.1%} of the training rows"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--world", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="trainings at once")
    parser.add_argument("--device", default="cpu", help="where world models are trained")
    parser.add_argument("--epochs", type=int, default=10, help="of the timing")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    print(f"{describe()}, commit {commit()}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        data = data_in(folder)
        if args.quality:
            quality(args, folder, data)
        if args.world:
            world_quality(args, folder, data)
        if not (args.quality or args.world):
            speed(data, args.epochs)


if __name__ == "__main__":
    main()
