"""Exact best responses against brute force in the scalar rules, and against playing them out."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
import torch

from marlab.hunt.exact import situations as situations_module
from marlab.hunt.exact.best_response import best_response, reference_values, solvable, start_values
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.scalar import PlainState, Rules
from marlab.hunt.game.views import View
from marlab.hunt.players.characters import parse_character
from marlab.hunt.players.seats import Kind, Role, split_seats
from marlab.hunt.players.strangers import seat_characters
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded, situations
from tests.hunt.plain_players import options

TINY = game_config("msh_tiny")


def brute_force(rules: Rules, start: PlainState, kind: str, gamma: float) -> float:
    """Expectimax of player 1 against one partner, in plain Python, every situation and time apart."""

    @cache
    def value(t: int, cells: tuple, alive: tuple, left: tuple) -> float:
        s = PlainState(start.blocks, list(cells), list(alive), start.prey_cell, list(left), t, -1, [4, 4])
        best = 0.0
        theirs = sorted(options(rules, s, 1, kind)) or [4]
        for mine, legal in enumerate(rules.legal(s, 0)):
            if legal:
                total = 0.0
                for other in theirs:
                    step = rules.step(s, [mine, other])
                    after = step.after
                    key = (t + 1, tuple(after.cell), tuple(after.alive), tuple(after.prey_alive))
                    total += (step.reward[0] + (0.0 if step.done[0] else gamma * value(*key))) / len(theirs)
                best = max(best, total)
        return best

    return value(0, tuple(start.cell), tuple(start.alive), tuple(start.prey_alive))


@pytest.mark.parametrize(("kind", "gamma"), list(product(["NS", "NH", "RAND"], [1.0, 0.95])))
def test_tiny_values_equal_brute_force(kind: str, gamma: float) -> None:
    game = make_game(TINY)
    starts = game.reset(6, seeded(1))
    found = start_values(game, starts, [Kind.NS, Kind[kind]], gamma=gamma)
    rules = Rules(TINY)
    expected = [brute_force(rules, s, kind, gamma) for s in situations(game, starts)]
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("team", "focal"),
    [
        ("NS,NS,NS", 0),
        ("NH,NH,NH", 2),
        ("NS,NH,NH", 1),
        ("NS,NS,NH", 3),
        ("WAIT(2),WAIT(4),NH", 0),  # memory in the situation
        ("SWITCH(3),SWITCH(2,NH),NH", 1),  # rules that change with the time
        ("EXPL,EXPL,NH", 2),
        ("NEAR(1),NEAR(2),NH", 0),
        ("NOISY(0.3,NS),NH,NH", 0),
    ],
)
def test_playing_the_best_response_earns_its_value(team: str, focal: int) -> None:
    game, episodes = make_game(game_config("msh_4x4")), 300
    rules = [parse_character(word) for word in split_seats(team)]
    rules.insert(focal, Role(Kind.RAND))
    players = seat_characters(game, rules)
    generator = seeded(3)
    for seed in range(3):
        start = game.reset(1, seeded(seed))
        solved = best_response(game, start, rules, focal)
        state = type(start)(*(field.expand(episodes, *field.shape[1:]).clone() for field in start))
        earned, going = torch.zeros(episodes), torch.ones(episodes, dtype=torch.bool)
        memory = players.begin(episodes, generator)
        while bool(going.any()):
            waited = memory.get("waited", torch.zeros_like(state.cell))[going]
            actions, memory = players.act(View(game, state), memory, generator)
            actions[going, focal] = solved.q(state.select(going), waited).argmax(1)
            state, out = game.step(state, actions)
            earned += out.reward[:, focal] * going
            going &= ~(out.done[:, focal] | out.over)
        error = 4 * earned.std().item() / episodes**0.5 + 1e-5
        assert earned.mean().item() == pytest.approx(solved.start_value, abs=error)


def test_noise_of_one_is_a_random_player_and_patience_without_end_a_stag_hunter() -> None:
    game = make_game(game_config("msh_4x4"))
    starts = game.reset(3, seeded(5))

    def values(*others: str) -> list[float]:
        return start_values(game, starts, [parse_character(name) for name in ("NS", *others)]).tolist()

    assert values("NOISY(1,NS)", "NH", "NH") == pytest.approx(values("RAND", "NH", "NH"))
    assert values("WAIT(35)", "NS", "NH") == pytest.approx(values("NS", "NS", "NH"))
    assert values("SWITCH(35)", "NS", "NH") == pytest.approx(values("NS", "NS", "NH"))
    assert values("WAIT(0)", "NH", "NH") == pytest.approx(values("NH", "NH", "NH"))
    assert values("NEAR(0)", "NH", "NH") == pytest.approx(values("EXPL", "NH", "NH"))


def test_references_of_players_with_moods() -> None:
    game = make_game(game_config("msh_4x4"))
    starts = game.reset(4, seeded(6))

    def reference(*others: str) -> list[float]:
        return reference_values(game, starts, [parse_character(name) for name in ("NS", *others)]).tolist()

    assert reference("GRIM(1)", "NH", "NH") == pytest.approx([5.0] * 4)  # who is never let down goes on
    both = [reference("NS", "NH", "NH"), reference("NH", "NH", "NH")]
    half = [(a + b) / 2 for a, b in zip(*both)]
    assert reference("KEEP(0.5)", "NH", "NH") == pytest.approx(half) == reference("MIX(0.5)", "NH", "NH")
    comes = [0.25 * a + 0.75 * b for a, b in zip(reference("EXPL", "NH", "NH"), both[1])]
    assert reference("SHY(0.25)", "NH", "NH") == pytest.approx(comes)


def test_no_rule_beats_the_best_response_and_the_optimum_is_found() -> None:
    game = make_game(game_config("msh_4x4"))
    starts = game.reset(12, seeded(0))
    joined = start_values(game, starts, [Kind.RAND, Kind.NS, Kind.NH, Kind.NH])
    assert joined.tolist() == pytest.approx([5.0] * 12)
    racing = start_values(game, starts, [Kind.RAND, Kind.NS, Kind.NS, Kind.NS])
    assert (racing >= 1 - 1e-6).all() and (racing <= 5).all() and racing.mean() > 2


def test_action_values_prefer_the_hare_in_reach() -> None:
    game = make_game(TINY)
    start = game.reset(1, seeded(0))._replace(cell=torch.tensor([[8, 0]]))
    start = start._replace(prey_cell=torch.tensor([[4, 8]]))
    solved = best_response(game, start, [Kind.RAND, Kind.NH], gamma=0.9)
    q = solved.q(start)[0]
    assert q.argmax() == 6 and q[6] == 1 and q[5] == -float("inf")  # the hare is under player 1's feet


def test_a_start_that_is_too_large_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    game = make_game(game_config("msh_12x12_6p"))
    start = game.reset(1, seeded(0))
    monkeypatch.setattr(situations_module, "MOST_EDGES", 20_000)
    with pytest.raises(UserError, match="these 5 players from this start has more than 20,000 transitions; in a game"):
        best_response(game, start, [Kind.NS] * 6)
    crowd = make_game(game_config("msh_12x12_6p", players=9))
    with pytest.raises(UserError, match="9 players on 144 cells have no number of 64 bits"):
        best_response(crowd, crowd.reset(1, seeded(0)), [Kind.NS] * 9)
    team = [Role(Kind.NS)] * 3
    fits = {name: solvable(team, game_config(name)) for name in ("msh_8x8_b5", "msh_12x12_6p")}
    assert fits == {"msh_8x8_b5": True, "msh_12x12_6p": False}


def test_what_cannot_be_solved_is_refused() -> None:
    game = make_game(TINY)
    start = game.reset(1, seeded(0))
    with pytest.raises(UserError, match="not MIX"):
        best_response(game, start, [Kind.NS, Kind.MIX])
    with pytest.raises(UserError, match="plain stag hunt"):
        best_response(make_game(game_config("msh_tiny", time_reward=-1.0)), start, [Kind.NS, Kind.NS])
    with pytest.raises(ValueError, match="cannot follow"):
        best_response(game, start, [Kind.NS, Kind.NS]).q(start._replace(alive=torch.tensor([[False, True]])))
