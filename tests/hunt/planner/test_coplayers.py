"""Co-players in imagined situations: random ones are even, oracle ones follow the rule of their goal."""

from __future__ import annotations

import torch

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.views import View
from marlab.hunt.planner.coplayers import RandomCoPlayers, RuleCoPlayers
from marlab.hunt.planner.dynamics import TrueGame
from marlab.hunt.players.rules import RulePlayers, rule_probabilities
from marlab.hunt.players.seats import Kind
from marlab.lab.ppo.choices import apply_mask
from tests.hunt.helpers import seeded, small_game


def test_oracles_are_the_rules_and_random_players_are_even() -> None:
    game = small_game(GameConfig())
    state = game.reset(6, seeded(0))
    games, seats = torch.arange(6), torch.zeros(6, dtype=torch.int64)  # seat 0 first: the imagined game is the game
    dynamics = TrueGame(game)
    root = dynamics.root(state, games, seats)
    seen = dynamics.views_of_others(root)
    view, rules = View(game, state), RulePlayers(game, [Kind.RAND] * 4)
    truth = rule_probabilities(rules, view, (Kind.NS, Kind.NH))[:, 1:]  # [B, 3, 2, A]
    for goal in (0, 1):
        oracle = RuleCoPlayers(game)
        goals = torch.full((6, 3), goal)
        logits = apply_mask(oracle.logits(root, seen, oracle.prepare(goals, goals)), seen.legal)
        torch.testing.assert_close(logits.softmax(-1), truth[:, :, goal], rtol=0, atol=1e-5)
    even = apply_mask(RandomCoPlayers().logits(root, seen, goals), seen.legal).softmax(-1)
    torch.testing.assert_close(even, seen.legal / seen.legal.sum(-1, keepdim=True))
