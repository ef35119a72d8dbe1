"""Seats in the simulator: what was played is kept, and nothing is played twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.market.fidelity.plan import FidelityConfig, seats_of
from marlab.market.fidelity.real import draw_configs, known, play_seats, scores_of

pytest.importorskip("scml")
SERIAL = EngineConfig("serial")


def small() -> FidelityConfig:
    return FidelityConfig(
        sellers=("rule=SyncRandomStdAgent", "other=RandomStdAgent"),
        population=("RandomStdAgent",) * 11,
        configs=2,
        seats=1,
        days=6,
    )


@pytest.mark.long
def test_worlds_are_played_once_and_go_on_where_they_stopped(tmp_path: Path) -> None:
    config, file = small(), tmp_path / "real.json"
    assert not play_seats(config, file, SERIAL, lambda: len(known(file)) > 0, quiet=True)
    first = known(file)
    assert 0 < len(first) < 4
    assert play_seats(config, file, SERIAL, quiet=True)
    scores = scores_of(config, file)
    assert scores.shape == (2, 2) and np.isfinite(scores).all() and (scores[0] != scores[1]).any()
    assert {key: known(file)[key] for key in first} == first
    before = file.stat().st_mtime_ns
    assert play_seats(config, file, SERIAL, quiet=True) and file.stat().st_mtime_ns == before


def test_a_file_that_holds_no_scores_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "real.json"
    file.write_text('{"world": "good"}')
    with pytest.raises(UserError, match="does not hold scores"):
        known(file)
    with pytest.raises(UserError, match="There is no agent"):
        play_seats(FidelityConfig(sellers=("rule=Nobody", "other=RandomStdAgent")), tmp_path / "no.json", SERIAL)


def test_markets_are_those_of_the_seats() -> None:
    seats = seats_of(small())
    drawn = draw_configs(seats)
    assert [tuple(row[row > 0]) for row in drawn.sizes] == [seat.sizes for seat in seats]
    assert (drawn.n_steps == 6).all()
