"""Going on with a training: more epochs of a phase at another rate, or further phases, in the same run.

    marlab market train RUN --resume --l2-epochs 60 --l2-lr 5e-5

What was done stays as it was; what is asked comes after it, and the stages of the config tell both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_table
from marlab.lab.runs.records import find_run
from marlab.market.learn.settings import NAMES, PHASES, Phase, Stage, TrainSettings

S = TypeVar("S", bound=TrainSettings)
KIND = "MarketTrainConfig"


def run_of(word: str) -> Path | None:
    """The folder of the training run that a word means; None if it means something else."""
    try:
        path = Path(word) if Path(word).is_dir() else find_run(word).path
        record = read_table(path / "run.json", UserError)
    except (UserError, OSError):
        return None
    told = record.get("config_type") if isinstance(record, dict) else None
    return path if isinstance(told, str) and told.endswith(f":{KIND}") else None


def goes_on(argv: Sequence[str], kind: type[S]) -> tuple[Path, S] | None:
    """The training run that the first word names and the settings it has so far; None if it names something else."""
    if not argv or argv[0].startswith("-"):
        return None
    path = run_of(argv[0])
    if path is None:
        return None
    if "--resume" not in argv:
        raise UserError(f"{path} is a training: add --resume to go on with it, or give samples to start a new one.")
    if any(word.partition("=")[0] in ("--preset", "--output-dir", "--name") for word in argv):
        raise UserError(f"{path} goes on in its own folder with its own settings; leave --preset and --name out.")
    stored = read_table(path / "config.json", lambda why: UserError(f"The run cannot be resumed: {why}."))
    return path, from_dict(kind, stored, str(path / "config.json"))


def epochs_done(folder: Path) -> dict[Phase, int]:
    """Epochs of each phase that have a checkpoint."""
    done: dict[Phase, int] = {}
    for phase in PHASES:
        pattern = re.compile(rf"{NAMES[phase]}_epoch(\d+)\.ckpt\.pt")
        found = [int(m[1]) for file in folder.glob(f"{NAMES[phase]}_epoch*") if (m := pattern.fullmatch(file.name))]
        done[phase] = max(found, default=0)
    return done


def grown(stored: TrainSettings, asked: S, done: Mapping[Phase, int]) -> S:
    """The settings as asked, with stages for what is done and what comes now."""
    changes: dict[str, str] = {}
    for phase in PHASES:
        names = (f"{phase}_epochs", f"{phase}_lr")
        same = all(getattr(stored, name) == getattr(asked, name) for name in names)
        if same or getattr(stored, f"{phase}_stages") != getattr(asked, f"{phase}_stages"):
            continue  # nothing new, or all stages told
        epochs, lr = (getattr(asked, name) for name in names)
        stages = _first(stored.stages(phase), done[phase])
        if epochs > done[phase]:
            stages.append(Stage(epochs - done[phase], lr))
        if done[phase]:
            changes[f"{phase}_stages"] = ",".join(f"{stage.epochs}:{stage.lr:g}" for stage in stages)
        elif getattr(stored, f"{phase}_stages"):
            changes[f"{phase}_stages"] = ""  # nothing is done yet: the plain numbers hold
    return replace(asked, **changes)  # type: ignore[arg-type]


def _first(stages: Sequence[Stage], epochs: int) -> list[Stage]:
    """The part of some stages that takes so many epochs."""
    taken = []
    for stage in stages:
        if epochs > 0:
            taken.append(Stage(min(stage.epochs, epochs), stage.lr))
            epochs -= stage.epochs
    return taken


def told(stored: TrainSettings, config: TrainSettings, done: Mapping[Phase, int]) -> list[str]:
    """What will be done now, a line for each phase that grew."""
    lines = []
    for phase in PHASES:
        before, now = stored.stages(phase), config.stages(phase)
        if before != now:
            more = ", ".join(f"{stage.epochs} at {stage.lr:g}" for stage in now)
            lines.append(f"{NAMES[phase]}: {done[phase]} epochs are done; stages are {more}")
    return lines
