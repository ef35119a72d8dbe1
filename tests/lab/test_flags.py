"""Flags: presets and overrides, both spellings, old words, and errors in one sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.flags import OldFlags, describe, parse, parse_run
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


def test_describe_marks_changes() -> None:
    lines = describe(Train(n_steps=3)).splitlines()
    assert "* n_steps = 3" in lines
    assert "  ppo.gamma = 0.99" in lines
