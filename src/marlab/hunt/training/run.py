"""A training of planning agents as a run: phases, checkpoints, evaluation, figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from marlab.hunt.game.config import GameConfig
from marlab.hunt.planner.agent import FILE, KIND
from marlab.hunt.players.episodes import (
    BEHAVIOUR_ENTROPY,
    BETA,
    ENV_STEPS,
    EXCESS,
    ONLINE_CROSS_ENTROPY,
    SCALED_SPREAD,
    describe,
    keep_evaluation,
)
from marlab.hunt.players.published import MCTS_END, MCTS_PEAK
from marlab.hunt.ppo.figures import X, draw_outcomes, draw_reward, seed_curve
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.selfplay.trainer import HopTrainer
from marlab.hunt.training.drive import drive_planners
from marlab.hunt.training.phases import Pipeline
from marlab.lab.config import Preset
from marlab.lab.report.curves import column
from marlab.lab.report.figures import Curve, curves
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.checkpoint import save_checkpoint
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import Run, RunOptions


def train_hop(
    config: HopTrainConfig, options: RunOptions | None = None, *, preset: Preset | None = None,
    command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Go through the phases (or resume).

    The run holds phases.json with every gate, phases/ with the runs of earlier phases, agents.pt that
    `marlab.hunt.planner.agent.load_hop` reads, checkpoints/ (model_iter_N.pt, the agents, and state_N.pt with
    memory_N.pt to go on from), metrics.jsonl, evaluation.json and figures/training.png.
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
    drive_planners(trainer, run, quiet=quiet)
    save_checkpoint(run.path / FILE, KIND, trainer.step, {"agents": trainer.agents()})
    evaluation = keep_evaluation(run, trainer.evaluate())
    run.add_results({"rollbacks": sum(trainer.guard.rollbacks)})
    title = f"{config.variant} in the stag hunt"
    draw_training(run.path / "metrics.jsonl", run.figure("training.png"), config.game, trainer.seeds, title)
    if not quiet:
        print(describe(evaluation))
    pipeline.judge_self_play(evaluation)


def draw_training(metrics: Path, out: Path, game: GameConfig, seeds: Sequence[int], title: str) -> Path:
    """Draw a run's metrics against game steps per seed."""
    rows = read_metrics(metrics)
    figure, (reward, outcomes, behaviour, plans) = panels(2, 2, size=(9.0, 3.8), title=title)
    published = {"the original's HOP+-MCTS, highest": MCTS_PEAK, "the original's HOP+-MCTS, end": MCTS_END}
    draw_reward(reward, rows, seeds, game, published)
    draw_outcomes(outcomes, rows, seeds, game)
    shown = {
        "behaviour entropy": seed_curve(rows, seeds, BEHAVIOUR_ENTROPY),
        "cross-entropy of the models of others": seed_curve(rows, seeds, ONLINE_CROSS_ENTROPY),
        "excess over the floor": seed_curve(rows, seeds, EXCESS),
    }
    known = {name: curve for name, curve in shown.items() if np.isfinite(curve.y).any()}
    curves(behaviour, known, xlabel=X, ylabel="nats", title="Behaviour and its prediction")
    steps = column(rows, ENV_STEPS)
    sharp = {
        "beta x normalised spread": Curve(steps, column(rows, BETA) * column(rows, SCALED_SPREAD)),
        "Q-spread, reward units": Curve(steps, column(rows, "plan/q_spread")),
        "improvement, reward units": Curve(steps, column(rows, "plan/improvement")),
    }
    curves(plans, sharp, xlabel=X, ylabel="", title="How sharp plans are")
    for axis in (outcomes, behaviour, plans):
        legend(axis)
    return save(figure, out)
