"""Which seats tell whether two markets rank sellers alike."""

from __future__ import annotations

from collections import Counter

import pytest

from marlab.lab.errors import UserError
from marlab.market.fidelity.plan import POPULATION, FidelityConfig, seats_of

pytest.importorskip("scml")


def test_seats_sell_and_both_positions_have_as_many() -> None:
    config = FidelityConfig()
    seats = seats_of(config)
    assert len(seats) == 96 and seats == seats_of(config)
    assert Counter(seat.position for seat in seats) == {"first": 48, "middle": 48}
    for seat in seats:
        assert seat.place < sum(seat.sizes[:-1])
        assert sorted(seat.around) == sorted(POPULATION)
        places = [s.place for s in seats if s.config == seat.config]
        assert len(set(places)) == 4


def test_worlds_of_a_seat_differ_in_the_seller_alone() -> None:
    seat = seats_of(FidelityConfig(configs=2))[5]
    one, other = seat.world("RandomStdAgent"), seat.world("SyncRandomStdAgent")
    assert one.world_id != other.world_id
    assert (one.market_seed, one.seed, one.processes) == (other.market_seed, other.seed, other.processes)
    differ = [place for place, pair in enumerate(zip(one.agents, other.agents)) if pair[0] != pair[1]]
    assert differ == [seat.place] and one.agents[seat.place] == "RandomStdAgent"
    assert one.processes[seat.place] == seat.level


def test_sellers_need_names_and_one_is_the_rule() -> None:
    config = FidelityConfig(sellers=("mine=A(x=1)", "rule=B"))
    assert config.names == ["rule", "mine"] and config.agent("mine") == "A(x=1)"
    for wrong in (("A", "rule=B"), ("a=A", "b=B"), ("rule=A",), ("rule=A", "a=A", "a=B")):
        with pytest.raises(UserError, match="sellers"):
            FidelityConfig(sellers=wrong)
    with pytest.raises(UserError, match="population"):
        FidelityConfig(population=("A",))


def test_more_markets_than_can_be_meant_are_refused() -> None:
    with pytest.raises(UserError, match="configs is 9223372036854775808, expected 10,000 or less"):
        FidelityConfig(configs=2**63)
