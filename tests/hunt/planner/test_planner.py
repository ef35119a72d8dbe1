"""Planning: who decides, what is imagined, what the trees find, how draws become a policy."""

from __future__ import annotations

import pytest
import torch

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import HUNT_HARE, HUNT_STAG, RIGHT, STAY, Game
from marlab.hunt.others.codes import CoPlayerTypes, Goals
from marlab.hunt.others.copies import copy_generators, fold, unfold
from marlab.hunt.planner.config import PlanConfig
from marlab.hunt.planner.coplayers import LearnedCoPlayers, RandomCoPlayers, RuleCoPlayers
from marlab.hunt.planner.dynamics import TrueGame
from marlab.hunt.planner.nets import PlayerNets
from marlab.hunt.planner.planner import Planner, draw_goals
from marlab.hunt.planner.plans import boltzmann
from marlab.lab.search.search import SearchConfig
from tests.hunt.helpers import placed, seeded, small_game
from tests.hunt.hop_cases import even, small_mind

FOUR = GameConfig()


def blank_nets(game: GameConfig, copies: int = 1, goals: int = 2) -> PlayerNets:
    """Networks that know nothing: an even prior and the value 0."""
    nets = PlayerNets(game, goals, 4, copy_generators(range(copies), 1, "blank"))
    with torch.no_grad():
        for weights in nets.parameters():
            weights.zero_()
    return nets


# --- who decides ---------------------------------------------------------------------------------------------------


def test_fold_and_back() -> None:
    x = torch.arange(2 * 3 * 4 * 2).view(6, 4, 2)  # two seeds of three games, four seats
    for copies in (2, 8):
        assert torch.equal(unfold(fold(x, 2, copies), 2, 4), x)
    assert torch.equal(fold(x, 2, 8)[5], x[3:, 1])  # copy 5 is seat 1 of seed 1


# --- what trees find -------------------------------------------------------------------------------------------------


def test_the_hare_under_the_feet_is_taken_without_any_knowledge() -> None:
    """Check 26: with a constant value the terminal reward is found."""
    game, state = placed(FOUR, players=[(0, 0), (3, 3), (3, 2), (2, 3)], stags=[(1, 2)], hares=[(0, 0), (3, 0)])
    for root in ("puct", "gumbel"):
        plan = PlanConfig(trees=2, search=SearchConfig(simulations=24, root=root, max_depth=6))  # type: ignore[arg-type]
        planner = Planner(game, blank_nets(FOUR), RandomCoPlayers(), TrueGame(game), plan)
        want = torch.tensor([[True, False, False, False]])
        found = planner.plan(state, even(1, 4), want, seeded(0))
        assert int(found.policy[0, 0].argmax()) == HUNT_HARE
        assert abs(float(found.q[0, 0, HUNT_HARE]) - 1.0) < 1e-5  # in the units of the game
        assert float(found.metrics["improvement"]) > 0 and float(found.policy[0, 1:].abs().sum()) == 0.0
        assert int(found.visits[0, 0].sum()) == 48


def test_a_player_left_alone_takes_a_hare_however_much_its_network_hopes_for() -> None:
    game, state = placed(FOUR, players=[(1, 1), None, None, None], stags=[(1, 1)], hares=[(1, 2)])
    nets = blank_nets(FOUR)
    nets.critic.bias.data.fill_(1.0)  # worth a shared stag
    planner = Planner(game, nets, RandomCoPlayers(), TrueGame(game), PlanConfig(trees=1, search=SearchConfig(64)))
    want = torch.tensor([[True, False, False, False]])
    plan = planner.plan(state, even(1, 4, 2), want, seeded(0))
    assert float(plan.guess[0, 0]) == 1.0 and int(plan.policy[0, 0].argmax()) == RIGHT


def test_a_partner_at_the_stag_is_used_if_its_goal_is_the_stag() -> None:
    """The same situation, two beliefs: hunt with a partner who is after the stag, take the hare otherwise."""
    game, state = placed(FOUR, players=[(0, 0), (0, 1), (3, 3), (3, 3)], stags=[(0, 1)], hares=[(0, 0), (3, 3), (3, 2)])
    plan = PlanConfig(trees=4, search=SearchConfig(simulations=64, root="gumbel", max_depth=8))
    planner = Planner(game, blank_nets(FOUR), RuleCoPlayers(game), TrueGame(game), plan)
    want = torch.tensor([[True, False, False, False]])
    hunters, catchers = even(1, 4), even(1, 4)
    hunters[0, 0] = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    catchers[0, 0] = torch.tensor([[0.0, 1.0]] * 3)
    found = planner.plan(state, hunters, want, seeded(0))
    assert int(found.policy[0, 0].argmax()) == RIGHT and float(found.q[0, 0, RIGHT]) > 3.0
    assert found.line[0, 0, :2].tolist() == [RIGHT, HUNT_STAG]
    assert int(planner.plan(state, catchers, want, seeded(0)).policy[0, 0].argmax()) == HUNT_HARE


