"""One entry point. It only wires commands to functions; a command's module is imported when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from marlab.lab.config import check_text
from marlab.lab.errors import UserError, asks_too_much
from marlab.lab.extras import need
from marlab.lab.help import HELP_WORDS
from marlab.lab.output import open_missing_streams, readers_may_leave
from marlab.lab.runs.budget import clock
from marlab.lab.text import clean


@dataclass(frozen=True)
class Command:
    """A word on the command line and the function behind it: `module:function(argv) -> exit code or None`."""

    target: str
    help: str
    extra: str = ""
    """The extra without which it can do nothing but explain itself."""

    def check(self, said: str) -> None:
        """Refuse in one sentence where its extra is not installed."""
        if self.extra:
            need(self.extra, f"`{said}`")


Table = Mapping[str, "Command | Table"]

COMMANDS: Table = {
    "quickstart": Command(
        "marlab.quickstart.command:main", "a whole experiment in minutes, ending with a report", "market"
    ),
    "fish": {
        "train": Command("marlab.fish.commands.train:main", "train a shoal with one shared policy"),
        "eval": Command(
            "marlab.fish.commands.evaluate:main", "a checkpoint on held-out arenas, beside scripts and the ceiling"
        ),
        "selfplay": Command("marlab.fish.commands.selfplay:main", "a predator and a shoal learn against each other"),
        "suite": Command("marlab.fish.commands.suite:main", "how far a checkpoint carries: other fish, speeds, eyes"),
        "school": Command("marlab.fish.commands.school:main", "how a shoal swims together, and whether that pays"),
        "probe": Command("marlab.fish.commands.probe:main", "one probe with its full record and films of the worst"),
        "watch": Command("marlab.fish.commands.watch:main", "one episode in a window or as a film"),
        "starts": Command("marlab.fish.commands.starts:main", "make or check files of hard starts"),
    },
    "hunt": {
        "check": Command("marlab.hunt.commands:check", "does the game behave as calibrated; exact best responses"),
        "collect": Command("marlab.hunt.commands:collect", "offline data of rule-based players"),
        "pretrain": {
            "vae": Command("marlab.hunt.commands:pretrain_goals", "goal codes and the model of other agents"),
            "world": Command("marlab.hunt.commands:pretrain_world", "the world model"),
        },
        "train": Command("marlab.hunt.commands:train", "PPO, or agents that plan with beliefs about the others"),
        "diagnose": Command(
            "marlab.hunt.diagnose.config:main", "which module is at fault: figures and a verdict per module"
        ),
        "eval": Command(
            "marlab.hunt.evaluate.command:main", "the score card: self-play, teams, scenario suite, cross-play"
        ),
        "watch": Command(
            "marlab.hunt.watch.command:main", "an episode with everybody's beliefs and plans, as film and data"
        ),
    },
    "market": {
        "collect": Command(
            "marlab.market.collect.command:main", "experts play worlds of the Standard league, all recorded", "market"
        ),
        "samples": Command("marlab.market.samples.command:main", "recorded games become samples for L2, L3 and L4"),
        "train": Command("marlab.market.learn.command:main", "L2, L3 and L4 learn from samples"),
        "online": Command(
            "marlab.market.online.command:main", "learns to sell in the vector market, from rule W on", "market"
        ),
        "habits": Command(
            "marlab.market.habits.command:main", "learns the numbers of rule W from sellers that differ in them"
        ),
        "distill": Command(
            "marlab.market.distill.command:main", "what several teachers do, learnt by one small network"
        ),
        "eval-l2": Command("marlab.market.learn.command:eval_l2_main", "errors of a trained L2 in raw units"),
        "play": Command(
            "marlab.market.arena.command:main",
            "tournaments that can tell agents apart, beside what was possible",
            "market",
        ),
        "new-agent": Command("marlab.market.submit.command:new_agent_main", "a small agent that works, and its test"),
        "submit": Command(
            "marlab.market.submit.command:main",
            "an agent as the league takes it, tried where only scml is installed",
            "market",
        ),
        "clone": Command(
            "marlab.market.clones.command:main",
            "small networks that answer as recorded agents did, for the vector market",
        ),
        "verify": Command(
            "marlab.market.verify.command:main", "hold the vector market against the simulator, level by level"
        ),
        "fidelity": Command(
            "marlab.market.fidelity.command:main",
            "does the vector market rank sellers as the simulator does?",
            "market",
        ),
        "configs": Command(
            "marlab.market.verify.command:configs_main",
            "markets that the simulator draws, for the vector market",
            "market",
        ),
        "export": Command(
            "marlab.market.collect.command:export_main", "recorded worlds as tracker logs, for other tools"
        ),
    },
    "doctor": Command("marlab.doctor:main", "check the installation: versions, device, extras, a test of each world"),
    "runs": Command("marlab.lab.report.commands:runs_command", "list, filter, plan and abandon runs"),
    "compare": Command("marlab.lab.compare.command:main", "runs side by side: which differences are more than noise"),
    "sweep": Command("marlab.sweeps:main", "settings of a training tried out, with seeds, on any engine"),
    "draw": Command("marlab.lab.report.draw:main", "figures, tables and verdict of a run again, from its folder"),
    "report": Command("marlab.lab.notebook.command:main", "runs as pages: an index, results, curves, replays; --serve"),
    "note": Command("marlab.lab.report.commands:note_command", "write and print the lab note of a run, or of all runs"),
}


GROUPS = {"market": {"use": ("train", "play", "new-agent", "submit"), "laboratory": None}}
"""Titles for commands of a long table; None: all others."""

SPINS = "1000"
"""How often a thread looks whether the others have finished their part before it sleeps."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it worked, 2 if the input was wrong, 130 if it was interrupted."""
    open_missing_streams()
    with readers_may_leave():
        return _main(list(sys.argv[1:] if argv is None else argv))


