"""How runs of the hunt are drawn again (`marlab draw`): from metrics, checkpoints and reports in their folders."""

from __future__ import annotations

from typing import Any

from marlab.hunt.data.collect import judge_data
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.run import read_card, write_card
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.players.seats import parse_seeds
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.figures import draw_curves
from marlab.hunt.pretraining.run import KIND, finish, load_goal_dataset, make_trainer
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.training.run import draw_training
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.pretrain import draw_losses, results_of_test, verdict_of
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.files import read_json
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import Run

DRAWERS = {
    "marlab.hunt.data.config:HuntCollectConfig": "marlab.hunt.draw:collected",
    "marlab.hunt.others.config:PretrainGoalsConfig": "marlab.hunt.draw:models_of_others",
    "marlab.hunt.world_model.config:PretrainWorldConfig": "marlab.hunt.draw:world_model",
    "marlab.hunt.ppo.config:PPOTrainConfig": "marlab.hunt.draw:ppo",
    "marlab.hunt.selfplay.config:HopTrainConfig": "marlab.hunt.draw:planners",
    "marlab.hunt.evaluate.command:HuntEvalConfig": "marlab.hunt.draw:score_card",
}


def _stored(run: Run, name: str) -> Any:
    return read_json(run.path / name, lambda why: UserError(f"The run has nothing to draw yet: {why}."))


def collected(run: Run, config: HuntCollectConfig, quiet: bool) -> None:
    judge_data(run, config, quiet)


def models_of_others(run: Run, config: PretrainGoalsConfig, quiet: bool) -> None:
    dataset = load_goal_dataset(config)
    trainer = make_trainer(config, dataset, run.path / "eval", run.log)
    finish(run, CheckpointStore(run.checkpoints, KIND, "epoch_{step}.pt", Keep(last=2)), trainer, dataset, quiet=quiet)


def world_model(run: Run, config: PretrainWorldConfig, quiet: bool) -> None:
    draw_losses(read_metrics(run.path / "metrics.jsonl"), run.figure("losses.png"), config.model)
    test = _stored(run, "world_report.json")["splits"]["test"]
    run.add_results(results_of_test(test["metrics"]))
    run.set_verdict(*verdict_of(test))


def ppo(run: Run, config: PPOTrainConfig, quiet: bool) -> None:
    draw_curves(run.path / "metrics.jsonl", run.figure("reward.png"), config.game, parse_seeds(config.seeds))


def planners(run: Run, config: HopTrainConfig, quiet: bool) -> None:
    title = f"{config.variant} in the stag hunt"
    draw_training(run.path / "metrics.jsonl", run.figure("training.png"), config.game, parse_seeds(config.seeds), title)


def score_card(run: Run, config: HuntEvalConfig, quiet: bool) -> None:
    write_card(read_card(run.path), run)
