"""The loop that every trainer shares: units of work, metrics, checkpoints, safe points and resumption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from marlab.lab.progress import Progress
from marlab.lab.runs.checkpoint import CheckpointStore
from marlab.lab.runs.metrics import MetricsWriter
from marlab.lab.runs.run import Run


class Trainer(Protocol):
    """Something that learns in units (iterations, epochs) and can be saved between any two of them."""

    step: int
    """Units done so far."""
    total: int
    """Units to do in all."""

    def iterate(self) -> Mapping[str, Any]:
        """Do one unit, advance `step`, and return its metrics (the key "score" marks what best means)."""
        ...

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def restore(trainer: Trainer, run: Run, store: CheckpointStore) -> MetricsWriter:
    """Continue a resumed run from its newest usable checkpoint; returns the metrics writer to go on with."""
    if not run.resumed:
        return run.metrics()
    checkpoint, problems = store.load_latest()
    for problem in problems:
        run.log(problem)
        print(f"{problem} The checkpoint before it is used.")
    if checkpoint is not None:
        trainer.load_state_dict(checkpoint.state)
    run.log(f"resumed at step {trainer.step}")
    return run.metrics(resume_step=trainer.step)


def drive(
    trainer: Trainer,
    run: Run,
    store: CheckpointStore,
    *,
    save_every: int,
    unit: str,
    show: Sequence[str] = (),
    quiet: bool = False,
) -> None:
    """Work until `total`, or until the run should stop; the last unit done is always in a checkpoint then.

    `show`: metrics whose newest value stands beside the progress bar, under the last part of their name.
    """
    metrics = restore(trainer, run, store)
    saved = trainer.step
    with Progress(run.path.name, total=trainer.total, done=trainer.step, unit=unit, quiet=quiet) as bar:
        while trainer.step < trainer.total:
            values = dict(trainer.iterate())
            score = values.get("score")
            metrics.log(trainer.step, values)
            bar.show(**{name.rpartition("/")[2]: values[name] for name in show if values.get(name) is not None})
            bar.advance(1)
            stopping = run.should_stop()
            if stopping or score is not None or trainer.step % save_every == 0 or trainer.step == trainer.total:
                store.save(trainer.step, trainer.state_dict(), score)
                saved = trainer.step
            if stopping and trainer.step < trainer.total:
                assert saved == trainer.step
                run.leave()
