"""The work of `marlab market distill`: teachers are measured, the student learns, both are compared seat by seat.

runs/market/NAME/checkpoints/around.npz   the student: `LitaAgentHRL(mode="learned", weights=RUN)`
runs/market/NAME/tables.md, results.json
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.progress import stage
from marlab.lab.report import markdown
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.files import read_table, write_json, write_text
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import say
from marlab.market.agent.layers import AROUND
from marlab.market.distill.settings import DistillConfig
from marlab.market.distill.teachers import RULE, Teacher, find
from marlab.market.distill.trainer import DistillTrainer
from marlab.market.networks import around as files
from marlab.market.online.net import AroundRule
from marlab.market.online.pool import Pool
from marlab.market.online.steer import Outcome, fare
from marlab.market.vector.seats import Policy

KIND = "market/distill"
STUDENT = "student"
RESULTS = "results.json"


def distill(
    config: DistillConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Distil teachers into a student; returns the run, closed."""
    if not config.sources:
        raise UserError("Nobody to learn from: name sources such as rule, hrl, or runs of `marlab market online`.")
    teachers, device = [find(source) for source in config.sources], choose_device(config.device)
    pool = Pool(config.opponents, config.clones, 0)
    with Run.open("market", config, options, preset=preset, command=command) as run:
        run.set_device(device)
        run.judge_by(config.judged_by)
        began = time.monotonic()
        with stage(f"playing with {len(teachers)} teachers", quiet):
            fared = {teacher.name: taught(config, pool, teacher, device) for teacher in teachers}
            if RULE not in fared:
                fared[RULE] = fare(config.online(), pool, None, device)
        if run.budget.limited:
            run.budget.expect("comparison", (time.monotonic() - began) / len(fared))
        trainer = DistillTrainer(config, teachers, device, weights_of(config, teachers, fared))
        store = CheckpointStore(run.checkpoints, KIND, keep=Keep(last=1))

        def save() -> None:
            files.save(run.checkpoints / AROUND, trainer.net.plain())

        done = drive(
            trainer, run, store, save_every=1, unit="generations", show=("distill/agreement",), quiet=quiet,
            on_save=save, device=device, stay=True,
        )  # fmt: skip
        if not run.signalled and trainer.step:
            with run.budget.part("comparison"), stage("comparing the student with its teachers", quiet):
                fared[STUDENT] = fare(config.online(), pool, trainer.net, device)
            write(run, config, teachers, fared, trainer, done)
    return run


def taught(config: DistillConfig, pool: Pool, teacher: Teacher, device: torch.device) -> Outcome:
    """How a teacher fares in the seats of the comparison."""
    online = config.online()
    if teacher.answers:

        def asked(market: Any, rule: Any, mine: Any, net: Any, generator: Any) -> Policy:
            return teacher.policy(market, mine)

        plays: Any = asked
        return fare(online, pool, teacher, device, plays)
    return fare(online, pool, None if teacher.net is None else AroundRule.of(teacher.net).to(device), device)


def weights_of(config: DistillConfig, teachers: Sequence[Teacher], fared: dict[str, Outcome]) -> torch.Tensor | None:
    """[2, teachers] the best teacher at the first level and at others; None: all the same."""
    if config.pick == "mean":
        return None
    out = torch.zeros((2, len(teachers)))
    for level, is_first in enumerate((True, False)):
        means = []
        for teacher in teachers:
            outcome = fared[teacher.name]
            mine = outcome.score[outcome.first == is_first]
            means.append(float(mine.mean()) if len(mine) else 0.0)
        out[level, int(np.argmax(means))] = 1.0
    return out


def write(
    run: Run,
    config: DistillConfig,
    teachers: Sequence[Teacher],
    fared: dict[str, Outcome],
    trainer: DistillTrainer,
    done: bool,
) -> None:
    """Scores of student and teachers, results, the table and the verdict."""
    mine, names = _scores(fared[STUDENT]), [teacher.name for teacher in teachers]
    told: dict[str, Any] = {}
    for name, outcome in fared.items():
        mean, low, high = mean_interval((mine - _scores(outcome)).tolist())
        told[name] = {
            "score": float(_scores(outcome).mean()),
            "minus": float(mean),
            "low": float(low),
            "high": float(high),
            "short": float(outcome.short.mean()),
            "seats": len(mine),
            "weight": trainer.weights[:, names.index(name)].tolist() if name in names else [],
        }
    write_json(run.path / RESULTS, told)
    mean, low, high = mean_interval((mine - np.mean([_scores(fared[name]) for name in names], 0)).tolist())
    together = {"value": float(mean), "low": float(low), "high": float(high), "unit": "of the opening balance"}
    run.add_results({"student minus teachers": together, "score of the student": float(mine.mean())})
    tell(run, told, len(names), done)


def _scores(outcome: Outcome) -> NDArray[np.float64]:
    return outcome.score.cpu().double().numpy()


def tell(run: Run, told: dict[str, Any], teachers: int, done: bool) -> None:
    """The table of student and teachers, and the verdict."""
    rows = []
    for name, row in told.items():
        beside = "" if name == STUDENT else f"{row['minus']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}]"
        weight = " / ".join(f"{value:.2f}" for value in row["weight"])
        rows.append([markdown.plain(name), weight, f"{row['score']:.4f}", f"{row['short']:.3f}", beside])
    head = ("who", "weight at the first level / others", "score", "not delivered a day", "student minus this one")
    size = (run.checkpoints / AROUND).stat().st_size
    text = (
        f"# Distillation\n\n{told[STUDENT]['seats']} seats of the vector market, the same for everybody. The student's "
        f"file has {size / 1e3:,.0f} KB.\n\n{markdown.table(head, rows)}\n"
    )
    write_text(run.path / "tables.md", text)
    found = run.results["student minus teachers"]
    interval = (found["low"], found["high"])
    after = say("market.next_online") if done else say("lab.go_on")
    run.set_verdict(say("market.distilled", teachers=teachers, difference=found["value"], interval=interval), after)


def draw_again(run: Run, config: DistillConfig, quiet: bool) -> None:
    """The table and the verdict from the scores that were measured."""
    told = read_table(run.path / RESULTS, lambda why: UserError(f"The run has nothing to draw yet: {why}."))
    tell(run, told, len(config.sources), not run.unfinished)
