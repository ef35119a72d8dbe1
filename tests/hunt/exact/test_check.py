"""The calibration command at a small size: the figures of checks 9 and 15, and that a wrong game is told apart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marlab.hunt.commands import check as command
from marlab.hunt.exact import check as checking
from marlab.hunt.exact.check import Row, check
from marlab.hunt.exact.config import CheckConfig
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.players.rules import RulePlayers
from marlab.lab.errors import UserError
from marlab.lab.runs.rng import Rngs


def test_the_command_agrees_with_the_calibration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--episodes", "800", "--layouts", "5"]
    code = command([*words, "--output-dir", str(tmp_path)])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "ties go to the lowest action number" in said and "payoff ladder" in said
    rows = json.loads((tmp_path / "check.json").read_text())
    assert len(rows) > 110 and all(row["ok"] for row in rows)


def test_the_populations_of_check_nine() -> None:
    section = checking._populations("msh_4x4", make_game(game_config("msh_4x4")), CheckConfig(episodes=3000), Rngs(1))
    rows = {row.name: row for row in section.rows}
    assert abs(rows["RAND,RAND,RAND,RAND"].value - 0.647) <= 0.03
    assert abs(rows["NH,NH,NH,NH"].value - 0.864) <= 0.02
    assert abs(rows["NS,NS,NS,NS"].value - 2.5) <= 0.001
    assert abs(rows["NS,NS,NH,NH"].value - 2.975) <= 0.02
    assert rows["RAND,RAND,RAND,RAND seat bias, standard errors"].value <= 3


def test_another_game_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    config = CheckConfig(episodes=500)
    impatient = game_config("msh_4x4", final_time=6)
    assert [
        row.name for row in checking._populations("msh_4x4", make_game(impatient), config, Rngs(0)).rows if not row.ok
    ]
    monkeypatch.setattr(checking, "RulePlayers", lambda game, roles: RulePlayers(game, roles, fallback="hare"))
    section = checking._populations("msh_4x4", make_game(game_config("msh_4x4")), config, Rngs(0))
    assert "NS,NS,NS,NS length" in [row.name for row in section.rows if not row.ok]


def test_rows_and_configs() -> None:
    assert Row("a", 1.0, 0.0, 1.05, 0.1).ok and not Row("a", 1.0, 0.01, 1.2, 0.1).ok and Row("a", 9.9).ok
    with pytest.raises(UserError, match="layouts is 1"):
        CheckConfig(layouts=1)
    assert check is checking.check
