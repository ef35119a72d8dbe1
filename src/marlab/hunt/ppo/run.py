"""What all trainings of the hunt do around the training itself: start, train with checkpoints, keep the evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from marlab.lab.flags import Parsed
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.files import write_json
from marlab.lab.runs.run import Run, detach, run_path
from marlab.lab.runs.trainer import Trainer, drive

C = TypeVar("C")
RESULTS = ("reward", "reward_learners", "seat_spread")
"""What of an evaluation is kept as results of the run."""


class HuntTrainer(Trainer, Protocol):
    """A trainer that can play fresh episodes with what it learnt."""

    def evaluate(self) -> dict[str, Any]:
        """Reports of every seed and over seeds, with drawn ("sampled") and with best actions ("greedy")."""


def start(words: Sequence[str], parsed: Parsed[C], train: Callable[..., Run]) -> int:
    """Train as the command line says, here or in the background; the exit code. `words` follow `marlab hunt train`."""
    command = ["hunt", "train", *words]
    if parsed.options.background:
        path = run_path("hunt", parsed.config, parsed.options, parsed.preset)
        print(f"process {detach(command, path)} works in the background and logs to {path / 'log.txt'}")
        return 0
    return train(parsed.config, parsed.options, preset=parsed.preset, command=["marlab", *command]).exit_code


def train_in(
    run: Run,
    trainer: HuntTrainer,
    *,
    kind: str,
    pattern: str,
    save_every: int,
    show: Sequence[str] = (),
    quiet: bool = False,
) -> None:
    """Train to the end, or go on where a stopped run left; `kind` and `pattern` name its checkpoints."""
    store = CheckpointStore(run.checkpoints, kind, pattern, Keep(last=2))
    drive(trainer, run, store, save_every=save_every, unit="iterations", show=show, quiet=quiet)


def keep_evaluation(run: Run, trainer: HuntTrainer) -> dict[str, Any]:
    """Play fresh episodes, and write them down as evaluation.json and as results of the run."""
    evaluation = trainer.evaluate()
    write_json(run.path / "evaluation.json", evaluation)
    for mode in ("sampled", "greedy"):
        found = evaluation[mode]["over_seeds"]
        run.add_results({f"{name}_{mode}": found[name] for name in RESULTS})
    return evaluation


def describe(evaluation: Mapping[str, Any]) -> str:
    """The evaluation as a short table."""
    lines = [f"{'':<10}{'seed':>6}{'reward':>9}{'learner':>9}  {'per player':<24}{'spread':>7}{'length':>8}  outcomes"]
    for mode in ("sampled", "greedy"):
        for seed, report in evaluation[mode]["seeds"].items():
            players = " ".join(f"{p['value']:.2f}" for p in report["reward_player"])
            outcomes = " ".join(f"{k} {v:.2f}" for k, v in report["outcomes"].items())
            reward, learner = report["reward"]["value"], report["reward_learners"]["value"]
            head = f"{mode:<10}{seed:>6}{reward:>9.3f}{learner:>9.3f}  {players:<24}"
            lines.append(f"{head}{report['seat_spread']:>7.3f}{report['length']:>8.2f}  {outcomes}")
    return "\n".join(lines)
