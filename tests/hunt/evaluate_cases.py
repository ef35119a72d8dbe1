"""Tiny trained agents on disk, for tests of whatever lets agents meet."""

from __future__ import annotations

from pathlib import Path

from marlab.hunt.evaluate.play import Cell, SeatingPlan, Starts, Stream, play_stream, seat_all
from marlab.hunt.game.config import game_config
from marlab.hunt.planner.agent import KIND, PATTERN
from marlab.hunt.planner.config import PlanConfig
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.train import train_ppo
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.search.config import SearchConfig
from tests.hunt.helpers import seeded, small_game


def ppo_run(out: Path, seeds: str = "0,3") -> Path:
    """A run of PPO players that learnt next to nothing."""
    config = PPOTrainConfig(
        seeds=seeds, total_steps=64, num_envs=4, eval_episodes=4, ppo=PPOConfig(n_steps=16, batch_size=64)
    )
    return train_ppo(config, RunOptions(output_dir=out), quiet=True).path


def hop_run(out: Path, seeds: str = "0") -> Path:
    """A run of planning agents that learnt nothing at all."""
    plan = PlanConfig(trees=2, search=SearchConfig(simulations=4))
    config = HopTrainConfig(variant="hop", seeds=seeds, num_envs=2, steps=1, total_steps=2, hidden=16, plan=plan)
    with Run.open("hunt", config, RunOptions(output_dir=out)) as run:
        store = CheckpointStore(run.checkpoints, KIND, PATTERN, Keep(last=1))
        store.save(1, {"agents": SelfPlayTrainer(config).agents()})
    return out


def played(cells: list[Cell], runs: int, steps: int) -> tuple[SeatingPlan, Stream]:
    """Streams of some cells."""
    game = small_game(game_config("msh_4x4"))
    plan = seat_all(game, cells, runs, {})
    return plan, play_stream(game, plan, Starts(game, runs, 5), steps, seeded(1))
