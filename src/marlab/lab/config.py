"""Frozen dataclasses <-> plain dictionaries <-> JSON and TOML, strictly checked.

A command's config is a frozen dataclass. Allowed field types: bool, int, float, str, Path, Literal, `X | None`,
tuples and nested dataclasses of these. Impossible combinations raise `UserError` in `__post_init__`, so that a
config cannot exist in a wrong state however it was made. The flags live in `lab/flags.py`.

A nested dataclass is a table of its own (`[ppo]` in TOML, `--ppo.gamma`), unless it is made by `group`: then it is a
part of the config for Python only, and its fields stand beside the others in flags, TOML and JSON.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import math
import tomllib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

from marlab.lab.errors import UserError

C = TypeVar("C")
LARGEST_SEED = 2**63
LARGEST = 2**53
"""No size or number of steps is larger; beyond it not every whole number is one of a computer's floats."""


@dataclass(frozen=True)
class Preset:
    """A named set of values that differ from a config's defaults."""

    name: str
    values: dict[str, Any]
    inferred: tuple[str, ...] = field(default=())  # fields whose value was concluded, not recorded


def group(make: Callable[[], C], title: str, prefix: str = "") -> C:
    """A field for a nested config whose fields are flags of the whole: `--gamma`, with a prefix `--gate-gamma`."""
    return field(default_factory=make, metadata={"title": title, "prefix": prefix})


def _prefix(f: dataclasses.Field[Any]) -> str | None:
    """What a group's fields are called by outside of Python, in front of their names; None: not a group."""
    prefix = f.metadata.get("prefix")
    return None if prefix is None else str(prefix)


def to_dict(config: Any) -> dict[str, Any]:
    """A config as plain JSON values; tuples become lists, paths become strings, groups stand flat."""
    return _flat({f.name: getattr(config, f.name) for f in fields(config)}, type(config))


