"""The entry point: every command can be imported and explains itself; wrong words are one sentence and exit code 2."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from marlab.cli import COMMANDS, SPINS, Command, Table, main


def commands(table: Table, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    for word, entry in table.items():
        if isinstance(entry, Command):
            yield (*words, word), entry
        else:
            yield from commands(entry, (*words, word))


ALL = list(commands(COMMANDS))


@pytest.mark.parametrize(("words", "command"), ALL, ids=[" ".join(w) for w, _ in ALL])
def test_every_command_explains_itself(
    words: tuple[str, ...], command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    module, _, function = command.target.partition(":")
    assert callable(getattr(importlib.import_module(module), function))
    try:
        code: int | str | None = main([*words, "--help"])
    except SystemExit as leaving:
        code = leaving.code
    assert code in (0, None)
    assert f"marlab {' '.join(words)}" in " ".join(capsys.readouterr().out.split())


HEAVY = ("torch", "scml", "negmas", "matplotlib", "pyarrow", "scipy")

# One process imports what all commands need and forks for each, so that none sees what another one has imported.
HELP = """
import contextlib, json, os, sys
import marlab.cli, marlab.lab.flags
heavy, commands = json.loads(sys.argv[1])
for words in commands:
    pid = os.fork()
    if pid == 0:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.suppress(SystemExit):
            marlab.cli.main([*words, "--help"])
        print(json.dumps([" ".join(words), [name for name in heavy if name in sys.modules]]), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
"""


def test_help_needs_nothing_heavy() -> None:
    """What takes seconds to import is not needed to explain a command's flags."""
    request = json.dumps([HEAVY, [words for words, _ in ALL]])
    done = subprocess.run([sys.executable, "-c", HELP, request], check=True, capture_output=True, text=True)
    imported = dict(json.loads(line) for line in done.stdout.splitlines())
    assert imported.keys() == {" ".join(words) for words, _ in ALL}
    assert {words: names for words, names in imported.items() if names} == {}


@pytest.mark.parametrize("words", [["fly"], ["fish", "fry"], ["hunt", "pretrain", "x"]])
def test_unknown_words(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "is not a command, expected one of" in said and said.count("\n") == 1


def test_usage_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2 and main(["--help"]) == 0 and main(["fish", "--help"]) == 0
    assert "quickstart" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("marlab 0.")


def test_importing_the_entry_point_is_light() -> None:
    """No world, no torch before a command is chosen: `marlab --help` answers at once."""
    heavy = "torch", "shtab", "matplotlib", "scipy", "marlab.fish", "marlab.hunt"
    code = f"import sys, marlab.cli; raise SystemExit(any(m in sys.modules for m in {heavy!r}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


CORE = (
    "marlab.fish.training.train",
    "marlab.fish.training.evaluate",
    "marlab.hunt.ppo.train",
    "marlab.hunt.world_model.pretrain",
    "marlab.lab.ppo.ppo",
)


def test_trainers_import_where_little_is_installed() -> None:
    """A GPU machine has torch, numpy, scipy, pyarrow, matplotlib, tensorboard and rich, and nothing else of ours."""
    code = (
        "import importlib, sys\n"
        "for name in ('gymnasium', 'pettingzoo', 'psutil', 'imageio_ffmpeg', 'jinja2', 'ray', 'distributed'):\n"
        "    sys.modules[name] = None\n"
        f"for name in {CORE}:\n"
        "    importlib.import_module(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("word", "what"), [("run\0s", "zero byte"), ("\udcff", "UTF-8")])
def test_words_that_no_file_can_hold_are_one_sentence(word: str, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["market", "collect", "--output-dir", word]) == 2
    said = capsys.readouterr().err
    assert what in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, SPINS), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, None)],
)
def test_threads_do_not_keep_cores_from_others(
    given: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless the user has said how threads wait."""
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert main(["--version"]) == 0 and capsys.readouterr().out
    assert os.environ.get("GOMP_SPINCOUNT") == expected


@pytest.mark.parametrize(
    "words",
    [
        "fish watch best --size 4294967296 --film a.gif", "hunt pretrain vae D --hidden 9223372036854775807",
        "hunt pretrain vae D --batch-size 9007199254740993", "fish selfplay --num-fish 9223372036854775807",
    ],
)  # fmt: skip
def test_sizes_that_nothing_holds_are_one_sentence(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert "expected" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_too_little_memory_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(error: Exception) -> int:
        monkeypatch.setattr("marlab.cli._dispatch", raising(error))
        return main(["runs"])

    def raising(error: Exception) -> Callable[[list[str]], int]:
        def call(words: list[str]) -> int:
            raise error

        return call

    for error in (
        MemoryError(),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        OverflowError("x too large to convert to C long"),
    ):
        assert fails(error) == 2
        assert "choose smaller sizes" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="a fault"):
        fails(RuntimeError("a fault"))
