"""Flags: presets and overrides, both spellings, old words, and errors in one sentence."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from marlab.lab.config import defaults_of, from_dict, group, to_dict
from marlab.lab.errors import UserError
from marlab.lab.flags import OldFlags, parse, parse_run
from marlab.lab.ppo.config import PPOConfig


@dataclass(frozen=True)
class Train:
    """A training."""

    n_steps: int = 8
    """Steps per rollout."""
    curriculum: str = ""
    """Phases."""
    neighbours: bool = True
    """See the others."""
    path: str | None = None
    """Where."""
    ppo: PPOConfig = field(default_factory=PPOConfig)

    def __post_init__(self) -> None:
        if self.n_steps < 1:
            raise UserError(f"n_steps is {self.n_steps}, expected at least 1.")


OLD = OldFlags(
    renamed={"no_neighbor_features": ["--no-neighbours"], "rollout_steps": ["--n-steps"]},
    refused={"no-csv": "the simulator's tables are off by default, --simulator-tables turns them on."},
)


def presets(folder: Path) -> Path:
    (folder / "small.toml").write_text('n_steps = 4\ncurriculum = "15:9"\n[ppo]\nlearning_rate = 0.01\n')
    return folder


def test_flags_override_the_preset(tmp_path: Path) -> None:
    argv = ["--preset", "small", "--n_steps", "5", "--ppo.batch-size", "32", "--name", "a", "--time-limit", "15"]
    parsed = parse_run(Train, argv, prog="marlab x", presets=presets(tmp_path))
    assert parsed.config == Train(5, "15:9", ppo=PPOConfig(learning_rate=0.01, batch_size=32))
    assert parsed.options.name == "a" and parsed.options.time_limit == 15.0
    assert parsed.preset is not None and parsed.preset.name == "small"


def test_hyphens_and_underscores() -> None:
    for flag in ("--n-steps", "--n_steps"):
        assert parse_run(Train, [flag, "3"], prog="x").config.n_steps == 3
        assert parse_run(Train, [f"{flag}=3"], prog="x").config.n_steps == 3


def test_old_words() -> None:
    parsed = parse_run(Train, ["--no_neighbor_features", "--rollout-steps=6"], prog="x", old=OLD)
    assert parsed.config == Train(n_steps=6, neighbours=False)
    with pytest.raises(UserError, match=r"--no-csv has no meaning in marlab x: the simulator's tables"):
        parse_run(Train, ["--no-csv"], prog="marlab x", old=OLD)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--n-steps", "many"], "--n-steps is 'many', expected a whole number"),
        (["--ppo.gamma", "x"], "--ppo.gamma is 'x', expected a number"),
        (["--ppo.gamma", "2"], "gamma is 2.0, expected a value from 0 to 1"),
        (["--n-stepz", "4"], "did you mean --n-steps?"),
        (["--n-steps"], "--n-steps"),
        (["--n-steps", "0"], "n_steps is 0, expected at least 1."),
        (["--time-limit", "-1"], "--time-limit is -1"),
        (["--name", "a/b"], "--name is 'a/b'"),
        (["--preset"], "--preset needs"),
        (["--preset", "tiny"], "There is no preset 'tiny'"),
        (["stray"], "'stray' is one word too many"),
    ],
)
def test_errors_are_one_sentence(tmp_path: Path, argv: list[str], says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_run(Train, argv, prog="marlab x", presets=presets(tmp_path))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@dataclass(frozen=True)
class Seeded:
    """Something random."""

    seed: int = 0
    """Where it begins."""
    size: float = 1.0
    """How large."""


@pytest.mark.parametrize("argv", [["--seed", "-1"], ["--seed", str(2**63)], ["--size", "nan"], ["--size", "inf"]])
def test_impossible_seeds_and_numbers_are_refused_by_every_command(argv: list[str]) -> None:
    for read in (parse, parse_run):
        with pytest.raises(UserError, match=argv[0][2:]):
            read(Seeded, argv, prog="marlab x")


def test_unknown_key_in_a_preset(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_text("n_stepz = 4\n")
    with pytest.raises(UserError, match=r"preset odd: unknown key 'n_stepz', did you mean 'n_steps'\?"):
        parse_run(Train, ["--preset", "odd"], prog="x", presets=tmp_path)


def test_plain_words_first() -> None:
    assert parse(Train, ["here", "--n-steps", "2"], prog="x", positional=("path",)) == Train(n_steps=2, path="here")


@dataclass(frozen=True)
class Several:
    """One thing and more."""

    first: str = ""
    """The first."""
    more_things: tuple[str, ...] = ()
    """The others."""
    n_steps: int = 8
    """Steps."""


def test_several_plain_words() -> None:
    names = ("first", "more_things...")

    def made(*words: str) -> Several:
        return parse(Several, words, prog="x", positional=names)

    assert made("a") == Several("a")
    assert made("a", "b", "c", "--n-steps", "2") == Several("a", ("b", "c"), 2)
    assert made("a", "b", "--more-things", "c", "--n-steps", "2") == Several("a", ("b", "c"), 2)
    assert parse(Several, ["a", "b"], prog="x", positional=("more_things...",)) == Several(more_things=("a", "b"))
    assert made("--first", "a") == Several("a")


def test_help_shows_field_docs_and_presets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as leaving:
        parse_run(Train, ["--help"], prog="marlab x", presets=presets(tmp_path))
    shown = " ".join(capsys.readouterr().out.split())
    assert leaving.value.code == 0
    for word in ("marlab x", "Steps per rollout.", "--time-limit", "small", "--ppo.gae-lambda"):
        assert word in shown


# --- groups and short help ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gate:
    """When to go on."""

    limit: float = 0.5
    """Success from here on."""
    strict: bool = False
    """No second chance."""

    def __post_init__(self) -> None:
        if self.limit > 1:
            raise UserError(f"gate_limit is {self.limit:g}, expected at most 1.")


@dataclass(frozen=True)
class Grouped:
    """A training with groups."""

    COMMON: ClassVar = ("seed", "gamma")

    seed: int = 0
    """Seed of everything."""
    folder: Path | None = None
    """Where."""
    ppo: PPOConfig = group(lambda: PPOConfig(gamma=0.9), "learning")
    gate: Gate = group(Gate, "the gate", prefix="gate_")


def test_groups_are_flat_outside_of_python(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text("seed = 3\ngae_lambda = 0.5\n[gate]\nlimit = 0.25\n")
    argv = ["--preset", "small", "--gate_strict", "--n-steps", "7", "--name", "a"]
    config = parse_run(Grouped, argv, prog="x", presets=tmp_path).config
    assert config == Grouped(3, None, PPOConfig(gamma=0.9, gae_lambda=0.5, n_steps=7), Gate(0.25, True))
    stored = to_dict(config)
    assert stored["gate_limit"] == 0.25 and stored["n_steps"] == 7 and "ppo" not in stored
    assert from_dict(Grouped, stored, "x") == config
    assert defaults_of(Grouped) == to_dict(Grouped()) and from_dict(Grouped, {"gamma": 0.1}, "x", config).seed == 3


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--gate-limit", "2"], "gate_limit is 2, expected at most 1."),
        (["--gate-limit", "x"], "--gate-limit is 'x', expected a number"),
        (["--gate-limits", "1"], "did you mean --gate-limit?"),
        (["--n-steps", "0"], "n_steps is 0"),
    ],
)
def test_errors_in_groups_are_one_sentence(argv: list[str], says: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(Grouped, argv, prog="x")
    assert says in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"unknown key 'gate_limits', did you mean 'gate_limit'"):
        from_dict(Grouped, {"gate_limits": 1.0}, "x")


def _shown(capsys: pytest.CaptureFixture[str], word: str) -> str:
    with pytest.raises(SystemExit) as leaving:
        parse(Grouped, [word], prog="marlab x", positional=("folder",))
    assert leaving.value.code == 0
    return capsys.readouterr().out


def test_short_and_full_help(capsys: pytest.CaptureFixture[str]) -> None:
    short, full = _shown(capsys, "--help"), _shown(capsys, "--help-all")
    assert short.startswith("usage: marlab x FOLDER [flags]\n\nA training with groups.")
    assert "--folder" not in full  # it is a plain word
    assert "  --seed N" in short and "Seed of everything. (0)" in short
    assert "learning\n  --gamma X" in short and "(0.9)" in short and "--gate-limit" not in short
    assert f"--help-all` shows {len(dataclasses.fields(PPOConfig)) - 1 + 2} more flags" in short
    assert "the gate\n  --gate-limit X" in full and "--gate-[no-]strict" not in full and "--[no-]gate-strict" in full
    assert "--help-all" not in full
