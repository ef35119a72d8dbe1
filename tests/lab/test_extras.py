"""A core without extras and without a compiler: every command works, or names the extra that it needs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import marlab.market as market
from marlab.cli import COMMANDS, Command, main
from marlab.lab import extras
from marlab.lab.errors import UserError
from marlab.lab.extras import EXTRAS, need
from tests.fuzz.stage import hunt_data, market_logs, recorded, samples
from tests.test_cli import commands

HIDDEN = ("scml", "negmas", "scml_agents", "ray", "distributed", "dask", "cryptography")
CHILD = """
import contextlib, io, json, sys
hidden, commands = json.loads(sys.argv[1])
sys.modules.update(dict.fromkeys(hidden))
from marlab.cli import main
for words in commands:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = main(words.split())
    print(json.dumps([words, code, said.getvalue()]), flush=True)
"""
SHORT = "--time-limit .001"  # it begins, sees that its time is up, and ends
VECTOR = (
    "--shapes 2x3 --days 5 5 --learners 2 --hidden 8 --opponents RandomStdAgent --worlds 2 --generations 1 "
    "--play-days 2 --steps 2 --batch 64 --compare-worlds 2 --compare-days 5"
)
GROUPS: dict[str, tuple[tuple[Callable[[], Path], ...], list[str]]] = {
    "fish": ((), [
        f"fish train --preset quickstart --name a {SHORT}",
        "fish eval best --episodes 2 --fish 3 --no-ceiling --no-baselines --replays 0 --name e", "draw fish/e",
        f"fish selfplay --rounds 1 {SHORT}", f"fish suite best --arenas 1 {SHORT}", f"fish school shoal {SHORT}",
        "fish probe best --episodes 2 --fish 3", "fish watch best --film a.gif --steps 3",
        "fish starts ne:slow --count 200", "doctor", "runs", "note fish/a", "report", "compare fish/a fish/e",
        f"sweep fish train --preset quickstart --set seed=0,1 {SHORT}",
    ]),
    "hunt": ((hunt_data,), [
        "hunt check --episodes 8 --layouts 2",
        f"hunt collect --preset msh_tiny --rows 300 {SHORT}",
        f"hunt pretrain vae data {SHORT}", f"hunt pretrain world data {SHORT}",
        f"hunt train --variant ppo --preset msh_tiny {SHORT}", f"hunt train --preset hop_quick {SHORT}",
        f"hunt eval NS {SHORT} --engine serial", "hunt diagnose data --no-figures", f"hunt watch NS {SHORT}",
    ]),
    "market": ((market_logs, recorded, samples), [
        "market samples logs --agent-name all --engine serial --name s",
        "market train samples --phases l2 --l2-epochs 1 --device cpu --name t", "market eval-l2 runs/market/t",
        f"market habits --steps 1 --batches 1 --markets 2 --draws 4 --days 5 --shapes 2x3 {SHORT}",
        f"market distill rule {VECTOR}", f"market clone AS0 PenguinAgent --recorded recorded {SHORT}",
        "market verify --recorded recorded --policy-worlds 0", "market new-agent Mine",
        "market export logs --output-dir out",
    ]),
}  # fmt: skip
ALL = {" ".join(words): command for words, command in commands(COMMANDS)}
WITH_EXTRA = {words: command.extra for words, command in ALL.items() if command.extra}
SEVERAL = {"fish/a fish/e": 2, "--layouts 2": 1}
"""Words of commands that end with another code than 0, for a reason of their own."""


def without_extras(folder: Path, lines: list[str]) -> list[tuple[str, int, str]]:
    """(command, exit code, what it printed) of each, in one process that finds no extra and no compiler."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps([HIDDEN, lines])], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("group", GROUPS)
def test_commands_of_the_core_need_no_extra_and_no_compiler(group: str, tmp_path: Path) -> None:
    prepare, lines = GROUPS[group]
    for make in prepare:
        shutil.copytree(make(), tmp_path, dirs_exist_ok=True)
    done = without_extras(tmp_path, lines)
    wrong = [entry for entry in done if entry[1] not in (0, *(c for w, c in SEVERAL.items() if w in entry[0]))]
    assert len(done) == len(lines) and not wrong
    assert not [said for line, _, said in done if "not installed" in said and line != "doctor"]


def test_every_command_is_in_a_group_or_names_its_extra() -> None:
    played = [line for _, lines in GROUPS.values() for line in lines]
    assert {words for words in ALL if any(f"{line} ".startswith(f"{words} ") for line in played)} == {
        words for words, command in ALL.items() if not command.extra
    }


def test_a_missing_extra_is_one_sentence_before_any_work(tmp_path: Path) -> None:
    asked = [*WITH_EXTRA, "sweep market play --set seed=0,1", "market clone A B", "hunt eval NS --engine ray"]
    done = without_extras(tmp_path, asked)
    assert [code for _, code, _ in done] == [2] * len(asked)
    for words, _, said in done:
        extra = "ray" if "ray" in words else "market"
        last = said.splitlines()[-1]
        assert last.endswith(f"which is not installed: pip install 'marlab[{extra}]'."), (words, said)
        assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_help_needs_no_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main(["market", "play", "--help"])
    assert "usage: marlab market play" in capsys.readouterr().out
    assert main(["market", "play"]) == 2
    told = "marlab: `marlab market play` needs scml, which is not installed: pip install 'marlab[market]'.\n"
    assert capsys.readouterr().err == told


def test_from_python_the_extra_is_named_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named '{name}'", name="negmas.sao")

    play = market.play
    monkeypatch.setattr("marlab.lab.command.importlib.import_module", missing)
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"needs scml, .*marlab\[market\]"):
        play()


def test_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    offered = project["optional-dependencies"]
    for extra, libraries in EXTRAS.items():
        asked = " ".join(offered[extra])
        assert all(library in asked for library in libraries) and set(libraries) <= set(HIDDEN)
    assert set(WITH_EXTRA.values()) <= set(EXTRAS)
    need("market", "This test")
    core = " ".join(project["dependencies"])
    assert all(name in core for name in ("plotly", "jinja2", "markdown-it-py")) and "report" not in offered
    assert isinstance(COMMANDS["quickstart"], Command)
