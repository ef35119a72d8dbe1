"""Records of trainings that never ran, for what reads them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from marlab.hunt.game.config import GameConfig
from marlab.hunt.players.episodes import REWARD
from marlab.lab.config import to_dict

STEPS = 3000


def rising(t: int) -> float:
    """A healthy training: from 0.9 to 2.8, and it stays."""
    return 0.9 + 1.9 * (1 - math.exp(-t / 6))


def falling(t: int) -> float:
    """The original's: up to 1.5, and down again."""
    return 0.9 + 0.6 * t / 10 if t <= 10 else max(0.7, 1.5 - 0.05 * (t - 10))


def write_training(
    path: Path,
    variant: str,
    *,
    reward: Any = rising,
    seeds: tuple[int, ...] = (0, 1),
    iterations: int = 40,
    entropy: float = 0.4,
    excess: float = 0.2,
    spread: float = 0.4,
    game: GameConfig | None = None,
    roles: str = "",
    planned: int | None = None,
) -> Path:
    """A run directory with config, run record and metrics; no episode ends in the first two iterations.

    planned: iterations that the training was to have, if it was stopped.
    """
    path.mkdir(parents=True)
    played = to_dict(game or GameConfig())
    config = {"variant": variant, "game": played, "agent_roles": roles, "total_steps": STEPS * (planned or iterations)}
    (path / "config.json").write_text(json.dumps(config))
    kind = "hunt/ppo" if "ppo" in variant else "hunt/hop"
    record = {"schema": 1, "world": "hunt", "name": path.name, "status": "finished", "kind": kind}
    (path / "run.json").write_text(json.dumps(record))
    rows = [_row(t, variant, reward, seeds, entropy, excess, spread) for t in range(iterations)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _row(
    t: int, variant: str, reward: Any, seeds: tuple[int, ...], entropy: float, excess: float, spread: float
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "step": t + 1,
        "progress/env_steps": STEPS * (t + 1),
        "time/rollout": 20.0,
        "time/train": 16.0,
        "plan/beta": 10.0,
    }
    row |= {"plan/behaviour_entropy": entropy, "moa/excess": excess, "plan/scaled_spread": spread}
    row |= {"plan/q_spread": 1.5, "plan/improved_share": 1.0, "plan/depth": 4.0 + t / 10}
    for seed in seeds:
        row[f"seed_{seed}/episode/count"] = 0 if t < 2 else 100
        if t >= 2:
            row[f"seed_{seed}/{REWARD}"] = reward(t) + 0.02 * seed
        if "ppo" in variant:
            continue
        for i in range(1, 5):
            for j in (p for p in range(1, 5) if p != i):
                head = f"seed_{seed}/moa/{i}->{j}"
                top = 0.4 + 0.01 * t + 0.01 * j
                row |= {f"{head}/acc_top1": top, f"{head}/acc_top3": min(1.0, top + 0.3)}
                row |= {f"{head}/ce_loss": entropy + excess, f"{head}/floor": entropy, f"{head}/excess": excess}
                row |= {f"{head}/per_class_acc/{a}": min(1.0, top + 0.05 * a) for a in range(7)}
    return row
