"""Beliefs over whole games, as the table has them."""

import pytest

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.others.config import TRAINING_DISCOUNT, BeliefConfig
from marlab.hunt.pretraining.belief_report import across_episodes, after_switch, exact_source, within_episode
from marlab.lab.runs.rng import Rngs


def test_exact_belief_by_step_follows_the_table():
    game = make_game(game_config("msh_4x4"))
    found = within_episode(game, exact_source(game), BeliefConfig(floor=0.0, mixing=0.0), 1500, Rngs(0), steps=4)
    assert found == pytest.approx([0.50, 0.75, 0.93, 0.98, 0.993], abs=0.02)
    usual = within_episode(game, exact_source(game), BeliefConfig(), 500, Rngs(1), steps=4)
    assert usual[4] >= 0.9


def test_prior_after_ten_episodes():
    game = make_game(game_config("msh_4x4"))
    quick = across_episodes(game, exact_source(game), BeliefConfig(), 30, Rngs(0), episodes=10)
    slow = across_episodes(game, exact_source(game), BeliefConfig(discount=TRAINING_DISCOUNT), 30, Rngs(0), episodes=10)
    assert quick[0] == 0.5 and quick[10] >= 0.85
    assert slow[10] > quick[10], "with types that never change, forgetting slower can only help"


def test_belief_turns_after_a_switch_only_if_it_can_forget():
    game = make_game(game_config("msh_4x4"))
    usual = after_switch(game, exact_source(game), BeliefConfig(), 300, Rngs(0))
    assert usual.games > 100 and usual.turned == usual.games
    stubborn = after_switch(game, exact_source(game), BeliefConfig(floor=0.0, mixing=0.0), 300, Rngs(0))
    assert stubborn.games > 100 and stubborn.ever == 0