def _main(words: list[str]) -> int:
    wait_kindly()
    try:
        for word in words:
            check_text(word, f"The word '{word.encode('utf-8', 'replace').decode()}'")
        with clock():
            return _dispatch(words)
    except UserError as error:
        print(clean(f"marlab: {error}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("marlab: interrupted", file=sys.stderr)
        return 130
    except OSError as error:  # a full or read-only disk, a folder where a file should be: the run's log has the details
        where = f" ({error.filename})" if error.filename else ""
        print(clean(f"marlab: {error.strerror or error}{where}."), file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError, ValueError, OverflowError) as error:
        if not asks_too_much(error):
            raise
        said = (str(error).splitlines() or ["out of memory"])[0][:200]
        print(clean(f"marlab: This needs more memory than there is; choose smaller sizes ({said})."), file=sys.stderr)
        return 2


def wait_kindly() -> None:
    """Let torch's threads wait for each other without keeping a core from others; read when torch is first imported.

    Left alone they turn for a millisecond at the end of every small operation. On an idle machine that is no faster; on
    one where something else computes, the core that is waited for has no time, and trainings take ten times as long.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)


def _dispatch(words: list[str]) -> int:
    table: Table = COMMANDS
    said = "marlab"
    while True:
        if not words or words[0] in ("-h", "--help"):
            print(_usage(said, table))
            return 0 if words else 2
        if words[0] == "--version" and table is COMMANDS:
            from marlab import __version__

            print(f"marlab {__version__}")
            return 0
        if words[0] == "--completion" and table is COMMANDS:
            from marlab.completion import script

            print(script(words[1] if len(words) > 1 else "", COMMANDS), end="")
            return 0
        word = words.pop(0)
        if word not in table:
            near = get_close_matches(word, table, 1)
            known = f"did you mean '{said} {near[0]}'?" if near else f"expected one of: {', '.join(table)}."
            raise UserError(f"'{said} {word}' is not a command, {known}")
        said += f" {word}"
        entry = table[word]
        if isinstance(entry, Command):
            return _call(entry, words, said)
        table = entry


def _call(command: Command, words: list[str], said: str) -> int:
    if not any(word in HELP_WORDS for word in words):
        command.check(said)
    module, _, function = command.target.partition(":")
    code = getattr(importlib.import_module(module), function)(words)
    return 0 if code is None else int(code)


def _usage(said: str, table: Table) -> str:
    lines = [f"usage: {said} COMMAND ..."]
    left = dict(table)
    for title, names in GROUPS.get(said.partition(" ")[2], {"": None}).items():
        lines += ["", title] if title else [""]
        for name in names or tuple(left):
            entry = left.pop(name)
            explained = entry.help if isinstance(entry, Command) else " | ".join(entry)
            lines.append(f"  {name:<12} {explained}")
    lines += ["", f"`{said} COMMAND --help` explains a command and its flags."]
    if table is COMMANDS:
        lines.append(
            "`marlab --completion bash|zsh|tcsh|fish|powershell` prints a script that completes words and flags."
        )
    return "\n".join(lines)
