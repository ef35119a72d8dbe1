"""One way to run a command that works in a run directory: parse, detach, describe, work, verdict, exit code.

    main = RunCommand("fish train", FishTrainConfig, "marlab.fish.training.train:train", presets=PRESETS)

What works is named by a string and imported once the flags are known to be right, so that `--help` and wrong flags are
answered without waiting for torch.
"""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Generic, TypeVar

from marlab.lab.config import Folders, changed, from_dict, load_preset, to_dict
from marlab.lab.errors import UserError
from marlab.lab.extras import told_what_is_missing
from marlab.lab.flags import OldFlags, Parsed, parse_run, take_flag
from marlab.lab.help import HELP_WORDS
from marlab.lab.progress import stage
from marlab.lab.runs.budget import clock
from marlab.lab.runs.run import Run, RunOptions, detach, run_path

C = TypeVar("C")
WIDTH = 110
"""Columns that a list of settings may take."""
GO_ON = "the same command with --resume goes on"
CHOSEN = ("preset", "variant", "game")
"""Who names one of these says where to start from; a command's own preset is for those who do not."""
OWN_PRESET = ""
"""The preset of a function in Python that was given none: the command's own; None is none at all."""


@dataclass(frozen=True)
class RunCommand(Generic[C]):
    """A command whose work is `function(config, options, *, preset, command) -> Run`.

    A config may have `run_config()`: the part that decides results, without engines and the like; the name of the run
    depends on it. One with `resumable = True` goes on with a run that is there, without being told to.
    """

    words: str
    """The words after `marlab`, for example "fish train"."""
    config: type[C]
    """The dataclass that flags and presets fill; its module imports no torch."""
    work: str
    """`module:function`."""
    presets: Folders = None
    positional: tuple[str, ...] = ()
    old: OldFlags = field(default_factory=OldFlags)
    default: str | None = None
    """The preset to start from where neither a preset nor a variant or game is named."""

    def __call__(self, argv: Sequence[str]) -> int:
        return self.start(self.parse(argv), argv)

    def parse(self, argv: Sequence[str]) -> Parsed[C]:
        words = ["--quiet" if word == "-q" else word for word in argv]
        self._refuse_flags_alone(words)
        return parse_run(
            self.config, words, prog=f"marlab {self.words}", presets=self.presets, positional=self.positional,
            old=self.old, own_preset=self.preset_for(flags_of(words)),
        )  # fmt: skip

    def preset_for(self, named: Iterable[str]) -> str | None:
        """The command's own preset, unless one of the settings that are named says where to start from."""
        return None if any(name.partition(".")[0] in CHOSEN for name in named) else self.default

    def _refuse_flags_alone(self, words: Sequence[str]) -> None:
        """Flags of a program before this one mean little without the settings that it had beside them."""
        named, preset = flags_of(words), self.old.preset
        if preset and "preset" not in named and any("_" in name for name in named) and not {*HELP_WORDS} & {*words}:
            again = shlex.join(["marlab", *self.words.split(), "--preset", preset, *words])
            raise UserError(
                f"Flags with underscores are those of {preset}, whose other settings are a preset; type: {again}"
            )

    def start(self, parsed: Parsed[C], argv: Sequence[str]) -> int:
        """Work here or in the background; the exit code. `argv` follows the command's words."""
        config: Any = parsed.config
        decides = config.run_config() if hasattr(config, "run_config") else config
        path = run_path(self.words.split()[0], decides, parsed.options, parsed.preset)
        if getattr(config, "resumable", False) and (path / "run.json").exists():
            parsed = replace(parsed, options=replace(parsed.options, resume=True))
        command = [*self.words.split(), *argv]
        if parsed.options.background:
            print(f"Process {detach(command, path)} works in the background and logs to {path / 'log.txt'}.")
            return 0
        quiet = getattr(config, "quiet", False)
        if not quiet:
            _describe(config, parsed)
        with stage("starting", quiet):  # torch and the simulators take their time
            work = self.function()
        try:
            run = work(config, parsed.options, preset=parsed.preset, command=["marlab", *command])
        except KeyboardInterrupt:
            if (path / "run.json").exists():
                print(f"Stopped at once. The run is in {path}; {GO_ON} from its last safe point.", file=sys.stderr)
            raise
        if not quiet:
            print("\n".join([*run.verdict, closing(run)]))
        return run.exit_code

    def call(
        self, *given: Any, options: RunOptions | None = None, preset: str | None = OWN_PRESET, quiet: bool = False,
        **settings: Any,
    ) -> Run:  # fmt: skip
        """The same work from Python: a config, or the command's words, a preset and settings by their names. Without a
        preset it starts from the command's own; `preset=None` starts from the bare fields."""
        with clock():
            return self._called(given, options, preset, quiet, settings)

    def _called(
        self, given: Sequence[Any], options: RunOptions | None, preset: str | None, quiet: bool,
        settings: Mapping[str, Any],
    ) -> Run:  # fmt: skip
        if given and (isinstance(given[0], self.config) or issubclass(self.config, type(given[0]))):
            if len(given) > 1 or preset or settings:
                raise UserError(f"{self.words}: give a config alone, or a preset and settings, not both.")
            return self.function()(given[0], options, quiet=quiet)
        name = self.preset_for(settings) if preset == OWN_PRESET else preset
        named = None if name is None else load_preset(name, self.presets)
        asked = {**({} if named is None else named.values), **self._by_position(given), **settings}
        config = from_dict(self.config, {k: _plain(v) for k, v in asked.items()}, f"marlab {self.words}")
        return self.function()(config, options, preset=named, quiet=quiet)

    def _by_position(self, given: Sequence[Any]) -> dict[str, Any]:
        """Words of the command line by the fields they fill; the last may take all that are left."""
        found: dict[str, Any] = {}
        for place, name in enumerate(self.positional[: len(given)]):
            found[name.rstrip(".")] = tuple(given[place:]) if name.endswith("...") else given[place]
        if len(given) > len(self.positional) and not (self.positional and self.positional[-1].endswith("...")):
            words = ", ".join(name.rstrip(".") for name in self.positional) or "nothing"
            raise UserError(
                f"{self.words} was given {len(given)} values, expected {words}; settings go by their names."
            )
        return found

    def function(self) -> Callable[..., Run]:
        """What works, imported now, on as many threads as its options say."""
        from marlab.lab.device import threads

        module, _, name = self.work.partition(":")
        with told_what_is_missing(f"`marlab {self.words}`"):  # called from Python nothing has been looked for
            function: Callable[..., Run] = getattr(importlib.import_module(module), name)

        @wraps(function)
        def work(config: Any, options: RunOptions | None = None, **more: Any) -> Run:
            with threads((options or RunOptions()).threads):
                return function(config, options, **more)

        return work


