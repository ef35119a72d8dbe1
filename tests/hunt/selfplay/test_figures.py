"""The figure of a training of planning agents, from its record."""

from __future__ import annotations

import json
from pathlib import Path

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, BETA, ENV_STEPS, REWARD, SCALED_SPREAD
from marlab.hunt.selfplay.figures import draw_training


def test_a_record_becomes_a_figure(tmp_path: Path) -> None:
    """Variants without models of others have no curve of them."""
    rows = [
        {"step": t, ENV_STEPS: 10 * t, BETA: 5.0, SCALED_SPREAD: 0.2, f"seed_0/{REWARD}": 1.0 + t,
         f"seed_0/{BEHAVIOUR_ENTROPY}": 1.0}
        for t in range(3)
    ]  # fmt: skip
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = draw_training(tmp_path / "metrics.jsonl", tmp_path / "training.png", GameConfig(), [0], "a training")
    assert out.stat().st_size > 1000
