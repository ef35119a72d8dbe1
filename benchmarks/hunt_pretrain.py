"""Pretraining the models of others on 107,010 rows of msh_4x4: how long it takes, and how good it gets.

    python benchmarks/hunt_pretrain.py                      # time of 10 epochs, autoencoder and predictor together
    python benchmarks/hunt_pretrain.py --quality            # three seeds where a gate asks, and the original's faults
    python benchmarks/hunt_pretrain.py --quality --folder F # keeps data and runs in F; finished runs are not repeated

Time is that of the training epochs and of their evaluations on held-out rows; CPU seconds are those of all threads.
Quality is on the validation and test episodes; "exact" rows are predictors that know the players' rules, on the same
rows. Means and 95 % intervals are over training seeds on one data set.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from machine import commit, describe

from marlab.hunt.collect import CollectConfig, collect
from marlab.hunt.pretrain_goals import PretrainGoalsConfig, load_goal_dataset, make_trainer, pretrain
from marlab.lab.report.intervals import mean_interval
from marlab.lab.run import RunOptions

SPEED: dict[str, dict[str, Any]] = {
    "state (the note's: autoencoder and predictor in one)": {"goal_source": "state"},
    "history (2 epochs autoencoder, 8 epochs history encoder and predictor)": {"goal_source": "history"},
}
GATED: dict[str, dict[str, Any]] = {"type": {"goal_source": "type"}, "history": {"goal_source": "history"}}
ONCE: dict[str, dict[str, Any]] = {
    "state": {"goal_source": "state"},
    "none": {"goal_source": "none"},
    "type, a network per pair": {"goal_source": "type", "share_moa": False},
}
FAULTS: dict[str, dict[str, Any]] = {
    "type, double softmax": {"goal_source": "type", "legacy_double_softmax": True},
    "type, rows after exit": {"goal_source": "type", "legacy_post_exit_rows": True},
    "history, global actions": {"goal_source": "history", "legacy_global_prev_actions": True},
}


def data_in(folder: Path) -> Path:
    """The data set in a folder, collected if it is not there yet."""
    path = folder / "data"
    if not (path / "run.json").exists():
        collect(CollectConfig(rows=107_010), RunOptions(output_dir=path), quiet=True)
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
            f"{ready - started:.1f} s); {trainer.updates} steps of about {config.batch} rows; validation top-1 "
            f"{values['moa/validation/top1']:.4f}, cross-entropy {values['moa/validation/ce']:.4f}"
        )


def final_of(folder: Path, data: Path, name: str, seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """The final figures of a run, which is trained if it is not there yet."""
    path = folder / f"{name.replace(', ', '-').replace(' ', '_')}-{seed}"
    if not (path / "eval" / "final.json").exists():
        options = RunOptions(output_dir=path, resume=(path / "run.json").exists())
        pretrain(PretrainGoalsConfig(data=data, seed=seed, **changes), options, quiet=True)
    return json.loads((path / "eval" / "final.json").read_text())


def quality(folder: Path, data: Path, seeds: int) -> None:
    """Tables over seeds (of the kinds with a gate; the others once), then the faults once each."""
    runs = {name: [final_of(folder, data, name, s, changes) for s in range(seeds)] for name, changes in GATED.items()}
    runs |= {name: [final_of(folder, data, name, 0, changes)] for name, changes in ONCE.items()}
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
    for name, changes in FAULTS.items():
        _fault(name, final_of(folder, data, name, 0, changes))


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
    parser.add_argument("--seeds", type=int, default=3)
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
            quality(folder, data, args.seeds)
        else:
            speed(data, args.epochs)


if __name__ == "__main__":
    main()
