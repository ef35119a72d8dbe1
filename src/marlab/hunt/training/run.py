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
)
from marlab.hunt.players.evaluation import conclude
from marlab.hunt.players.published import MCTS_END, MCTS_PEAK
from marlab.hunt.ppo.figures import X, draw_outcomes, draw_reward, seed_curve
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.hunt.training.phases import Pipeline, drive_planners, refuse_missing
from marlab.lab.config import Preset
from marlab.lab.progress import stage
from marlab.lab.report.curves import column
from marlab.lab.report.figures import Curve, curves
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.checkpoint import save_checkpoint
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import Interrupted, Run, RunOptions
from marlab.lab.verdict import say


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
    `marlab.hunt.planner.agent.load_hop` reads, checkpoints/ (model_iter_N.pt, the agents, and state_N.pt with
    memory_N.pt to go on from), metrics.jsonl, evaluation.json and figures/training.png.
    """
    refuse_missing(config)
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        pipeline = Pipeline(run, config, quiet=quiet)
        try:
            filled = pipeline.prepare()
            if "P6" not in config.chosen:
                pipeline.finish()
                run.set_verdict(say("hunt.phases_done", phases=", ".join(config.chosen)))
            elif _self_play(run, filled, pipeline, quiet):
                pipeline.finish()
        except Interrupted:
            pipeline.tell_where()
            raise
    return run


def _self_play(run: Run, config: HopTrainConfig, pipeline: Pipeline, quiet: bool) -> bool:
    """P6: the training itself, its evaluation and its gate; False if it was stopped."""

    def tell(text: str) -> None:
        run.log(text)
        if not quiet:
            print(text)

    with stage("self-play begins", quiet=quiet):
        trainer = SelfPlayTrainer(config, tell)
    run.add_stage(
        config.variant,
        lr=config.learn.learning_rate,
        steps=config.total_steps,
        trees=config.plan.trees,
        simulations=config.plan.search.simulations,
    )
    done = drive_planners(trainer, run, quiet=quiet, stay=True)
    trainer.begin_warm()  # who was stopped in the warm start is judged by what it has learnt there
    if done:
        save_checkpoint(run.path / FILE, KIND, trainer.step, {"agents": trainer.agents()})
    run.add_results({"rollbacks": sum(trainer.guard.rollbacks)})
    metrics, figure, title = (
        run.path / "metrics.jsonl",
        run.figure("training.png"),
        f"{config.variant} in the stag hunt",
    )
    evaluation = conclude(
        run,
        trainer,
        config.eval_episodes,
        done=done,
        quiet=quiet,
        draw=lambda: draw_training(metrics, figure, config.game, trainer.seeds, title),
    )
    if not done or evaluation is None or run.stopped:
        return False
    pipeline.judge_self_play(evaluation)
    return True


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
