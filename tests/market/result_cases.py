"""For tests of tournament reports: a result made by hand."""

from __future__ import annotations

from typing import Any

from marlab.market.arena.plan import PlayConfig
from marlab.market.arena.report import Result

SCORES = {"module:Strong(mode=a)": 1.3, "RandomStdAgent": 1.0}


def some_result(configs: int = 3, **more: Any) -> Result:
    """Two agents in every seat of some configs; the strong one is ahead by 0.3, a little more in later configs."""
    seats = []
    for config in range(configs):
        for place, position in enumerate(("first", "last")):
            for agent, score in SCORES.items():
                gain = 0.01 * config if agent != "RandomStdAgent" else 0.0
                seats.append({
                    "agent": agent, "config": config, "turn": 0, "place": place, "position": position, "world_id": "w",
                    "score": score + gain, "opening": 100.0, "downstream": "market" if place else "G", "bankrupt": 0,
                    "exceptions": 0, "days": 10, "n_processes": 2, "cpu_s": 0.1, "crashes": [], "stock": 1.0,
                    "revenue": 2.0, "supply": 0.2, "purchases": 0.2, "production": 0.2, "storage": 0.05,
                    "penalty": 0.05, "shortfall": 3.0, "produced": 8.0, "bought": 8.0, "no_trade": 0.5,
                    "captured": 1.5, "mean_price": 1.6, "issue": 2.0,
                })  # fmt: skip
    config = PlayConfig(agents=tuple(SCORES), baseline="RandomStdAgent", configs=configs)
    return Result(config, list(SCORES), seats, 2 * configs, 2 * configs, **more)
