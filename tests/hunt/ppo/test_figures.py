"""A figure is drawn from a record, also where no episode has ended yet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import ENV_STEPS, REWARD
from marlab.hunt.ppo.figures import draw_curves, seed_curve


@pytest.mark.parametrize("ended", [0, 3])
def test_a_record_becomes_a_figure(ended: int, tmp_path: Path) -> None:
    rows = [{"step": t, ENV_STEPS: 10 * t, "seed_1/episode/count": 0} for t in range(1, 4)]
    for row in rows[:ended]:
        row[f"seed_1/{REWARD}"] = 2.0
        row["seed_1/outcome/hare"] = 1.0
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = draw_curves(tmp_path / "metrics.jsonl", tmp_path / "reward.png", GameConfig(), [1])
    assert out.exists() == bool(ended)  # a figure without data is not drawn
    curve = seed_curve(rows, [1], REWARD)
    assert np.asarray(curve.x).tolist() == [10, 20, 30] and int(np.isfinite(curve.y).sum()) == ended