def flags_of(words: Sequence[str]) -> list[str]:
    """The names of the flags among words, without dashes and values."""
    return [word[2:].partition("=")[0] for word in words if word.startswith("--")]


@contextmanager
def begins_anew(words: str) -> Iterator[None]:
    """A command without a run: whoever stops it is told that nothing is left half done."""
    try:
        yield
    except KeyboardInterrupt:
        print(f"Stopped. No file is left half written; `{words} ...` begins anew.", file=sys.stderr)
        raise


def _plain(value: Any) -> Any:
    """A value of Python as a preset would write it: configs as tables, paths and runs as text."""
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(getattr(value, "path", None), Path):  # a run, or what wraps one
        return str(value.path)
    return to_dict(value) if is_dataclass(value) else value


@dataclass(frozen=True)
class RunVariants:
    """A command with other settings for other values of one flag; a preset may name the value too."""

    flag: str
    """The field that decides, for example "variant"."""
    commands: Mapping[str, RunCommand[Any]]
    """By its value; the first is the default. All have the same words and presets."""

    def call(self, *given: Any, preset: str | None = OWN_PRESET, **settings: Any) -> Run:
        """The same work from Python, as `RunCommand.call`."""
        for command in self.commands.values():
            if given and isinstance(given[0], command.config):
                return command.call(*given, preset=preset, **settings)
        first, command = next(iter(self.commands.items()))
        name = command.preset_for(settings) if preset == OWN_PRESET else preset
        named = {} if name is None else load_preset(name, command.presets).values
        value = settings.get(self.flag, named.get(self.flag, first))
        if value not in self.commands:
            raise UserError(f"{self.flag} is '{value}', expected one of {', '.join(self.commands)}.")
        return self.commands[value].call(*given, preset=preset, **settings)

    def __call__(self, argv: Sequence[str]) -> int:
        return self.choose(argv)(argv)

    def choose(self, argv: Sequence[str]) -> RunCommand[Any]:
        """The command that these words mean."""
        command = next(iter(self.commands.values()))
        prog, known = f"marlab {command.words}", ", ".join(self.commands)
        chosen, _ = take_flag(argv, f"--{self.flag}", f"one of {known}", prog)
        preset, _ = take_flag(argv, "--preset", "the name of a preset or a TOML file", prog)
        preset = preset or command.preset_for(flags_of(argv))
        if chosen is None and preset is not None:
            chosen = load_preset(preset, command.presets).values.get(self.flag)
        value = next(iter(self.commands)) if chosen is None else str(chosen)
        if value not in self.commands:
            raise UserError(f"--{self.flag} is '{value}', expected one of {known}.")
        if any(word in HELP_WORDS for word in argv):
            print(f"--{self.flag} is one of {known}; what follows are the settings of {value}.\n")
        return self.commands[value]


def _describe(config: Any, parsed: Parsed[Any]) -> None:
    """What differs from the defaults, in short: nobody reads a hundred settings that are as always."""
    head = f"settings (preset {parsed.preset.name})" if parsed.preset else "settings"
    print(in_short(head, changed(config)), flush=True)


def in_short(head: str, values: Mapping[str, Any]) -> str:
    """Changed settings in as few lines as they need; one line where there are none."""
    if not values:
        return f"{head}: all as by default"
    pairs = [
        f"{key}={value}" if isinstance(value, str) and value else f"{key}={value!r}" for key, value in values.items()
    ]
    lines = [f"{head}:"]
    for place, pair in enumerate(pairs):
        text = pair if place == len(pairs) - 1 else f"{pair},"
        if len(lines[-1]) + 1 + len(text) > WIDTH and lines[-1].strip():
            lines.append(" ")
        lines[-1] += f" {text}"
    return "\n".join(lines)


def closing(run: Run) -> str:
    """The last line of a command: where everything is, and how to go on with what was stopped."""
    if run.status == "finished":
        return f"The run is in {run.path}; `marlab note {run.path}` tells its story."
    told = any("--resume" in sentence for sentence in run.verdict)
    return f"Stopped ({run.reason}). The run is in {run.path}{'' if told else f'; {GO_ON}'}."
