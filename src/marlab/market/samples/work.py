"""What one worker does: read a few log files, make their samples, leave them in one file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.files import write_json
from marlab.market.logs.find import UNUSABLE, read_logs, why_unusable
from marlab.market.samples.dataset import LogInfo, Samples, concatenate, empty, save_part
from marlab.market.samples.extract import extract
from marlab.market.samples.goals import Backfill
from marlab.market.samples.options import SampleOptions

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
        self.without_reward = 0

    def samples(self, paths: list[str], experts: frozenset[str], options: SampleOptions) -> Samples:
        """The samples of some files; a file that cannot be used is noted and left out as a whole."""
        parts: list[Samples] = []
        for path in paths:
            try:
                parts += self._of_file(path, experts, options)
            except UNUSABLE as error:
                self.bad[path] = why_unusable(path, error)
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
            self.without_reward += int(np.isnan(parts[-1].macro["reward"]).sum())
        return parts


def make_part(
    paths: list[str], experts: list[str], options: dict[str, Any], fill: Backfill, out: str
) -> dict[str, Any]:
    """Write the samples of some files to OUT.npz, then what there is to say about them to OUT.json."""
    reading = Reading()
    samples = reading.samples(paths, frozenset(experts), from_dict(SampleOptions, options, "the task"))
    save_part(Path(f"{out}.npz"), [fill(samples)])
    summary = {"files": len(paths), "micro": samples.rows("micro"), "bad": reading.bad}
    summary |= {"missing": dict(reading.missing), "without_day": reading.without_day}
    summary["without_reward"] = reading.without_reward
    write_json(Path(f"{out}.json"), summary)
    return summary
