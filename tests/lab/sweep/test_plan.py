"""From `--set` to trials: names and values are checked by the command's own config, before anything is trained."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from marlab.lab.errors import UserError
from marlab.lab.sweep.config import SweepConfig
from marlab.lab.sweep.plan import Training, command_line, make_plan, ready, typed
from tests.lab.sweep.cases import SEEDLESS, TINY

FISH = Training("marlab.fish.commands.train:main", ("fish", "train"))
HUNT = Training("marlab.hunt.commands:train", ("hunt", "train"))


def config(*settings: str, **more: Any) -> SweepConfig:
    return SweepConfig(("tiny", "train"), settings, **more)


def test_a_grid_with_seeds() -> None:
    plan = make_plan(TINY, config("ppo.learning_rate=1e-3,3e-3", "rings=4", seeds="0..2"))
    assert list(plan.trials) == ["ppo.learning_rate=1e-3", "ppo.learning_rate=3e-3"]
    assert [trial.name for trial in plan.all_trials] == [
        "00-1e-3-s0", "00-1e-3-s1", "00-1e-3-s2", "01-3e-3-s0", "01-3e-3-s1", "01-3e-3-s2",
    ]  # fmt: skip
    made = ready(TINY, plan.all_trials[4].all_values).config
    assert (made.ppo.learning_rate, made.rings, made.seed, made.ppo.gamma) == (3e-3, 4, 1, 0.95)
    assert plan.default == "ppo.learning_rate=3e-3"  # of the tiny world


def test_the_default_can_be_added_and_nothing_is_planned_twice() -> None:
    plan = make_plan(TINY, config("rings=8,16", "n_cells=5", default=True))
    assert list(plan.trials) == ["default", "rings=8", "rings=16"] and plan.default == "default"
    assert plan.trials["default"][0].all_values == {"n_cells": "5"}
    same = make_plan(TINY, config("rings=64,8", default=True))
    assert list(same.trials) == ["default", "rings=8"]  # 64 is the default
    few = make_plan(TINY, config("rings=8,16", draws=20))
    assert sorted(few.trials) == ["rings=16", "rings=8"]


@pytest.mark.parametrize(
    ("training", "settings", "sentence"),
    [
        (TINY, ("ringz=4",), "unknown key 'ringz', did you mean 'rings'"),
        (TINY, ("rings=4,x",), "'rings' is 'x', expected a whole number"),
        (TINY, ("rings=-1",), "rings"),
        (TINY, ("n_cells=4,5",), "n_cells is 4, expected an odd number"),
        (TINY, ("ppo.gamm=1",), "unknown key 'ppo.gamm'"),
        (TINY, ("ppo=1", "ppo.gamma=0.9"), "a setting that has a value"),
        (TINY, ("ppo.learning_rate=nan",), "finite number"),
        (FISH, ("learning_rate=abc",), "learning_rate' is 'abc', expected a number"),
        (FISH, ("activation=tanh,cubic",), "cubic"),
        (HUNT, ("variant=ppo,rainbow",), "'rainbow', expected one of"),
        (Training("marlab.lab.report.commands:runs_command", ("runs",)), ("a=1",), "makes no run"),
        (Training(FISH.target, FISH.words, preset="bset"), ("seed=1",), "There is no preset 'bset'"),
    ],
)
def test_wrong_names_and_values_are_refused(training: Training, settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make_plan(training, SweepConfig(training.words, settings))


def test_a_training_without_a_seed_takes_none() -> None:
    with pytest.raises(UserError, match="this training has no seed"):
        make_plan(SEEDLESS, SweepConfig(SEEDLESS.words, (), seeds="0..1"))


def test_presets_variants_and_trainings_of_several_seeds() -> None:
    best = Training(FISH.target, FISH.words, preset="quickstart")
    made = ready(best, {"learning_rate": "1e-5", "compat": "off"})
    assert made.config.ppo.learning_rate == 1e-5 and made.preset is not None and made.preset.name == "quickstart"
    hop = ready(HUNT, {"variant": "hop", "seed": 3})
    assert (hop.config.variant, hop.config.seeds) == ("hop", "3")
    assert type(hop.config) is not type(ready(HUNT, {"variant": "ps-ppo"}).config)


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("3", int, 3), ("3", float, 3.0), ("1e-3", float, 1e-3), ("on", bool, True), ("False", bool, False),
        ("maybe", bool, "maybe"), ("none", int | None, None), ("4", int | None, 4), ("x", int, "x"), ("7", str, "7"),
        ("8 16", tuple[int, ...], (8, 16)), ("b", Literal["a", "b"], "b"), (5, str, 5), ("2.5", int | float, 2.5),
    ],
)  # fmt: skip
def test_texts_are_read_by_the_type_of_their_field(text: Any, hint: Any, value: Any) -> None:
    assert typed(text, hint) == value


def test_the_command_of_a_trial_can_be_typed() -> None:
    values = {"learning_rate": "1e-4", "skip_final_eval": "true", "compat": "off", "seed": 3}
    words = command_line(Training(FISH.target, FISH.words, preset="quickstart"), values)
    assert words == (
        "marlab fish train --preset quickstart --learning-rate 1e-4 --skip-final-eval --no-compat --seed 3".split()
    )
    made = ready(Training(FISH.target, FISH.words, preset="quickstart"), values)
    assert made.command.parse(words[3:]).config == made.config
