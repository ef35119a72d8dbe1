"""`marlab sweep WORLD COMMAND ...`: finds the command to try out; `marlab.lab.sweep` does the work."""

from __future__ import annotations

from collections.abc import Sequence

from marlab.lab.command import RunCommand
from marlab.lab.config import Preset
from marlab.lab.errors import UserError
from marlab.lab.flags import OldFlags
from marlab.lab.help import HELP_WORDS
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.sweep.config import SweepCommand, SweepConfig
from marlab.lab.sweep.plan import Training

command = RunCommand(
    "sweep", SweepCommand, "marlab.sweeps:sweep", positional=("words...",),
    old=OldFlags(renamed={"preset": ("--start-from",)}),
)  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """`marlab sweep`; `--set` may be given more than once."""
    words = joined(argv, "--set")
    if not any(word in HELP_WORDS for word in words):
        training_of(command.parse(words).config)  # a command that there is not is refused before anything else
    return command(words)


def joined(argv: Sequence[str], flag: str) -> list[str]:
    """The words with all values of a flag that was given several times behind its first."""
    rest: list[str] = []
    values: list[str] = []
    taking = False
    for word in argv:
        name, equals, after = word.partition("=")
        if name == flag:
            taking = True
            values += [after] if equals else []
        elif taking and not word.startswith("--"):
            values.append(word)
        else:
            taking = False
            rest.append(word)
    return [*rest, *([flag, *values] if values else [])]


def training_of(config: SweepConfig) -> Training:
    """The command that the words name, and the plain words that are left for it."""
    from marlab.cli import COMMANDS, Command

    entry, taken = COMMANDS, list[str]()
    for word in config.words:
        if word not in entry:
            known = ", ".join(entry)
            raise UserError(f"'marlab {' '.join([*taken, word])}' is not a command, expected one of: {known}.")
        found = entry[word]
        taken.append(word)
        if isinstance(found, Command):
            found.check(f"marlab {' '.join(taken)}")
            return Training(found.target, tuple(taken), config.words[len(taken) :], config.start_from)
        entry = found
    raise UserError(f"'marlab {' '.join(taken)}' is no command yet, expected one of: {', '.join(entry)}.")


def sweep(
    config: SweepConfig, options: RunOptions | None = None, *, preset: Preset | None = None,
    command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """The same work from Python: `sweep(SweepConfig(("fish", "train"), ("seed=0,1",)))`."""
    from marlab.lab.sweep.sweep import sweep as work

    return work(training_of(config), config, options, preset=preset, command=command, quiet=quiet)
