"""The two designs: everybody sits everywhere, orders differ from config to config, pairs differ in one seat only."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

pytest.importorskip("scml")
from marlab.lab.errors import UserError
from marlab.market.arena.plan import Arena, Game, PlayConfig, label
from marlab.market.simulator.experts import find_player

FOUR = ("GreedyStdAgent", "RandomStdAgent", "SyncRandomStdAgent", "PenguinAgent")
BUILT_IN = FOUR[:3]


def rotation(**more: Any) -> PlayConfig:
    plain: dict[str, Any] = {"agents": BUILT_IN, "shapes": ("3x1",), "days": (6, 6), "configs": 3}
    return PlayConfig(**plain | more)


def seats(**more: Any) -> PlayConfig:
    plain: dict[str, Any] = {
        "design": "seats",
        "replace": "GreedyStdAgent",
        "population": ("RandomStdAgent", "RandomStdAgent"),
    }
    return PlayConfig(**plain | {"agents": ("SyncRandomStdAgent",), "shapes": ("3x1",), "days": (6, 6)} | more)


def test_everybody_sits_everywhere_once() -> None:
    for number in range(3):
        games = Arena(rotation()).games(number)
        sat = Counter((place, name) for game in games for place, name in enumerate(game.spec.agents))
        assert len(games) == 3 and set(sat.values()) == {1} and len(sat) == 9
        assert len({game.spec.market_seed for game in games}) == 1 and len({game.spec.seed for game in games}) == 3


def test_who_sits_behind_whom_changes_from_config_to_config() -> None:
    arena = Arena(rotation(configs=20))

    def next_of_greedy(game: Game) -> str:
        return game.spec.agents[(game.spec.agents.index("GreedyStdAgent") + 1) % 3]

    found = Counter(next_of_greedy(arena.games(number)[0]) for number in arena.numbers)
    assert set(found) == {"RandomStdAgent", "SyncRandomStdAgent"} and min(found.values()) >= 4
    assert len({game.spec.market_seed for n in arena.numbers for game in arena.games(n)}) == 20


def test_pairs_share_everything_but_one_seat() -> None:
    games = Arena(seats()).games(0)
    assert [game.player for game in games] == ["GreedyStdAgent", "SyncRandomStdAgent"] * 3
    for original, played in zip(games[::2], games[1::2]):
        a, b = original.spec, played.spec
        assert (a.market_seed, a.seed, a.processes, a.n_steps) == (b.market_seed, b.seed, b.processes, b.n_steps)
        changed = [place for place in range(3) if a.agents[place] != b.agents[place]]
        assert changed == list(original.tested) == list(played.tested)
        assert a.world_id != b.world_id
    assert {game.tested for game in games} == {(0,), (1,), (2,)}


def test_seats_of_some_levels_are_worlds_of_the_whole_tournament() -> None:
    every = Arena(seats(configs=4)).games(2)
    middle = Arena(seats(configs=4, levels=("middle",))).games(2)
    assert middle == [game for game in every if game.tested == (1,)] and len(middle) == 2
    with pytest.raises(UserError, match="--levels belong"):
        Arena(rotation(levels=("first",)))
    with pytest.raises(UserError, match="levels must not be empty"):
        seats(levels=())


def test_an_agent_that_also_fills_is_counted_in_its_own_seat_only() -> None:
    config = rotation(shapes=("2x4",), fillers=("GreedyStdAgent",))
    for game in Arena(config).games(0):
        assert len(game.tested) == 3 and len(game.spec.agents) == 8
        assert sorted(game.spec.agents[place] for place in game.tested) == sorted(BUILT_IN)


def test_a_filler_takes_the_seat_of_an_agent_that_is_left_out() -> None:
    arena = Arena(rotation(fillers=("GreedyStdAgent",)), left_out=["RandomStdAgent"])
    for game in arena.games(1):
        assert len(game.tested) == 2 and "RandomStdAgent" not in game.spec.agents
    kept = {game.spec.world_id for game in Arena(seats(agents=("SyncRandomStdAgent", "RandomStdAgent"))).games(0)}
    without = {game.spec.world_id for game in Arena(seats()).games(0)}
    assert without < kept  # a seat's worlds do not depend on who else is under test


def test_official_shape_has_fillers_and_the_asked_days() -> None:
    arena = Arena(rotation(shapes=("official",), days=(50, 60)))
    for number in arena.numbers:
        games = arena.games(number)
        assert len(games) == 3
        for game in games:
            assert 50 <= game.spec.n_steps <= 60 and min(Counter(game.spec.processes).values()) >= 4
            assert sorted(game.spec.agents[place] for place in game.tested) == sorted(BUILT_IN)


def test_games_are_the_same_whenever_they_are_made() -> None:
    arena = Arena(rotation(first_config=1_000_000))
    assert arena.games(1_000_001) == Arena(rotation()).games(1_000_001)
    assert list(arena.numbers) == [1_000_000, 1_000_001, 1_000_002]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (rotation(agents=("GreedyStdAgent",)), "at least two"),
        (rotation(agents=("GreedyStdAgent", "GreedyStdAgent", "RandomStdAgent")), "named twice"),
        (rotation(agents=("GreedyStdAgent", "PenguinAgnt")), "no agent PenguinAgnt"),
        (rotation(shapes=("2x1",)), "too few"),
        (rotation(shapes=("three",)), "not a shape"),
        (rotation(shapes=("5x1",), days=(5, 9)), "too short"),
        (rotation(baseline="PenguinAgent"), "not one of"),
        (rotation(population=("RandomStdAgent",)), "belong to --design seats"),
        (seats(replace=None), "needs --replace"),
        (seats(agents=()), "needs --agents"),
        (seats(baseline="RandomStdAgent"), "expected the replaced"),
    ],
)
def test_wrong_tournaments_are_refused(config: PlayConfig, said: str) -> None:
    with pytest.raises(UserError, match=said):
        Arena(config)


@pytest.mark.parametrize("change", [{"configs": 0}, {"days": (9, 6)}, {"alpha": 1.5}, {"shapes": ()}, {"turns": 0}])
def test_wrong_numbers_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        rotation(**change)


def test_parameters_follow_a_name() -> None:
    cls, values = find_player("RandomStdAgent( mode=heuristic, n=3, x=0.5, path=runs/a/b.pt, on=True, t=(1, 2))")
    assert cls.__name__ == "RandomStdAgent"
    assert values == {"mode": "heuristic", "n": 3, "x": 0.5, "path": "runs/a/b.pt", "on": True, "t": (1, 2)}
    assert find_player("RandomStdAgent") == (cls, {}) == find_player("RandomStdAgent()")
    assert find_player("RandomStdAgent(a='x,y')")[1] == {"a": "x,y"}
    for wrong in ("RandomStdAgent(", "RandomStdAgent(3)", "RandomStdAgent(a=1, a=2)", "RandomStdAgent(a=)"):
        with pytest.raises(UserError, match="RandomStdAgent"):
            find_player(wrong)
    assert label("marlab.market.agent:LitaAgentHRL(mode=heuristic)") == "LitaAgentHRL(mode=heuristic)"


def test_tables_and_the_baseline_know_agents_by_their_short_names() -> None:
    config = rotation(agents=("mine=RandomStdAgent(p=0.5)", "GreedyStdAgent"), baseline="mine")
    config.check_agents()
    assert [label(name) for name in config.agents] == ["mine", "GreedyStdAgent"]
    assert config.against == config.agents[0]
    with pytest.raises(UserError, match="mine is named twice"):
        rotation(agents=("mine=RandomStdAgent", "mine=GreedyStdAgent")).check_agents()