def _flat(values: Mapping[str, Any], cls: type[Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for f in fields(cls):
        if f.name not in values:
            continue
        prefix = _prefix(f)
        if prefix is None:
            flat[f.name] = _plain(values[f.name])
        else:
            flat |= {prefix + name: value for name, value in to_dict(values[f.name]).items()}
    return flat


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return to_dict(value)
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, Path):
        return value.as_posix()
    return value


def from_dict(cls: type[C], data: Mapping[str, Any], where: str, base: C | None = None) -> C:
    """Build `cls` from `data`; keys that are missing keep the value of `base` (or the default).

    `where` names the source in error sentences, for example "preset v32" or "runs/fish/a/config.json".
    """
    return _build(cls, data, where, "", base)


def altered(config: C, **settings: Any) -> C:
    """The config with some settings changed, each under the name it has in flags and presets."""
    return from_dict(type(config), settings, "the settings", config)


def _build(cls: type[C], data: Mapping[str, Any], where: str, prefix: str, base: Any) -> C:
    if not isinstance(data, Mapping):
        raise UserError(f"{where}: {str(data)[:40]!r} stands where a table of settings should be.")
    hints = typing.get_type_hints(cls)
    old_names = getattr(cls, "OLD_NAMES", {})  # what presets written before a field was renamed may call it
    data = _nested(cls, {old_names.get(key, key): value for key, value in data.items()})
    names = _known(cls)
    for key in data:
        if key not in names:
            raise UserError(f"{where}: unknown key '{prefix}{key}'{_closest(key, names)}.")
    values = {}
    for f in fields(cls):  # type: ignore[arg-type]
        current = getattr(base, f.name) if base is not None else _default(f)
        if f.name in data:
            values[f.name] = _convert(data[f.name], hints[f.name], where, prefix + f.name, current)
        elif current is not dataclasses.MISSING:
            values[f.name] = current
        else:
            raise UserError(f"{where}: '{prefix}{f.name}' is missing and has no default.")
    return cls(**values)


def _nested(cls: type[Any], data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with the fields of groups in tables of their own, as the class has them."""
    nested = dict(data)
    for f in fields(cls):
        prefix = _prefix(f)
        if prefix is None:
            continue
        inner = _known(typing.get_type_hints(cls)[f.name])
        taken = {name: nested.pop(prefix + name) for name in inner if prefix + name in nested}
        if taken and isinstance(nested.get(f.name, {}), Mapping):
            nested[f.name] = {**nested.get(f.name, {}), **taken}
    return nested


def _known(cls: type[Any]) -> list[str]:
    """Every key that may stand in a table of this class."""
    hints = typing.get_type_hints(cls)
    groups = {f.name: prefix for f in fields(cls) if (prefix := _prefix(f)) is not None}
    inner = [prefix + name for group, prefix in groups.items() for name in _known(hints[group])]
    return [f.name for f in fields(cls)] + inner


def check_values(config: Any, prefix: str = "") -> None:
    """What holds for every config, however it was made: numbers are finite, and seeds are whole numbers from 0 on."""
    for f in fields(config):
        value, name = getattr(config, f.name), prefix + f.name
        if is_dataclass(value) and not isinstance(value, type):
            check_values(value, f"{name}.")
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise UserError(f"{name} is {number}, expected a finite number.")
            if isinstance(number, str):
                check_text(number, name)
            if isinstance(number, int) and abs(number) > LARGEST and "seed" not in f.name:
                raise UserError(f"{name} is {str(number)[:40]}, expected a whole number of at most 2^53.")
        if (f.name == "seed" or f.name.endswith("_seed")) and isinstance(value, int) and not 0 <= value < LARGEST_SEED:
            raise UserError(f"{name} is {value}, expected a whole number from 0 to 2^63 - 1.")


def is_finite(number: float) -> bool:
    """Whether a number of Python can be a float; whole numbers may be too large for that."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def check_text(text: str, name: str) -> None:
    """Bytes that are no UTF-8 reach Python as lone surrogates, which no file of ours could hold; no path holds a 0."""
    if "\0" in text:
        raise UserError(f"{name.replace(chr(0), '?')} holds a zero byte.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError(f"{name} holds bytes that are no text (UTF-8).") from None


def _default(f: dataclasses.Field[Any]) -> Any:
    return f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default


def _convert(value: Any, hint: Any, where: str, name: str, current: Any) -> Any:
    """`value` as the annotated type, or a sentence that says what would be right."""
    if is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise _wrong(where, name, value, "a table of fields")
        base = None if current is dataclasses.MISSING else current
        return _build(typing.cast(Any, hint), value, where, name + ".", base)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return _convert_union(value, hint, args, where, name, current)
    if origin is Literal:
        if value not in args:
            raise _wrong(where, name, value, "one of " + ", ".join(repr(a) for a in args))
        return value
    if origin is tuple:
        return _convert_tuple(value, args, where, name)
    if hint is Path and isinstance(value, str | Path):
        return Path(value)
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not is_finite(value):
            raise _wrong(where, name, value, "a finite number")
        return float(value)
    if hint in (bool, int, str) and type(value) is hint:
        return value
    raise _wrong(where, name, value, _describe(hint))


def _convert_union(value: Any, hint: Any, args: tuple[Any, ...], where: str, name: str, current: Any) -> Any:
    if value is None and type(None) in args:
        return None
    for option in args:
        if option is type(None):
            continue
        try:
            return _convert(value, option, where, name, current)
        except UserError:
            if sum(a is not type(None) for a in args) == 1:
                raise
    raise _wrong(where, name, value, _describe(hint))


def _convert_tuple(value: Any, args: tuple[Any, ...], where: str, name: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(where, name, value, "a list")
    if len(args) == 2 and args[1] is Ellipsis:
        kinds: tuple[Any, ...] = (args[0],) * len(value)
    elif len(args) == len(value):
        kinds = args
    else:
        raise _wrong(where, name, value, f"a list of {len(args)} values")
    missing = dataclasses.MISSING
    return tuple(_convert(v, k, where, f"{name}[{i}]", missing) for i, (v, k) in enumerate(zip(value, kinds)))


def _describe(hint: Any) -> str:
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a path"}
    if hint in words:
        return words[hint]
    args = [a for a in typing.get_args(hint) if a is not type(None)]
    return " or ".join(_describe(a) for a in args) if args else str(hint)


def _wrong(where: str, name: str, value: Any, right: str) -> UserError:
    return UserError(f"{where}: '{name}' is {value!r}, expected {right}.")


def _closest(word: str, options: list[str]) -> str:
    """Ending of a sentence about an unknown word: the nearest known one, or all of them if they are few."""
    near = difflib.get_close_matches(word, options, n=1)
    if near:
        return f", did you mean '{near[0]}'?"
    return f"; known: {', '.join(options)}" if len(options) <= 12 else ""


# --- presets ------------------------------------------------------------------------------------------------


Folders = Path | tuple[Path, ...] | None
"""Where presets are: a folder, several whose names do not repeat, or nowhere."""


def preset_files(folders: Folders) -> dict[str, Path]:
    """Shipped presets by name."""
    places = () if folders is None else (folders,) if isinstance(folders, Path) else folders
    return dict(sorted((path.stem, path) for folder in places for path in folder.glob("*.toml")))


def load_preset(name_or_file: str, folders: Folders) -> Preset:
    """Read a preset by name from a world's folders of presets, or by the path of a TOML file."""
    path = Path(name_or_file)
    if path.suffix != ".toml":
        known = preset_files(folders)
        if name_or_file not in known:
            near = _closest(name_or_file, list(known))
            raise UserError(f"There is no preset '{name_or_file}'{near}.".replace("?.", "?"))
        path = known[name_or_file]
    if not path.is_file():
        raise UserError(f"The preset file {path} does not exist.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise UserError(f"The preset file {path} is nested too deeply.") from None
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise UserError(f"The preset file {path} is not valid TOML: {str(error)[:200]}.") from None
    inferred = values.pop("inferred", [])
    if not isinstance(inferred, list) or not all(isinstance(x, str) for x in inferred):
        raise UserError(f"The preset file {path} has an 'inferred' entry that is not a list of field names.")
    for key in inferred:
        if key not in values:
            raise UserError(f"The preset file {path} marks '{key}' as inferred but does not set it.")
    return Preset(name_or_file, values, tuple(inferred))


# --- comparing and showing ----------------------------------------------------------------------------------


def flatten(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one table with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[prefix + key] = value
    return flat


def diff(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(key, value in a, value in b) wherever two config dictionaries differ; a missing key shows as None."""
    fa, fb = flatten(a), flatten(b)
    keys = [*fa, *(k for k in fb if k not in fa)]
    return [(k, fa.get(k), fb.get(k)) for k in keys if (k in fa) != (k in fb) or fa.get(k) != fb.get(k)]


def config_hash(config: Any) -> str:
    """Twelve hexadecimal digits that are equal exactly when two configs are equal."""
    return config_hash_of(to_dict(config))


def config_hash_of(stored: Mapping[str, Any]) -> str:
    """The same of a config as config.json holds it."""
    text = json.dumps(stored, sort_keys=True, allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def changed(config: Any) -> dict[str, Any]:
    """The settings that differ from the defaults, under dotted names."""
    standard = flatten(defaults_of(type(config)))
    return {k: v for k, v in flatten(to_dict(config)).items() if k not in standard or standard[k] != v}


def defaults_of(cls: type[Any]) -> dict[str, Any]:
    """The default of every field that has one, as `to_dict` would show it."""
    found = {f.name: _default(f) for f in fields(cls)}
    return _flat({k: v for k, v in found.items() if v is not dataclasses.MISSING}, cls)


# --- the fields one by one ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Leaf:
    """One value of a config, wherever it lies within."""

    flag: str  # as flags and tables call it: gamma, gate_gamma, or ppo.gamma in a table of its own
    path: tuple[str, ...]  # the attributes that lead to it
    owner: type[Any]  # the class that declares it
    hint: Any
    default: Any  # MISSING where there is none
    title: str  # of its group or table, empty at the top

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def has_default(self) -> bool:
        return self.default is not dataclasses.MISSING


def leaves(cls: type[Any], config: Any | None = None) -> list[Leaf]:
    """Every value of a config class in order, with the values of `config` (or else the defaults)."""
    return _leaves(cls, config, "", (), "")


def _leaves(cls: type[Any], config: Any, prefix: str, path: tuple[str, ...], title: str) -> list[Leaf]:
    hints = typing.get_type_hints(cls)
    inside: list[Leaf] = []
    for f in fields(cls):
        value, here = getattr(config, f.name) if config is not None else _default(f), (*path, f.name)
        if not is_dataclass(hints[f.name]):
            inside.append(Leaf(prefix + f.name, here, cls, hints[f.name], value, title))
            continue
        given = None if value is dataclasses.MISSING else value
        group_prefix = _prefix(f)
        inner = prefix + (f"{f.name}." if group_prefix is None else group_prefix)
        inside += _leaves(hints[f.name], given, inner, here, f.metadata.get("title", f.name.replace("_", " ")))
    return inside
