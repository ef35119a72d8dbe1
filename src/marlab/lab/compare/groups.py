"""Runs that are to be compared, sorted into groups: runs that differ only in their seed are one group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from marlab.lab.config import config_hash_of
from marlab.lab.errors import UserError
from marlab.lab.report.facts import config_of, parameter
from marlab.lab.runs.records import RunInfo, find_run, read_run

SEEDS = ("seed", "seeds")
"""Settings in which runs of one group may differ."""
MISSING = "not set"
LONGEST_NAME = 48
TRIALS = "trials"
"""Folder of a sweep's runs inside its own run directory."""


@dataclass(frozen=True)
class Group:
    """Runs with the same settings, or runs that were given the same name."""

    name: str
    runs: tuple[RunInfo, ...]
    settings: Mapping[str, str]  # dotted name -> value as text, without seeds


def open_groups(texts: Sequence[str], root: Path = Path("runs")) -> list[Group]:
    """Runs given as RUN or NAME=RUN, in groups in the order in which they were given; a sweep stands for its runs."""
    opened = list(_opened(texts, root))
    worlds = {info.world: info.id for _, info in opened}
    if len(worlds) > 1:
        some = " and ".join(list(worlds.values())[:2])
        raise UserError(f"{some} are runs of different worlds; give runs of one.")
    if len(opened) < 2:
        raise UserError("A comparison needs two runs or more: `marlab compare RUN RUN ...`.")
    by_key: dict[str, list[RunInfo]] = {}
    names: dict[str, str] = {}
    for name, info in opened:
        key = f"name {name}" if name else config_hash_of(_without_seeds(info.config()))
        by_key.setdefault(key, []).append(info)
        names[key] = name
    groups = [Group(names[key], tuple(runs), _settings(runs)) for key, runs in by_key.items()]
    return _named(groups)


def _opened(texts: Sequence[str], root: Path) -> Iterable[tuple[str, RunInfo]]:
    """(name, run) for every run, each once."""
    seen: set[Path] = set()
    for text in texts:
        name, equals, run = text.partition("=")
        if not equals or (Path(text) / "run.json").exists():
            name, run = "", text
        info = find_run(run, root)
        for each in _trials(info) or [info]:
            if each.path.resolve() not in seen:
                seen.add(each.path.resolve())
                yield name, each


def _trials(info: RunInfo) -> list[RunInfo]:
    """The runs of a sweep; none of any other run."""
    return [read_run(file.parent) for file in sorted(info.path.glob(f"{TRIALS}/*/run.json"))]


def _without_seeds(config: Any) -> dict[str, Any]:
    if not isinstance(config, dict):
        return {}
    return {name: value for name, value in config.items() if name not in SEEDS}


def _settings(runs: Sequence[RunInfo]) -> dict[str, str]:
    """The settings of a group; one in which its runs differ is told as such."""
    tables = [{k: parameter(v) for k, v in config_of(info).items() if k not in SEEDS} for info in runs]
    settings = dict(tables[0])
    for table in tables[1:]:
        for key in [*settings, *table]:
            if settings.get(key) != table.get(key):
                settings[key] = "various"
    return settings


def differing(groups: Sequence[Group]) -> dict[str, list[str]]:
    """Every setting in which groups differ -> its value in each."""
    keys = dict.fromkeys(key for group in groups for key in group.settings)
    values = {key: [group.settings.get(key, MISSING) for group in groups] for key in keys}
    return {key: row for key, row in values.items() if len(set(row)) > 1}


def _named(groups: Sequence[Group]) -> list[Group]:
    """Groups without a name are called by what they differ in, or, where that is long, by their first run."""
    differ = differing(groups)
    told = [", ".join(f"{_short(k, differ)}={row[i]}" for k, row in differ.items()) for i in range(len(groups))]
    short = all(0 < len(name) <= LONGEST_NAME for name, group in zip(told, groups) if not group.name)
    named = [replace(g, name=g.name or (name if short else g.runs[0].name)) for g, name in zip(groups, told)]
    often = [group.name for group in named]
    return [replace(g, name=f"{g.name} ({g.runs[0].name})") if often.count(g.name) > 1 else g for g in named]


def _short(key: str, among: Iterable[str]) -> str:
    """The last part of a dotted name where that says enough."""
    last = key.rpartition(".")[2]
    return key if sum(other.rpartition(".")[2] == last for other in among) > 1 else last
