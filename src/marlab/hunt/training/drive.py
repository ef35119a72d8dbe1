"""Planning agents learn in a run: the warm start, then iterations, both with checkpoints to go on from."""

from __future__ import annotations

from marlab.hunt.planner.agent import KIND, PATTERN
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, EXCESS, REWARD
from marlab.hunt.players.evaluation import keep_time
from marlab.hunt.selfplay.trainer import HopTrainer
from marlab.hunt.selfplay.warm import drive_warm_start
from marlab.lab.runs.checkpoint import Keep
from marlab.lab.runs.run import Run
from marlab.lab.runs.split import SplitStore
from marlab.lab.runs.trainer import drive

SHOWN = (REWARD, BEHAVIOUR_ENTROPY, EXCESS)


def drive_planners(
    trainer: HopTrainer, run: Run, *, quiet: bool, name: str | None = None, stay: bool = False
) -> bool:  # fmt: skip
    """Train until the end (True), or leave the run at a safe point: between two updates of the warm start, two steps of
    the games, or two iterations. With `stay` the run is not left then, and False comes back."""
    size, seeds = trainer.config.eval_episodes, len(trainer.seeds)
    store = SplitStore(run.checkpoints, KIND, PATTERN, Keep(last=2), weights="agents", memory="replay")

    def warm_up() -> bool:
        if trainer.warm is None:
            return True
        if not drive_warm_start(trainer.warm, run, run.checkpoints, quiet=quiet):
            return False
        trainer.begin_warm()
        return True

    def forget_warm_start() -> None:
        for path in run.checkpoints.glob("warm_*.pt"):  # training goes on from its own state now
            path.unlink(missing_ok=True)

    if stay:
        keep_time(run, size, seeds)
    return drive(
        trainer, run, store, save_every=trainer.config.save_every, unit="iterations", show=SHOWN, quiet=quiet,
        name=name, prepare=warm_up, on_save=forget_warm_start, stay=stay,
        on_unit=lambda row: keep_time(run, size, seeds, row) if stay else None,
    )  # fmt: skip
