"""Look-ahead with the true dynamics: it sees what kills, and saves more than the scripts it goes on with."""

from __future__ import annotations

from dataclasses import replace

import torch

from marlab.fish.measure.lookahead import LookAhead
from marlab.fish.measure.policies import play, scripted
from marlab.fish.sea import constants as sea
from marlab.fish.sea.dynamics import advance
from marlab.fish.sea.perception import observe
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import SEAS
from tests.fish.build import sea_of


def test_it_takes_the_only_action_that_lives() -> None:
    """A fish swims into the line of a fast ball: only turning or braking saves it."""
    cfg = replace(SEAS["v32"], predator_speed_factor=1.0)
    state = sea_of([(1.0, -0.79)], [(0.0, 1.0)], predator=(0.4, 0.0), predator_velocity=(6.0, 0.0))
    lives = [bool(advance(state, torch.tensor([[action]]), predator_step(cfg)).alive) for action in range(5)]
    assert lives == [False, True, True, True, False]
    chosen = int(LookAhead(1).act(state, cfg))
    assert lives[chosen]


def test_first_actions_are_scored_with_the_real_predator() -> None:
    """[5, B, F]: each number is what playing that action, then the script, comes to."""
    cfg = replace(SEAS["pursuit"], num_fish=3, include_neighbor_features=False)
    state, _ = seeded_reset([1, 2], cfg)
    dodge, slip = scripted("dodge"), scripted("slip")
    scores = LookAhead(4)._scores(state, cfg, dodge, slip)
    assert scores.shape == (5, 2, 3)
    now, nearest, lived = state, sea.VISION_RADIUS, 0
    for step in range(4):  # fish 2 of arena 1, first action LEFT
        seen = observe(now, cfg)
        actions = dodge(seen)
        actions[1, 2] = sea.LEFT if step == 0 else slip(seen)[1, 2]
        now = advance(now, actions, predator_step(cfg))
        lived += int(now.alive[1, 2])
        gap = float(torch.hypot(now.x[1, 2] - now.predator_x[1], now.y[1, 2] - now.predator_y[1]))
        nearest = min(nearest, gap)
    assert float(scores[sea.LEFT, 1, 2]) == torch.tensor(lived * 10.0 + nearest).item()


def test_looking_ahead_saves_more_than_its_scripts() -> None:
    cfg = replace(SEAS["pursuit"], num_fish=3, include_neighbor_features=False)
    start, _ = seeded_reset([5, 6], cfg)
    script, seer = (play(start, who, cfg, 80).survival for who in (scripted("swerve"), LookAhead(6, ("swerve",))))
    assert float(seer.mean()) > float(script.mean())


def test_a_trained_policy_is_what_the_others_are_expected_to_follow() -> None:
    cfg = replace(SEAS["pursuit"], num_fish=3, include_neighbor_features=False)
    state, _ = seeded_reset([1], cfg)
    asked: list[int] = []

    def hold(obs: torch.Tensor) -> torch.Tensor:
        asked.append(len(obs))
        return torch.full(obs.shape[:-1], sea.HOLD)

    LookAhead(2, ("slip",), hold).act(state, cfg)
    assert asked == [15, 15, 15, 15, 15]  # as the others' way twice in both passes, and once more to go on with
