"""One way to run a command that works in a run directory: parse, detach, describe, work, close, exit code.

    main = RunCommand("fish train", FishTrainConfig, "marlab.fish.training.train:train", presets=PRESETS)

What works is named by a string and imported once the flags are known to be right, so that `--help` and wrong flags are
answered without waiting for torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from marlab.lab.config import Folders, changed, load_preset
from marlab.lab.errors import UserError
from marlab.lab.flags import OldFlags, Parsed, parse_run, take_flag
from marlab.lab.help import HELP_WORDS
from marlab.lab.runs.run import Run, detach, run_path

C = TypeVar("C")


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

    def __call__(self, argv: Sequence[str]) -> int:
        return self.start(self.parse(argv), argv)

    def parse(self, argv: Sequence[str]) -> Parsed[C]:
        words = ["--quiet" if word == "-q" else word for word in argv]
        return parse_run(
            self.config, words, prog=f"marlab {self.words}", presets=self.presets, positional=self.positional,
            old=self.old,
        )  # fmt: skip

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
        run = self._function()(config, parsed.options, preset=parsed.preset, command=["marlab", *command])
        if not quiet:
            print(closing(run))
        return run.exit_code

    def _function(self) -> Callable[..., Run]:
        module, _, name = self.work.partition(":")
        function: Callable[..., Run] = getattr(importlib.import_module(module), name)
        return function


@dataclass(frozen=True)
class RunVariants:
    """A command with other settings for other values of one flag; a preset may name the value too."""

    flag: str
    """The field that decides, for example "variant"."""
    commands: Mapping[str, RunCommand[Any]]
    """By its value; the first is the default. All have the same words and presets."""

    def __call__(self, argv: Sequence[str]) -> int:
        command = next(iter(self.commands.values()))
        prog, known = f"marlab {command.words}", ", ".join(self.commands)
        chosen, _ = take_flag(argv, f"--{self.flag}", f"one of {known}", prog)
        preset, _ = take_flag(argv, "--preset", "the name of a preset or a TOML file", prog)
        if chosen is None and preset is not None:
            chosen = load_preset(preset, command.presets).values.get(self.flag)
        value = next(iter(self.commands)) if chosen is None else str(chosen)
        if value not in self.commands:
            raise UserError(f"--{self.flag} is '{value}', expected one of {known}.")
        if any(word in HELP_WORDS for word in argv):
            print(f"--{self.flag} is one of {known}; what follows are the settings of {value}.\n")
        return self.commands[value](argv)


def _describe(config: Any, parsed: Parsed[Any]) -> None:
    """What differs from the defaults, a line each: nobody reads a hundred settings that are as always."""
    head = f"preset {parsed.preset.name}" if parsed.preset else "defaults"
    lines = [f"  {key} = {value!r}" for key, value in changed(config).items()]
    print("\n".join([f"settings: {head}{', changed:' if lines else ''}", *lines]))


def closing(run: Run) -> str:
    """The last line of a command: where everything is, and how to go on with what was stopped."""
    if run.status == "finished":
        return f"The run is in {run.path}; `marlab note {run.path}` tells its story."
    return f"Stopped ({run.reason}). The run is in {run.path}; the same command with --resume goes on with it."
