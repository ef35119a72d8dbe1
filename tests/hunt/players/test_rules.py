"""Rule-based players against plain Python on the scalar rules, and the special ones by hand."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.config import game_config, game_names
from marlab.hunt.game.scalar import Rules
from marlab.hunt.game.views import View
from marlab.hunt.players.rollout import moments
from marlab.hunt.players.rules import RulePlayers, rule_probabilities
from marlab.hunt.players.seats import Kind, Role, parse_role, parse_roles
from marlab.lab.runs.testing import assert_same
from tests.hunt.helpers import placed, seeded, situations, small_game
from tests.hunt.plain_players import options as plain_options

FOUR = game_config("msh_4x4")


def sets(options: torch.Tensor) -> list[list[set[int]]]:
    return [[{a for a, on in enumerate(row) if on} for row in game] for game in options.tolist()]


@pytest.mark.parametrize("name", game_names())
def test_every_rule_offers_what_plain_python_offers(name: str) -> None:
    config = game_config(name)
    game, rules = small_game(config, seed=5), Rules(config)
    kinds = [Kind.ND, Kind.RAND] if config.rules == "snowdrift" else [Kind.NS, Kind.NH, Kind.RAND, Kind.EXPL]
    roles = [kinds[i % len(kinds)] for i in range(config.players)]
    players = RulePlayers(game, roles)
    seen = 0
    for shift in range(len(kinds)):  # every kind in every seat
        types = torch.tensor([kinds[(i + shift) % len(kinds)] for i in range(config.players)])
        memory = players.memory_of(types.expand(25, -1))
        generator = seeded(shift)
        for moment in moments(game, players, game.reset(25, generator), memory, generator):
            options = sets(players.options(moment.view, memory))
            for b, s in enumerate(situations(game, moment.view.state)):
                if moment.running[b]:
                    names = [Kind(k).name for k in types.tolist()]
                    assert options[b] == [plain_options(rules, s, i, name) for i, name in enumerate(names)]
                    seen += 1
    assert seen > 100


def test_probabilities_match_what_is_drawn() -> None:
    game = small_game(game_config("msh_8x8_b5"))
    players = RulePlayers(game, parse_roles("NS,NH,RAND,EXPL"))
    state = game.reset(1, seeded(0))
    big = type(state)(*(field.expand(20_000, *field.shape[1:]) for field in state))
    memory = players.begin(20_000, seeded(0))
    actions, _ = players.act(View(game, big), memory, seeded(1))
    drawn = torch.nn.functional.one_hot(actions, 7).float().mean(0)
    expected = players.probabilities(View(game, state), players.begin(1, seeded(0)))[0]
    assert (drawn - expected).abs().max() < 0.015
    assert expected.sum(1).tolist() == pytest.approx([1.0] * 4)


def test_waiting_hunting_and_falling_back() -> None:
    game, state = placed(FOUR, players=[(1, 1), (0, 0), (0, 0), (0, 0)], stags=[(1, 1)], hares=[(3, 3)])
    view = View(game, state)
    four = [Kind.NS] * 4
    assert sets(RulePlayers(game, four).options(view, RulePlayers(game, four).begin(1, seeded(0))))[0][0] == {4}
    eager = RulePlayers(game, four, ns_wait="hunt")
    assert sets(eager.options(view, eager.begin(1, seeded(0))))[0][0] == {5}
    game, state = placed(FOUR, players=[(0, 0), (1, 1), (1, 1), (1, 1)], hares=[(0, 2)])
    for fallback, expected in (("random", {1, 3, 4}), ("stay", {4}), ("hare", {3})):
        players = RulePlayers(game, four, fallback=fallback)
        assert sets(players.options(View(game, state), players.begin(1, seeded(0))))[0][0] == expected


def test_wait_gives_up_after_its_patience() -> None:
    game, state = placed(FOUR, players=[(1, 1), (3, 3), None, None], stags=[(1, 1)], hares=[(1, 3)])
    players = RulePlayers(game, [Role(Kind.WAIT, 3), Kind.RAND, Kind.RAND, Kind.RAND])
    memory, chosen = players.begin(1, seeded(0)), []
    for _ in range(5):
        action, memory = players.act(View(game, state), memory, seeded(0))
        chosen.append(action[0, 0].item())
        state, _ = game.step(state, torch.tensor([[chosen[-1], 4, 4, 4]]))
    assert chosen == [4, 4, 4, 3, 3]


@pytest.mark.parametrize(
    ("text", "early", "late"), [("SWITCH(4)", Kind.NS, Kind.NH), ("SWITCH(4,NH)", Kind.NH, Kind.NS)]
)
def test_switch_changes_its_goal_at_its_time(text: str, early: Kind, late: Kind) -> None:
    game = small_game(FOUR)
    players, state = RulePlayers(game, [parse_role(text)] * 4), game.reset(50, seeded(0))
    for t in (0, 3, 4, 20):
        view = View(game, state._replace(t=torch.full((50,), t)))
        wanted = rule_probabilities(players, view, [early if t < 4 else late])[:, :, 0]
        assert_same(players.probabilities(view, players.begin(50, seeded(0))), wanted)


def test_mix_draws_anew_at_every_reset_of_the_games_that_start() -> None:
    game = small_game(FOUR)
    players = RulePlayers(game, [parse_role("MIX(0.3)")] * 3 + [Role(Kind.NS)])
    memory = players.begin(5000, seeded(0))
    assert set(memory["type"].unique().tolist()) == {Kind.NS, Kind.NH}
    assert (memory["type"][:, :3] == Kind.NS).float().mean().item() == pytest.approx(0.3, abs=0.02)
    assert (memory["type"][:, 3] == Kind.NS).all()
    games = torch.arange(5000) % 2 == 0
    again = players.reset(memory, games, seeded(1))
    assert_same(again["type"][~games], memory["type"][~games])
    assert (again["type"][games] != memory["type"][games]).any()


def test_exploiter_joins_only_a_held_stag() -> None:
    kinds = [Kind.EXPL] * 4
    game, state = placed(FOUR, players=[(0, 0), (3, 0), None, None], stags=[(0, 3)], hares=[(3, 3)])
    players = RulePlayers(game, kinds)
    assert sets(players.options(View(game, state), players.begin(1, seeded(0))))[0][0] == {1, 3}  # the hare
    game, state = placed(FOUR, players=[(0, 0), (0, 3), None, None], stags=[(0, 3)], hares=[(3, 3)])
    players = RulePlayers(game, kinds)
    options = sets(players.options(View(game, state), players.begin(1, seeded(0))))[0]
    assert options[0] == {3}  # the stag that player 2 holds
    assert options[1] == {1}  # nobody else is there: player 2 goes for the hare


@pytest.mark.parametrize(("steps", "expected"), [(0, {3}), (1, {3}), (2, {1}), (3, {1})])
def test_near_comes_once_another_player_is_near_a_stag(steps: int, expected: set[int]) -> None:
    """Player 2 is two steps from the stag below player 1, whose hare is on its right; its own nearness is nothing."""
    game, state = placed(FOUR, players=[(1, 0), (3, 2), None, None], stags=[(3, 0)], hares=[(1, 2)])
    players = RulePlayers(game, [Role(Kind.NEAR, steps), Kind.RAND, Kind.RAND, Kind.RAND])
    assert sets(players.options(View(game, state), players.begin(1, seeded(0))))[0][0] == expected
    game, state = placed(FOUR, players=[(2, 0), (0, 3), None, None], stags=[(3, 0)], hares=[(2, 2)])
    assert sets(players.options(View(game, state), players.begin(1, seeded(0))))[0][0] == {3}


def test_near_0_is_an_exploiter_and_shy_is_one_in_some_episodes() -> None:
    game = small_game(FOUR)
    state = game.reset(200, seeded(1))
    state.cell[::2, 3] = state.prey_cell[::2, 0]
    view = View(game, state)
    near, expl = (RulePlayers(game, [role] * 4) for role in (Role(Kind.NEAR, 0), Role(Kind.EXPL)))
    assert torch.equal(*(p.options(view, p.begin(200, seeded(0))) for p in (near, expl)))
    shy = RulePlayers(game, parse_roles("SHY(0.25),NS,SHY(1),NH"))
    types = shy.begin(4000, seeded(0))["type"]
    assert set(types[:, 0].tolist()) == {Kind.EXPL, Kind.NH} and bool((types[:, 2] == Kind.EXPL).all())
    assert (types[:, 0] == Kind.EXPL).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert bool((types[:, 1] == Kind.NS).all()) and str(parse_role("SHY")) == "SHY(0.5)"
