"""The parts of `hunt_answers.py` that learn from offline data: models that its trainings begin with, and the three
losses of the lab note's autoencoder side by side."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

from marlab.hunt.data.collect import in_memory
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Dataset
from marlab.hunt.game.config import game_config
from marlab.hunt.others.config import GoalSource, Objective, PretrainGoalsConfig
from marlab.hunt.others.models import save_goal_models
from marlab.hunt.pretraining.answers import codebook_of, predict
from marlab.hunt.pretraining.data import goal_data
from marlab.hunt.pretraining.report import probe_table
from marlab.hunt.pretraining.run import make_trainer
from marlab.hunt.pretraining.trainer import OthersTrainer
from marlab.hunt.world_model.config import ModelKind, PretrainWorldConfig
from marlab.hunt.world_model.data import transitions
from marlab.hunt.world_model.metrics import evaluate_split
from marlab.hunt.world_model.model import save_world_model
from marlab.hunt.world_model.pretrain import WorldTrainer

GAME = "msh_4x4"
SOURCES: dict[str, GoalSource] = {"hunt": "outcome", "latent": "history"}
LOSSES: tuple[Objective, ...] = ("recon", "moa", "joint")
KEPT = ("moa/validation/ce", "moa/validation/top1", "moa/validation/top3", "moa/validation/free_ce", "loss/kl",
        "loss/recon", "loss/policy", "vae/validation/kl", "vae/validation/active_units", "vae/validation/recon",
        "vae/validation/recall/0", "vae/validation/recall/1", "vae/validation/recall/5")  # fmt: skip


class Models:
    """Where prepared models lie, and the data they are made from."""

    def file(self, a: argparse.Namespace, name: str) -> Path:
        path: Path = a.output_dir / f"model_{name}.pt"
        return path

    def dataset(self, a: argparse.Namespace) -> Dataset:
        return in_memory(HuntCollectConfig(game=game_config(GAME), rows=a.rows))


MODELS = Models()


def prepare(a: argparse.Namespace, until: float) -> None:
    """Models of others with goals and with codes, and two world models; what is there is kept."""
    data: Dataset | None = None
    for name in (*SOURCES, "structured", "dense"):
        file = MODELS.file(a, name)
        if file.exists() or time.monotonic() > until - 20:
            continue
        data = data or MODELS.dataset(a)
        began = time.monotonic()
        if name in SOURCES:
            trainer, _ = pretrain(a, data, SOURCES[name], "joint", 0, until)
            keep_models(file, trainer)
        else:
            world_model(a, data, "structured" if name == "structured" else "dense", file, until)
        print(f"{file.name}: {time.monotonic() - began:.0f} s", flush=True)


def pretrain(
    a: argparse.Namespace,
    data: Dataset,
    source: GoalSource,
    loss: Objective,
    seed: int,
    until: float,
    *,
    epochs: int = 0,
    hidden: int = 128,
    paths: bool = False,
) -> tuple[OthersTrainer, list[dict[str, Any]]]:
    """Train models of others; returns what was measured after every epoch."""
    epochs = epochs or (5 if a.tiny else 6 if source == "outcome" else 10)
    config = PretrainGoalsConfig(
        goal_source=source, vae_loss=loss, epochs=epochs, belief_games=0, overfit_check=False, batch_size=512,
        seed=seed, device=a.device, vae_epochs=2 if epochs > 6 else 1, prototype_epochs=epochs // 3, hidden=hidden,
        paths=paths,
    )  # fmt: skip
    trainer = make_trainer(config, data)
    rows = []
    while trainer.step < trainer.total and time.monotonic() < until - 5:
        row = trainer.iterate()
        rows.append({"stage": row["stage"], **{name: row.get(name) for name in KEPT}})
    return trainer, rows


def keep_models(file: Path, trainer: OthersTrainer) -> None:
    """As `marlab hunt pretrain vae` keeps them: averaged weights, and prototypes of codes where there are any."""
    models, book = trainer.averaged, None
    if models.vae is not None:
        seen = trainer.data.train
        with torch.no_grad():
            code = predict(models, seen, trainer.final_stage).code
            assert code is not None
            book = codebook_of(models, seen, code, trainer.config.seed)
    save_goal_models(file, models.eval(), book, trainer.step)


def world_model(a: argparse.Namespace, data: Dataset, kind: ModelKind, file: Path, until: float) -> None:
    """Train a world model as the lab note's sizes say, save its last epoch and what it gets wrong on unseen rows."""
    rows, epochs = (2000, 2) if a.tiny else (50_000, 15)
    config = PretrainWorldConfig(model=kind, rows=rows, epochs=epochs, device=a.device)
    trainer = WorldTrainer(config, data)
    while trainer.step < trainer.total and time.monotonic() < until - 5:
        trainer.iterate()
    model = trainer.model.eval()
    save_world_model(file, model, width=config.width, step=trainer.step)
    found = evaluate_split(model, transitions(data, "validation", rows).to(trainer.device))
    kept = {"epochs": trainer.step, "one_step": found.metrics, "drift": found.drift}
    file.with_suffix(".json").write_text(json.dumps(kept, default=float))


def vae_losses(a: argparse.Namespace, until: float) -> None:
    """Three losses, for codes of the situation alone (as the note has them) and of histories; a file for each."""
    data: Dataset | None = None
    sources: tuple[GoalSource, ...] = ("state", "history")
    for seed in range(1 if a.tiny else 3):
        for source in sources:
            for loss in LOSSES:
                file = a.output_dir / f"losses_{source}_{loss}_{seed}.json"
                if file.exists() or time.monotonic() > until - 40:
                    continue
                data = data or MODELS.dataset(a)
                began = time.monotonic()
                trainer, rows = pretrain(a, data, source, loss, seed, until)
                found = {"rows": rows, "probe": probed(trainer, data), "seconds": time.monotonic() - began}
                file.write_text(json.dumps(found))
                last = rows[-1]
                print(f"{file.stem}: ce {last['moa/validation/ce']:.3f} top-1 {last['moa/validation/top1']:.3f} "
                      f"KL {last['vae/validation/kl']:.0f} in {found['seconds']:.0f} s", flush=True)  # fmt: skip


def probed(trainer: OthersTrainer, data: Dataset) -> list[dict[str, Any]]:
    """How well a player's type can be read off its code at some times, beside the planes themselves."""
    models, c = trainer.averaged, trainer.config
    parts = {}
    for name in ("train", "validation"):
        part = data.part("train" if name == "train" else "validation")
        seen = goal_data(data.game, part, "type", c.horizon, trainer.device, paths=c.paths)
        with torch.no_grad():
            parts[name] = (part, seen, predict(models, seen, trainer.final_stage))
    return probe_table(models, parts)
