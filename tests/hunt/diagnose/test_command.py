"""The command: its files, its tables and pictures, runs of every kind, and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.diagnose.command import DiagnoseConfig, diagnose, main
from marlab.hunt.diagnose.online import play_rows
from marlab.hunt.diagnose.parts import Gates
from marlab.hunt.diagnose.ppo import diagnose_ppo, open_ppo_run
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.others.floor import rule_rows
from marlab.hunt.others.pretrain import pretrain
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.train import train_ppo
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.pretrain import pretrain_world
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.runs.run import RunOptions

TINY = game_config("msh_tiny")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One small run of every kind on the smallest game."""
    root = tmp_path_factory.mktemp("runs")
    data = collect(HuntCollectConfig(TINY, rows=1500), RunOptions(output_dir=root / "offline"), quiet=True)
    goals = PretrainGoalsConfig(data=data, epochs=2, vae_epochs=1, belief_games=4, overfit_check=False)
    dense = PretrainWorldConfig(data=data, rows=0, model="dense", epochs=1)
    ppo = PPOConfig(n_steps=8, batch_size=64)
    alone = PPOTrainConfig(game=TINY, seeds="0..1", total_steps=256, num_envs=8, ppo=ppo, eval_episodes=8)
    reply = PPOTrainConfig(game=TINY, agent_roles="PPO,NS", total_steps=256, num_envs=8, ppo=ppo, eval_episodes=8)
    return {
        "data": data,
        "goals": pretrain(goals, RunOptions(output_dir=root / "codes"), quiet=True),
        "world": pretrain_world(dense, RunOptions(output_dir=root / "dense"), quiet=True),
        "ppo": train_ppo(alone, RunOptions(output_dir=root / "ppo"), quiet=True),
        "reply": train_ppo(reply, RunOptions(output_dir=root / "reply"), quiet=True),
    }


def test_all_modules_together(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(runs["goals"]), "--runs", *(str(runs[k]) for k in ("world", "ppo", "reply"))]
    assert main([*words, "--episodes", "8"]) == 0
    said = capsys.readouterr().out
    out = runs["goals"] / "diagnose"
    told = json.loads((out / "report.json").read_text(), parse_constant=pytest.fail)  # strict: no NaN
    modules = [v["module"] for v in told["verdicts"]]
    assert modules == ["data", "goal VAE", "MOA", "belief", "world model", "PPO", "PPO"]
    for verdict in told["verdicts"]:
        assert verdict["status"] in ("pass", "fail", "blocked")
        line = next(x for x in said.splitlines() if x.startswith(verdict["module"]) and verdict["run"] in x)
        assert verdict["status"] in line and verdict["decided_by"] in line
    page = (out / "report.md").read_text()
    shown = [p["file"] for section in told["sections"] for p in section["pictures"]]
    drawn = {p.name for p in out.glob("*.png")}
    assert set(shown) == drawn and all(name in page for name in shown)
    for row in ("D1-D3", "D4", "D5", "D6, D7", "D8", "D9", "D10", "D11", "D12", "D13", "D16", "D19", "D20", "D21"):
        assert f"{row}." in page, row
    rates = next(t for s in told["sections"] for t in s["tables"] if t["title"].startswith("Players"))
    assert [h for h in rates["header"] if "rate" in h] == ["teleport rate", "vanish rate", "ghost rate"]


def test_a_collect_run_alone_gets_a_verdict_on_its_data(runs: dict[str, Path], tmp_path: Path) -> None:
    report = diagnose(DiagnoseConfig(run=str(runs["data"]), out=tmp_path, figures=False))
    assert [str(v.status) for v in report.verdicts] == ["pass"]
    assert report.status("data") == "pass" and report.status("MOA") is None
    assert not list(tmp_path.glob("*.png"))


def test_a_diagnosis_can_be_repeated_exactly(runs: dict[str, Path], tmp_path: Path) -> None:
    pages = []
    for name in ("a", "b"):
        diagnose(DiagnoseConfig(run=str(runs["goals"]), out=tmp_path / name, figures=False, episodes=8))
        pages.append((tmp_path / name / "report.md").read_text())
    assert pages[0] == pages[1]


def test_a_learner_among_rules_is_measured_by_the_best_reply(runs: dict[str, Path]) -> None:
    section = diagnose_ppo(open_ppo_run(runs["reply"], "reply"), Gates(), episodes=200)
    replies = section.figures["replies"]
    assert set(replies) == {"PPO", "NS", "NH", "RAND"}
    assert replies["NS"] == pytest.approx(5.0, abs=0.2)  # two NS players always meet on the stag
    assert section.checks[0].gate == pytest.approx(0.9 * max(replies[k] for k in ("NS", "NH", "RAND")))


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


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (DiagnoseConfig(), "Say which run"),
        (DiagnoseConfig(run="no-such-run-anywhere"), "There is no run"),
    ],
)
def test_refusals(config: DiagnoseConfig, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=said):
        diagnose(config)


def test_a_run_of_another_kind_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    record = json.loads((runs["data"] / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**record, "kind": "fish"}))
    with pytest.raises(UserError, match="cannot be diagnosed"):
        diagnose(DiagnoseConfig(run=str(tmp_path)))


def test_a_training_without_its_metrics_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["ppo"], tmp_path / "copied")
    (tmp_path / "copied" / "metrics.jsonl").unlink()
    with pytest.raises(UserError, match="no metrics to diagnose"):
        open_ppo_run(tmp_path / "copied", "copied")


def test_data_of_another_game_is_refused(runs: dict[str, Path], tmp_path: Path) -> None:
    other = collect(
        HuntCollectConfig(game_config("msh_2p_4x4"), rows=200), RunOptions(output_dir=tmp_path / "d"), quiet=True
    )
    with pytest.raises(UserError, match=r"another game|grid"):
        diagnose(DiagnoseConfig(run=str(runs["goals"]), data=other))
