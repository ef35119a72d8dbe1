"""A training of planning agents as a run: phases, checkpoints, evaluation, figure. `train_hop` is its command."""

from __future__ import annotations

from collections.abc import Sequence

from marlab.hunt.planner.agent import FILE, KIND, PATTERN
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, EXCESS, REWARD, describe, keep_evaluation
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.selfplay.figures import draw_training
from marlab.hunt.selfplay.trainer import HopTrainer
from marlab.hunt.training.phases import Pipeline
from marlab.lab.config import Preset
from marlab.lab.runs.checkpoint import CheckpointStore, Keep, save_checkpoint
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive

SHOWN = (REWARD, BEHAVIOUR_ENTROPY, EXCESS)


def train_hop(
    config: HopTrainConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Go through the phases (or resume).

    The run holds phases.json with every gate, phases/ with the runs of earlier phases, agents.pt that
    `marlab.hunt.planner.agent.load_hop` reads, checkpoints/model_iter_N.pt to go on from, metrics.jsonl,
    evaluation.json and figures/training.png.
    """
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        pipeline = Pipeline(run, config, quiet=quiet)
        filled = pipeline.prepare()
        if "P6" in config.chosen:
            _self_play(run, filled, pipeline, quiet)
        pipeline.finish()
    return run


def _self_play(run: Run, config: HopTrainConfig, pipeline: Pipeline, quiet: bool) -> None:
    """P6: the training itself, its evaluation and its gate."""

    def say(text: str) -> None:
        run.log(text)
        if not quiet:
            print(text)

    trainer = HopTrainer(config, say)
    run.add_stage(config.variant, lr=config.learn.learning_rate, steps=config.total_steps, trees=config.plan.trees,
                  simulations=config.plan.search.simulations)  # fmt: skip
    store = CheckpointStore(run.checkpoints, KIND, PATTERN, Keep(last=2))
    drive(trainer, run, store, save_every=config.save_every, unit="iterations", show=SHOWN, quiet=quiet)
    save_checkpoint(run.path / FILE, KIND, trainer.step, {"agents": trainer.agents()})
    evaluation = keep_evaluation(run, trainer.evaluate())
    run.add_results({"rollbacks": sum(trainer.guard.rollbacks)})
    title = f"{config.variant} in the stag hunt"
    draw_training(run.path / "metrics.jsonl", run.figure("training.png"), config.game, trainer.seeds, title)
    if not quiet:
        print(describe(evaluation))
    pipeline.judge_self_play(evaluation)
