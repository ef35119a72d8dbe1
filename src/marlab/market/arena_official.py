"""The league's own tournament function with our agents: scores as the organisers compute them.

Its worlds cannot be repeated, paired or taken apart; it is here because it is what a hand-in is judged by.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.engine import EngineConfig
from marlab.lab.errors import UserError
from marlab.market.arena_plan import PlayConfig, label
from marlab.market.experts import find_player, need_simulator

_PARALLELISM = {"serial": "serial", "local": "parallel", "dask": "dask"}


def official(config: PlayConfig, folder: Path, engine: EngineConfig) -> list[dict[str, Any]]:
    """Run `anac2024_std`; one row per agent with its official score, best first. Files of the league go to `folder`."""
    need_simulator()
    from scml.utils import anac2024_std

    if engine.engine not in _PARALLELISM or engine.address is not None:
        raise UserError(f"The official tournament runs on {', '.join(_PARALLELISM)} without an address.")
    players = [find_player(name) for name in config.agents]
    if len(players) < 2:
        raise UserError(f"The official tournament needs at least two --agents, not {len(players)}.")
    random.seed(config.seed)
    np.random.seed(config.seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the simulator and of the entrants
        results = anac2024_std(
            competitors=[cls for cls, _ in players],
            competitor_params=[values for _, values in players],
            n_configs=config.configs,
            max_worlds_per_config=config.turns,
            n_runs_per_world=1,
            n_competitors_per_world=len(players),
            n_steps=config.days,
            parallelism=_PARALLELISM[engine.engine],
            tournament_path=folder,
            forced_logs_fraction=0.0,
            verbose=False,
        )
    return _rows(results, config.agents, players)


def _rows(results: Any, names: Sequence[str], players: Sequence[tuple[type, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The league names agents by class, and by class and parameters where there are some."""
    scores = {str(row.agent_type): float(row.score) for row in results.total_scores.itertuples()}
    counts = results.scores.groupby("agent_type")["score"].count().to_dict()
    rows = []
    for name, (cls, values) in zip(names, players):
        full = f"{cls.__module__}.{cls.__qualname__}"
        found = [t for t in scores if t == full or (t.startswith(full + ":") and all(k in t for k in values))]
        if found:
            told = min(found, key=len) if not values else max(found, key=len)
            rows.append({"agent": label(name), "score": scores[told], "seats": int(counts.get(told, 0))})
    return sorted(rows, key=lambda row: -row["score"])
