"""What one worker does: read a few log files, make their samples, leave them in one file."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from marlab.lab.config import from_dict, to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.files import write_json
from marlab.market.logs.find import read_logs
from marlab.market.samples.dataset import LogInfo, Samples, concatenate, empty, save_part
from marlab.market.samples.extract import GoalSource, SampleOptions, extract, with_goals

if TYPE_CHECKING:
    from marlab.market.samples.goals import Backfill


class Asked(Protocol):
    """What a config says about goals."""

    @property
    def goal_backfill(self) -> GoalSource: ...
    @property
    def l2_model_path(self) -> Path | None: ...
    @property
    def device(self) -> str: ...
    @property
    def l2_backfill_batch_size(self) -> int: ...
    def options(self) -> SampleOptions: ...


@dataclass(frozen=True)
class Filling:
    """How goals are filled in; small enough to be sent to a worker, which loads the network once."""

    source: GoalSource
    model: str | None
    device: str
    batch: int
    options: SampleOptions

    def __call__(self, samples: Samples) -> Samples:
        """The samples with goals."""
        return with_goals(samples, samples.macro["label"]) if self.source == "v2" else _load(self)(samples)


def filling(config: Asked) -> Filling | None:
    """The settings of a config; None if goals stay zero."""
    if config.goal_backfill == "none":
        return None
    model = None if config.l2_model_path is None else str(config.l2_model_path)
    return Filling(config.goal_backfill, model, config.device, config.l2_backfill_batch_size, config.options())


@functools.lru_cache(maxsize=1)
def _load(settings: Filling) -> Backfill:
    from marlab.market.samples.goals import Backfill  # needs torch, which other workers can do without

    model = None if settings.model is None else Path(settings.model)
    sizes, data = settings.options.sizes, to_dict(settings.options)
    return Backfill(settings.source, model, sizes, data, settings.device, settings.batch)


MOST_BAD = 0.05
"""Share of unusable log files above which no samples are made."""


def refuse_many(bad: dict[str, str], files: int) -> None:
    """A few damaged files are left out; more of them mean that something is wrong."""
    if len(bad) > MOST_BAD * files:
        raise UserError(f"{len(bad)} of {files} log files cannot be used; the first: {next(iter(bad.values()))}")


class Reading:
    """Counts what the files lacked while their samples are made."""

    def __init__(self) -> None:
        self.bad: dict[str, str] = {}
        self.missing: Counter[str] = Counter()
        self.without_day = 0

    def samples(self, paths: list[str], experts: frozenset[str], options: SampleOptions) -> Samples:
        """The samples of some files; a file that cannot be used is noted and left out as a whole."""
        parts: list[Samples] = []
        for path in paths:
            try:
                parts += self._of_file(path, experts, options)
            except UserError as error:
                self.bad[path] = str(error)
        return concatenate(parts) if parts else empty(options.sizes)

    def _of_file(self, path: str, experts: frozenset[str], options: SampleOptions) -> list[Samples]:
        parts = []
        for log in read_logs(Path(path), experts, options.features.horizon):
            if not len(log.days):
                raise UserError(f"{path} has no morning of agent {log.agent_id}.")
            info = LogInfo(log.world_id, log.agent_id, log.agent_type, log.full_type, path)
            parts.append(extract(log, options, info))
            self.missing.update(log.missing)
            self.without_day += len(log.decisions["seq"]) - parts[-1].rows("micro")
        return parts


def make_part(
    paths: list[str], experts: list[str], options: dict[str, Any], fill: Filling | None, out: str
) -> dict[str, Any]:
    """Write the samples of some files to OUT.npz, then what there is to say about them to OUT.json."""
    reading = Reading()
    samples = reading.samples(paths, frozenset(experts), from_dict(SampleOptions, options, "the task"))
    if fill is not None:
        samples = fill(samples)
    save_part(Path(f"{out}.npz"), [samples])
    told = {
        "files": len(paths),
        "micro": samples.rows("micro"),
        "bad": reading.bad,
        "missing": dict(reading.missing),
        "without_day": reading.without_day,
    }
    write_json(Path(f"{out}.json"), told)
    return told