@pytest.mark.parametrize(
    ("goals", "prey", "price"),
    [
        ([0, 1, 1], "stag", 0.4),  # the second player counts on it
        ([0, 0, 1], "stag", 0.0),  # two hunters have each other
        ([1, 1, 2], "stag", 0.0),  # nobody hunts; the last one is a follower
        ([0, 1, 1], "none", 0.0),  # there is no stag left
    ],
)
def test_a_hare_costs_loyalty_while_somebody_counts_on_the_planner(goals: list[int], prey: str, price: float) -> None:
    game, state = placed(FOUR, players=[(0, 0), (3, 3), (3, 2), (2, 3)], stags=[(1, 2)], hares=[(0, 0), (3, 0)])
    if prey == "none":
        state.prey_alive[:, 0] = False
    coplayers, known = (
        LearnedCoPlayers(small_mind("hop", game=FOUR, own_moa=False).others.moa),
        CoPlayerTypes(Goals.hunt(), 0.5),
    )
    planner = Planner(
        game, blank_nets(FOUR), coplayers, TrueGame(game), PlanConfig(), hypotheses=known, loyalty=2.0, reward_scale=0.2
    )
    drawn = torch.tensor([goals])
    prepared = planner._prepare(drawn.unsqueeze(1), Goals.hunt().candidates.expand(1, 3, -1, -1))
    expand = planner._expansion(prepared, None, planner._hunting(drawn), seeded(0))
    assert float(expand(tuple(state), torch.tensor([HUNT_HARE])).reward) == pytest.approx(0.2 - price)
    assert float(expand(tuple(state), torch.tensor([STAY])).reward) == 0.0


def test_looking_one_step_ahead() -> None:
    game, state = placed(FOUR, players=[(0, 0), (3, 3), (3, 2), (2, 3)], stags=[(1, 2)], hares=[(0, 0), (3, 0)])
    planner = Planner(game, blank_nets(FOUR), RandomCoPlayers(), TrueGame(game), PlanConfig(draws=5), one_step=True)
    found = planner.plan(state, even(1, 4), state.alive, seeded(0))
    assert int(found.policy[0, 0].argmax()) == HUNT_HARE and float(found.q[0, 0, STAY]) == 0.0
    assert float(found.metrics["depth"]) == 1.0


def test_rollouts_walk_to_the_nearest_prey() -> None:
    """Alone with a hare two steps away: half of the rollouts take it after three steps, half wait at the stag."""
    game, state = placed(FOUR, players=[(0, 0), None, None, None], stags=[(3, 3)], hares=[(0, 2)])
    planner = Planner(game, blank_nets(FOUR), RandomCoPlayers(), TrueGame(game), PlanConfig(), reward_scale=1.0)
    many = state.select(torch.zeros(400, dtype=torch.int64))
    found = planner._roll_out(tuple(many), torch.zeros(400, 3, dtype=torch.int64), seeded(0))
    assert {round(float(x), 6) for x in found} == {0.0, round(0.95**2, 6)}
    assert abs(float((found > 0).float().mean()) - 0.5) < 0.1


# --- from values to a policy -----------------------------------------------------------------------------------------


def test_goals_are_drawn_from_beliefs() -> None:
    believed = torch.tensor([[[0.2, 0.8], [1.0, 0.0]]])
    drawn = draw_goals(believed, 4000, seeded(0))
    assert drawn.shape == (1, 4000, 2)
    assert abs(float(drawn[0, :, 0].float().mean()) - 0.8) < 0.03 and int(drawn[0, :, 1].max()) == 0


def test_beta_decides_how_random_players_with_exact_values_are() -> None:
    """Check 28: four players with exact hare values who act by softmax(beta Q) on the 4x4 grid."""
    game = small_game(FOUR)
    for beta, expected in ((2.0, 1.452), (20.0, 1.247), (50.0, 0.624)):
        assert abs(_entropy_of_hare_hunters(game, beta) - expected) < 0.03, beta


def _entropy_of_hare_hunters(game: Game, beta: float) -> float:
    """Mean entropy over all decisions of 400 episodes; Q = 0.95 ** (1 + d) after a move, 1 for catching a hare."""
    generator = seeded(7)
    state, running = game.reset(400, generator), torch.ones(400, dtype=torch.bool)
    total = count = 0.0
    hare = game.prey_kind == 1
    for _ in range(game.config.final_time):
        legal = game.legal(state)
        q = torch.zeros(legal.shape)
        for a in range(5):
            moved = state._replace(cell=game.maps.move[0, state.cell, a])  # an open grid has one map
            far = (game.paths(moved) >> 4).masked_fill(~(state.prey_alive.unsqueeze(1) & hare), 99).amin(2)
            q[..., a] = torch.where(far < 99, 0.95 ** (1.0 + far), 0.0)
        q[..., HUNT_HARE] = 1.0
        policy = boltzmann(q, legal, beta)
        there = state.alive & running.unsqueeze(1)
        entropy = -(policy * policy.clamp_min(1e-30).log()).sum(-1)
        total, count = total + float((entropy * there).sum()), count + float(there.sum())
        actions = policy.flatten(0, 1).multinomial(1, generator=generator).view(state.cell.shape)
        after, outcome = game.step(state, actions)
        state, running = after.where(~running, state), running & ~outcome.over
    return total / count
