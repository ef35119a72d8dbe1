"""One way to run a command that works in a run directory: parse, detach, describe, work, close, exit code.

    main = RunCommand("fish train", FishTrainConfig, "marlab.fish.training.train:train", presets=PRESETS)

What works is named by a string and imported once the flags are known to be right, so that `--help` and wrong flags are
answered without waiting for torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from marlab.lab.config import changed
from marlab.lab.flags import OldFlags, Parsed, parse_run
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
    presets: Path | None = None
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
