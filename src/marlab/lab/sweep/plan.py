"""From `--set` to trainings: every setting is checked by the config of its command before anything is trained."""

from __future__ import annotations

import importlib
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union

from marlab.lab.command import RunCommand, RunVariants
from marlab.lab.config import Preset, check_values, config_hash, from_dict, leaves
from marlab.lab.errors import UserError
from marlab.lab.sweep.config import SweepConfig
from marlab.lab.sweep.space import Range, drawn, grid, parse_seeds, shown

LONGEST_SLUG = 40


@dataclass(frozen=True)
class Training:
    """A command whose settings are tried out."""

    target: str
    """`module:name` of its RunCommand or RunVariants."""
    words: tuple[str, ...]
    """Its words after `marlab`, for example ("fish", "train")."""
    plain: tuple[str, ...] = ()
    """Plain words that follow, for example the data to learn from."""
    preset: str | None = None


@dataclass(frozen=True)
class Trial:
    """One training of the plan."""

    name: str  # of its run directory
    setting: str  # for people
    values: Mapping[str, Any]  # flag -> value, texts as typed
    seed: int | None

    @property
    def all_values(self) -> dict[str, Any]:
        return {**self.values, **({} if self.seed is None else {"seed": self.seed})}


@dataclass(frozen=True)
class Plan:
    """Everything that is to be trained: settings in their order, each with its trials."""

    trials: Mapping[str, list[Trial]]  # setting -> its trials, one per seed
    default: str | None  # the setting that changes nothing, if it is among them

    @property
    def all_trials(self) -> list[Trial]:
        return [trial for trials in self.trials.values() for trial in trials]


@dataclass(frozen=True)
class Ready:
    """What runs a trial: the command, its config and its preset."""

    command: RunCommand[Any]
    config: Any
    preset: Preset | None


def make_plan(training: Training, config: SweepConfig) -> Plan:
    """All trials of a sweep; refuses every wrong name and value."""
    axes = config.axes
    settings = list(drawn(axes, config.draws, config.draw_seed) if config.draws is not None else grid(axes))
    fixed = {axis.name for axis in axes if not isinstance(axis, Range) and len(axis.values) == 1}
    base = {name: value for name, value in settings[0].items() if name in fixed}
    if config.default:
        settings = [base, *settings]
    seeds: Sequence[int | None] = [None] if config.seeds is None else parse_seeds(config.seeds)
    trials: dict[str, list[Trial]] = {}
    known: set[str] = set()
    plain = config_hash(ready(training, {**base, **({} if seeds[0] is None else {"seed": seeds[0]})}).config)
    default = None
    for values in settings:
        varied = {name: value for name, value in values.items() if name not in fixed}
        made = [Trial(_name(len(trials), varied, seed), shown(varied), values, seed) for seed in seeds]
        hashes = [config_hash(ready(training, trial.all_values).config) for trial in made]
        if hashes[0] in known:  # drawn twice, or the default once more
            continue
        known.update(hashes)
        trials[made[0].setting] = made
        default = made[0].setting if hashes[0] == plain else default
    return Plan(trials, default)


def _name(place: int, varied: Mapping[str, Any], seed: int | None) -> str:
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(map(str, varied.values()))).strip("-.")[:LONGEST_SLUG]
    return "-".join([f"{place:02d}", *([slug] if slug else ["default"]), *([] if seed is None else [f"s{seed}"])])


def ready(training: Training, values: Mapping[str, Any]) -> Ready:
    """The command and the config of a trial; refuses in one sentence what its config refuses."""
    entry, told = _entry(training.target), f"marlab {' '.join(training.words)}"
    words = [*training.plain, *([] if training.preset is None else ["--preset", training.preset])]
    if isinstance(entry, RunVariants) and entry.flag in values:
        words += [f"--{entry.flag}", str(values[entry.flag])]
    elif not isinstance(entry, RunCommand | RunVariants):
        raise UserError(f"`{told}` makes no run, so there is nothing to try out.")
    start = _start(training.target, tuple(words))
    where = f"--set of {told}"
    config = from_dict(start.command.config, _tables(start.command.config, values, where), where, start.config)
    check_values(config)
    return Ready(start.command, config, start.preset)


@cache
def _start(target: str, words: tuple[str, ...]) -> Ready:
    """What there is before any --set; read once, because a sweep asks for it with every trial."""
    entry = _entry(target)
    command = entry.choose(words) if isinstance(entry, RunVariants) else entry
    parsed = command.parse(words)
    return Ready(command, parsed.config, parsed.preset)


def _entry(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


def _tables(cls: type[Any], values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The values as a preset would hold them: read by the type of their field, dotted names in tables."""
    hints = {leaf.flag: leaf.hint for leaf in leaves(cls)}
    old_names = getattr(cls, "OLD_NAMES", {})
    tables: dict[str, Any] = {}
    for asked, value in values.items():
        name = old_names.get(asked, asked)
        if name == "seed" and name not in hints:
            name, value = _seeds(hints, value, where)
        table = tables
        *above, last = name.split(".")
        for part in above:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise UserError(f"{where}: '{name}' is a setting of a setting that has a value.")
        table[last] = typed(value, hints[name]) if name in hints else value
    return tables


def _seeds(hints: Mapping[str, Any], seed: Any, where: str) -> tuple[str, str]:
    """A training that takes several seeds at once gets one of them."""
    if "seeds" not in hints:
        raise UserError(f"{where}: this training has no seed, so --seeds cannot be given.")
    return "seeds", str(seed)


def typed(value: Any, hint: Any) -> Any:
    """A text as the type of its field, where it can be one; anything else is left to the config to refuse."""
    if not isinstance(value, str):
        return value
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        if value.casefold() == "none" and type(None) in args:
            return None
        found = (typed(value, kind) for kind in args if kind is not type(None))
        return next((each for each in found if not isinstance(each, str)), value)
    if origin is Literal:
        return next((choice for choice in args if str(choice) == value), value)
    if origin is tuple:
        return tuple(typed(part, args[0]) for part in value.split())
    if hint is bool:
        return {"true": True, "on": True, "yes": True, "false": False, "off": False, "no": False}.get(
            value.casefold(), value
        )
    return _number(value, hint) if hint in (int, float) else value


def _number(text: str, kind: type[Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        return text


def command_line(training: Training, values: Mapping[str, Any]) -> list[str]:
    """The words that would make the same training alone."""
    preset = [] if training.preset is None else ["--preset", training.preset]
    return ["marlab", *training.words, *training.plain, *preset, *_flags(values)]


def _flags(values: Mapping[str, Any]) -> Iterable[str]:
    for name, value in values.items():
        flag = name.replace("_", "-")
        if str(value).casefold() in ("true", "on", "yes", "false", "off", "no"):
            yes = str(value).casefold() in ("true", "on", "yes")
            yield f"--{flag}" if yes else f"--no-{flag}"
        else:
            yield from (f"--{flag}", *(map(str, value) if isinstance(value, tuple | list) else [str(value)]))


def trial_path(sweep: Path, trial: Trial) -> Path:
    from marlab.lab.compare.groups import TRIALS

    return sweep / TRIALS / trial.name
