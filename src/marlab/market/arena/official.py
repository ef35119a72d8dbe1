"""The league's own tournament function with our agents: scores as the organisers compute them.

Its worlds cannot be repeated, paired or taken apart; it is here because it is what a hand-in is judged by.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.lab.stats import student
from marlab.market.arena.plan import PlayConfig, label
from marlab.market.simulator.experts import find_player

_PARALLELISM = {"serial": "serial", "local": "parallel", "dask": "dask"}


def official(config: PlayConfig, folder: Path, engine: EngineConfig) -> list[dict[str, Any]]:
    """Run `anac2024_std`; one row per agent with its official score, best first. Files of the league go to `folder`."""
    from scml.utils import anac2024_std

    if engine.engine not in _PARALLELISM or engine.address is not None:
        raise UserError(f"The official tournament runs on {', '.join(_PARALLELISM)} without an address.")
    players = [find_player(name) for name in config.agents]
    if len(players) < 2:
        raise UserError(f"The official tournament needs at least two --agents, not {len(players)}.")
    if len({cls for cls, _ in players}) < len(players):
        raise UserError("The official tournament tells agents apart by their class: name every class once.")
    random.seed(config.seed)
    np.random.seed(config.seed % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the simulator and of the entrants
        results = anac2024_std(
            competitors=[cls for cls, _ in players],
            competitor_params=[{"controller_params": values} if values else {} for _, values in players],
            n_configs=config.configs,
            max_worlds_per_config=config.turns,
            n_runs_per_world=1,
            n_competitors_per_world=min(config.competitors, len(players)),
            n_steps=config.days,
            n_processes=config.processes,
            parallelism=_PARALLELISM[engine.engine],
            tournament_path=folder,
            forced_logs_fraction=0.0,
            verbose=False,
        )
    return _rows(results, config.agents, players)


def _rows(results: Any, names: Sequence[str], players: Sequence[tuple[type, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Scores by our names; the league calls an agent by an adapter, its class and a hash of its parameters.

    The official score is a truncated mean. Beside it stand the plain mean of all seats and its Student interval, which
    speaks of the markets that were played: with few configs it is narrower than the truth about all markets. The league
    draws who sits where, so with few worlds somebody has the better factories: `balanced` counts every factory once.
    """
    if not len(results.total_scores):
        raise UserError(
            "All worlds of the official tournament failed; without --official you are told whose fault it is."
        )
    scores = {str(row.agent_type): float(row.score) for row in results.total_scores.itertuples()}
    table = results.scores
    seats = table.groupby("agent_type")["score"].apply(list).to_dict()
    # a world's name begins with the number of its config, an agent's id with its factory's and ends with its level
    factory = table["world"].str[:4] + table["agent_id"].str.replace(r"[^\d@]", "", regex=True)
    balanced = table.groupby(["agent_type", factory.rename("factory")])["score"].mean().groupby("agent_type").mean()
    rows = []
    for name, (cls, _) in zip(names, players):
        full = f"{cls.__module__}.{cls.__qualname__}"
        for entry in scores:
            if re.fullmatch(rf"{re.escape(full)}[-\d]*", entry.rpartition(":")[2]):
                low, high = student(seats[entry]) or (None, None)
                mean = float(np.mean(seats[entry]))
                row = {"agent": label(name), "score": scores[entry], "seats": len(seats[entry])}
                rows.append({**row, "mean": mean, "low": low, "high": high, "balanced": float(balanced[entry])})
    if len(rows) != len(names):
        raise RuntimeError(f"the league's tournament has scores of {sorted(scores)}, not of {sorted(names)}")
    return sorted(rows, key=lambda row: -row["score"])
