"""Models of others, measured anew from their weights."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from marlab.hunt.diagnose import opponents
from marlab.hunt.diagnose.opponents import (
    belief_bar,
    diagnose_opponents,
    diagnose_transfer,
    draw_opponents,
    open_opponent_run,
    play_rows,
)
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role
from marlab.hunt.pretraining.floor import rule_rows
from marlab.hunt.selfplay.gates import Gates
from marlab.lab.errors import UserError
from tests.hunt.diagnose.conftest import Runs

TINY = game_config("msh_tiny")


def test_what_is_checked_is_what_is_measured(runs: Runs) -> None:
    run = open_opponent_run(runs["goals"], "codes", None)
    section = diagnose_opponents(run, Gates(), belief_games=4)
    values = {check.key: check.value for check in section.checks}
    validation = run.record["splits"]["validation"]
    scores = validation["moa"]
    assert values["MOA/top-1"] == scores["top1"] and values["MOA/top-3"] == scores["top3"]
    assert values["MOA/one batch by heart"] == pytest.approx(0.005)  # as the run recorded it
    assert {check.module for check in section.checks} == {"goal VAE", "MOA", "belief"}
    exact = validation["ceilings"]["known"]
    assert exact["cross_entropy"] <= scores["cross_entropy"]  # nobody predicts better than the rules themselves
    assert run.learnt_after_exit == 0.0


def test_a_learned_belief_is_held_against_what_four_steps_tell(runs: Runs) -> None:
    assert belief_bar(0.982, Gates().belief_learned) == pytest.approx(0.90, abs=0.001)  # as on msh_4x4
    assert belief_bar(0.5, 0.83) == 0.5 and belief_bar(1.0, 1.0) == 1.0
    run = open_opponent_run(runs["goals"], "codes", None)
    section = diagnose_opponents(run, Gates(), belief_games=4)
    check = next(check for check in section.checks if "learned" in check.key)
    exact = section.figures["belief"]["exact"]["true_type_by_step"][4]
    assert check.gate == pytest.approx(0.5 + 0.83 * (exact - 0.5))


def test_one_batch_by_heart_is_tried_where_no_record_is(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(runs["goals"], tmp_path / "run")
    (tmp_path / "run" / "eval" / "overfit.json").unlink()
    monkeypatch.setattr(opponents, "OVERFIT_STEPS", 2)
    section = diagnose_opponents(open_opponent_run(tmp_path / "run", "codes", None), Gates(), belief_games=0)
    tried = next(check for check in section.checks if check.name == "one batch by heart")
    assert tried.value is not None and tried.value > 0.1  # two steps are not enough


def test_models_that_are_told_the_shortest_ways_are_judged_with_them(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opponents, "OVERFIT_STEPS", 2)
    run = open_opponent_run(runs["told"], "told", None)
    section = diagnose_opponents(run, Gates(), belief_games=0)
    diagnose_transfer(run, [], 8, section)
    assert {"offline validation", "RAND"} <= set(section.figures["transfer"])
    draw_opponents(run, section, tmp_path)
    assert (tmp_path / "transfer-told.png").stat().st_size > 5_000


def test_named_data_is_measured_anew(runs: Runs) -> None:
    """The same data gives what the training found at its end."""
    own, again = (open_opponent_run(runs["goals"], "codes", data) for data in (None, runs["data"]))
    assert own.own_data and not again.own_data
    for name in ("train", "validation"):
        for key in ("moa", "free"):
            mine, theirs = own.record["splits"][name][key], again.record["splits"][name][key]
            assert mine["confusion"] == theirs["confusion"] and mine["top3"] == pytest.approx(theirs["top3"])


def test_everything_that_was_measured_is_drawn(runs: Runs, tmp_path: Path) -> None:
    run = open_opponent_run(runs["goals"], "codes", None)
    section = diagnose_opponents(run, Gates(), belief_games=4)
    draw_opponents(run, section, tmp_path)
    drawn = {picture.file.removesuffix("-codes.png") for picture in section.pictures}
    assert drawn >= {"losses", "epochs", "predictions", "per-action", "codes", "belief", "belief-episodes"}
    assert all((tmp_path / picture.file).stat().st_size > 5_000 for picture in section.pictures)


def test_played_rows_are_steps_of_living_players_with_their_own_chances() -> None:
    game = make_game(TINY)
    policy = RulePlayers(game, [Role(Kind.MIX, 0.5)] * game.players)
    part, truth = play_rows(game, policy, 40, torch.Generator().manual_seed(0))
    rows = part.rows
    assert truth is not None and bool(rows.alive[:, 0].all())
    assert torch.equal(rows.a, rows.joint_a[:, 0])
    assert bool((rows.t[part.offsets[:-1]] == 0).all())
    assert torch.equal(part.offsets.diff(), rows.steps[part.offsets[:-1]])
    exact = rule_rows(TINY, rows, (Kind.NS, Kind.NH))[torch.arange(rows.size), rows.type]
    torch.testing.assert_close(truth, exact)


def test_a_run_without_its_evaluation_is_refused(runs: Runs, tmp_path: Path) -> None:
    shutil.copytree(runs["goals"], tmp_path / "run")
    (tmp_path / "run" / "eval" / "final.json").unlink()
    with pytest.raises(UserError, match=r"final\.json does not exist"):
        open_opponent_run(tmp_path / "run", "codes", None)
