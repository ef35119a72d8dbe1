"""Seats in the vector market: everybody in their places, every seller in the seat, nothing played twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.agent.settings import AgentSettings
from marlab.market.fidelity import vector
from marlab.market.fidelity.plan import FidelityConfig, Seat, seats_of
from marlab.market.fidelity.real import draw_configs
from marlab.market.vector.clones import load
from marlab.market.vector.configs import Configs

pytest.importorskip("scml")
CPU = torch.device("cpu")
SELLERS = (
    "rule=LitaAgentHRL(mode=heuristic)",
    "again=LitaAgentHRL(mode=heuristic, horizon=41)",
    "lots=LitaAgentHRL(mode=heuristic, rule={'lot': 1})",
)


def test_batches_are_played_once_and_go_on_where_they_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = FidelityConfig(sellers=SELLERS, configs=3, seats=1, days=6, repeats=2)
    configs, file = draw_configs([seat._replace(days=6) for seat in seats_of(config)]), tmp_path / "vector.npz"
    played: list[int] = []

    def batch(configs: Configs, seats: list[Seat], agents: list[AgentSettings], repeats: int, *more: Any) -> Any:
        assert len(configs) == len(seats) == 1 and repeats == 1
        played.append(int(more[1]))
        return np.random.default_rng(more[1]).random((len(agents), 1, 1))

    monkeypatch.setattr(vector, "play_batch", batch)
    monkeypatch.setattr(vector, "WORLDS", 1)  # a batch for every seat and repeat
    left = iter([False, False, False, True])
    begun = vector.play_seats(config, configs, load(), file, CPU, lambda: next(left, True), quiet=True)
    assert np.isfinite(begun).sum() == 3 * len(SELLERS)
    scores = vector.play_seats(config, configs, load(), file, CPU, quiet=True)
    assert scores.shape == (3, 3, 2) and np.isfinite(scores).all() and len(set(played)) == len(played) == 6
    done = np.isfinite(begun)
    np.testing.assert_array_equal(scores[done], begun[done])
    with pytest.raises(UserError, match="of the shape"):
        vector.known(file, (1, 2))
    file.write_text("nothing")
    with pytest.raises(UserError, match="not scores of a market"):
        vector.known(file, (3, 3, 2))


def test_a_mixed_batch_finds_the_seats_of_every_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    sellers = (SELLERS[0], SELLERS[2], "learner=LitaAgentHRL(mode=learned, weights=untrained)")
    config = FidelityConfig(sellers=sellers, population=("RandomStdAgent",) * 11, configs=3, seats=1)
    seats = seats_of(config)
    agents = [vector.settings_of(config.agent(name)) for name in config.names]
    configs = draw_configs([seat._replace(days=6) for seat in seats])
    scores = vector.play_batch(configs, seats, agents, 1, load(), 3, CPU)
    assert scores.shape == (3, 3, 1) and np.isfinite(scores).all() and (scores != 1).any()
    monkeypatch.setattr("marlab.market.vector.rule_w.native", lambda market, dtype: None)
    arrays = vector.play_batch(configs, seats, agents, 1, load(), 3, CPU)
    np.testing.assert_array_equal(scores, arrays)  # the rule in C and in arrays
