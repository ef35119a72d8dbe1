"""The loop that every trainer shares: units of work, metrics, checkpoints, safe points and resumption."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Protocol

from marlab.lab.progress import Progress
from marlab.lab.runs.budget import announce
from marlab.lab.runs.checkpoint import CheckpointStore, building
from marlab.lab.runs.metrics import MetricsWriter
from marlab.lab.runs.run import Run
from marlab.lab.runs.rungs import reached, stopped_after

MOST_LOGGED = 8
"""Metrics of a unit in log.txt; metrics.jsonl has all of them."""


class Halfway(Exception):
    """Raised inside a unit that was asked to stop; the trainer can be saved there and takes the unit up again."""


class Trainer(Protocol):
    """Something that learns in units (iterations, epochs) and can be saved between any two of them.

    One with an attribute `stopped` that is True has nothing left to do before `total`, for example because validation
    no longer improves; one with `improved` that is True after a unit is saved then. One whose units are long has an
    attribute `should_stop`, which the loop sets, asks it inside a unit, and raises `Halfway` where it says so. One with
    `chooses_best` that is True gives a score only to a unit that is better than all before it, whatever its number.
    """

    step: int
    """Units done so far."""
    total: int
    """Units to do in all."""

    def iterate(self) -> Mapping[str, Any]:
        """Do one unit, advance `step`, and return its metrics (the key "score" marks what best means)."""
        ...

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


def unit_line(label: str, unit: str, trainer: Trainer, values: Mapping[str, Any], show: Sequence[str] = ()) -> str:
    """What a log says of a unit: `L2 | epoch 3/40 | train/loss 0.42 | val/loss 0.57`, what is shown first."""
    names = [*show, *(name for name in values if name not in show and not name.startswith("time/"))]
    numbers = [(name, values[name]) for name in names if isinstance(values.get(name), int | float)][:MOST_LOGGED]
    told = (f"{name.removeprefix(f'{label}/')} {value:.4g}" for name, value in numbers)
    return " | ".join([label, f"{unit.removesuffix('s')} {trainer.step}/{trainer.total}", *told])


def complete(trainer: Trainer) -> bool:
    """Whether there is nothing left to do."""
    return trainer.step >= trainer.total or bool(getattr(trainer, "stopped", False))


def loop(
    trainer: Trainer, *, log: Callable[[Mapping[str, Any]], None], should_stop: Callable[[], bool] = lambda: False,
    save: Callable[[float | None], None] | None = None, save_halfway: Callable[[], None] | None = None,
    save_every: int = 1, bar: Progress | None = None, show: Sequence[str] = (),
) -> bool:  # fmt: skip
    """Units until the training is complete (True), or until it should stop (False); the last one done is saved then.

    `log` gets the metrics of every unit. `save` gets the unit's score; it is called after every `save_every` units, for
    every unit with a score or an improvement, and for the last one; `save_halfway` where a unit stops in its middle.
    `show`: metrics whose newest value stands beside the progress bar, under the last part of their name.
    """
    if hasattr(trainer, "should_stop"):
        trainer.should_stop = should_stop
    with bar or nullcontext():
        while not complete(trainer):
            try:
                values = dict(trainer.iterate())
            except Halfway:
                if save_halfway is not None:
                    save_halfway()
                return False
            log(values)
            if bar is not None:
                shown = {name.rpartition("/")[2]: values[name] for name in show if values.get(name) is not None}
                bar.show(**shown)
                bar.advance(1)
            stopping, score = should_stop(), values.get("score")
            worth = score is not None or bool(getattr(trainer, "improved", False))
            due = stopping or worth or trainer.step % save_every == 0 or complete(trainer)
            if save is not None and due:
                save(score)
            if stopping and not complete(trainer):
                return False
    return True


def restore(
    trainer: Trainer, run: Run, store: CheckpointStore, device: Any = "cpu",
    on_save: Callable[[], None] | None = None,
) -> None:  # fmt: skip
    """Continue a resumed run from its newest usable checkpoint. What follows from a checkpoint (which one is the best,
    and what `on_save` writes) is done once more: a kill may have come between it and them."""
    if not run.resumed:
        return
    checkpoint, problems = store.load_latest(device)
    for problem in problems:
        run.log(problem)
        print(f"{problem} The checkpoint before it is used.")
    if checkpoint is not None:
        if checkpoint.note:
            run.log(checkpoint.note)
            print(checkpoint.note)
        with building(checkpoint.path, "the state of this training"):
            trainer.load_state_dict(checkpoint.state)
        if not store.is_halfway(checkpoint):
            store.settle(checkpoint.step, checkpoint.score, chosen=getattr(trainer, "chooses_best", False))
            if on_save is not None:
                on_save()
    run.log(f"resumed at step {trainer.step}")


def drive(
    trainer: Trainer, run: Run, store: CheckpointStore, *, save_every: int, unit: str, show: Sequence[str] = (),
    quiet: bool = False, name: str | None = None, metrics: MetricsWriter | None = None, first_step: int = 0,
    on_save: Callable[[], None] | None = None, prepare: Callable[[], bool] | None = None, device: Any = "cpu",
    on_unit: Callable[[Mapping[str, Any]], None] | None = None, stay: bool = False,
) -> bool:  # fmt: skip
    """Train in a run until the training is complete (True), or leave the run at a safe point when it should stop.

    Every unit is a line of log.txt.

    With `stay` the run is not left then: it counts as interrupted, and False comes back, so that the caller can still
    write figures and results of what was done (with the time that it kept back by `run.budget.expect`).

    A run of several trainings passes one writer of `metrics` to all of them, with the steps of those before as
    `first_step`. `on_unit` is called with the metrics of every unit, `on_save` after every checkpoint and when training
    goes on from one, for example to write bare weights beside it: it must come to the same whenever it is called with
    the same state. `prepare` before the first unit, when it is known where training goes on from; False
    from it stops the training there.
    """
    restore(trainer, run, store, device, on_save)
    if prepare is not None and not prepare():
        return _stopped(run, stay)
    writer = metrics or run.metrics(resume_step=trainer.step if run.resumed else None)
    run.set_total(first_step + trainer.total)

    def save(score: float | None) -> None:
        with run.budget.part("saving"):
            began = time.monotonic()
            writer.flush()  # a checkpoint implies the metrics up to it: after a power cut they must be there
            store.save(trainer.step, trainer.state_dict(), score, chosen=getattr(trainer, "chooses_best", False))
            if on_save is not None:
                on_save()
        run.budget.expect("saving", time.monotonic() - began)

    def enough() -> bool:
        return not complete(trainer) and reached(run.path, first_step + trainer.step)

    bar = Progress(name or run.path.name, total=trainer.total, done=trainer.step, unit=unit, quiet=quiet)
    first, ended = trainer.step, list[float]()

    def log(values: Mapping[str, Any]) -> None:
        writer.log(first_step + trainer.step, values)
        run.log(unit_line(bar.label, unit, trainer, values, show))
        if on_unit is not None:
            on_unit(values)
        ended.append(time.monotonic())
        if trainer.step == first + 2:  # the first unit says little about the rest
            announce((ended[1] - ended[0]) * (trainer.total - trainer.step), run.budget, say=bar.say)

    def should_stop() -> bool:
        return run.should_stop() or enough()

    done = not enough() and loop(
        trainer, log=log, should_stop=should_stop, save=save, save_every=save_every, bar=bar, show=show,
        save_halfway=lambda: store.save_halfway(trainer.step, trainer.state_dict()),
    )  # fmt: skip
    run.budget.expect("saving", 0.0)
    rung = stopped_after(first_step + trainer.step) if enough() else None
    # A rung is left at once: figures and evaluations are made by whoever goes on.
    return done or _stopped(run, stay and rung is None, rung)


def _stopped(run: Run, stay: bool, reason: str | None = None) -> bool:
    run.stop(reason)
    if not stay:
        run.leave()
    return False
