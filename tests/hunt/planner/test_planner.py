"""Planning: who decides, what is imagined, what the trees find, how draws become a policy."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import HUNT_HARE, HUNT_STAG, RIGHT, STAY, Game
from marlab.hunt.game.views import View
from marlab.hunt.planner.config import MindConfig, PlanConfig
from marlab.hunt.planner.coplayers import RandomCoPlayers, RuleCoPlayers
from marlab.hunt.planner.dynamics import ImaginedGame, TrueGame, ego_first, legal_of_planes
from marlab.hunt.planner.mind import Goals, Mind, fold, unfold
from marlab.hunt.planner.nets import OtherNets, PlayerNets, copy_generators
from marlab.hunt.planner.planner import Planner, boltzmann, decisions, draw_goals, normalised
from marlab.hunt.planner.rows import FAR, encode, row_layout
from marlab.hunt.world_model.model import make_model
from marlab.lab.search.search import SearchConfig
from tests.hunt.helpers import placed, seeded, small_game
from tests.hunt.hop_cases import TINY, small_mind

FOUR = GameConfig()


def blank_nets(game: GameConfig, copies: int = 1, goals: int = 2) -> PlayerNets:
    """Networks that know nothing: an even prior and the value 0."""
    nets = PlayerNets(game, goals, 4, copy_generators(range(copies), 1, "blank"))
    with torch.no_grad():
        for weights in nets.parameters():
            weights.zero_()
    return nets


def even(batch: int, players: int, goals: int = 2) -> Tensor:
    return torch.full((batch, players, players - 1, goals), 1.0 / goals)


# --- who decides ---------------------------------------------------------------------------------------------------


def test_decisions_are_grouped_by_seed_and_seat() -> None:
    want = torch.tensor([[1, 0], [0, 0], [1, 1], [0, 1], [0, 0], [1, 0]]).bool()  # two seeds of three games
    who = decisions(want, 2)
    assert who is not None
    found = {(int(g), int(s)) for g, s, r in zip(who.game.flatten(), who.seat.flatten(), who.real.flatten()) if r}
    assert found == {(0, 0), (2, 0), (2, 1), (3, 1), (5, 0)}
    assert who.game.shape == (4, 2)
    assert bool((who.game[:2] < 3).all()) and bool((who.game[2:] >= 3).all())  # groups of seed 0, then of seed 1
    assert decisions(torch.zeros(4, 2).bool(), 2) is None
    larger = decisions(want, 2, sizes=1)
    assert larger is not None and larger.game.shape == (4, 3) and int(larger.real.sum()) == 5


def test_fold_and_back() -> None:
    x = torch.arange(2 * 3 * 4 * 2).view(6, 4, 2)  # two seeds of three games, four seats
    for copies in (2, 8):
        assert torch.equal(unfold(fold(x, 2, copies), 2, 4), x)
    assert torch.equal(fold(x, 2, 8)[5], x[3:, 1])  # copy 5 is seat 1 of seed 1


# --- imagining -----------------------------------------------------------------------------------------------------


def test_every_seat_imagines_itself_first() -> None:
    game = small_game(FOUR)
    state = game.reset(6, seeded(0))
    games, seats = torch.arange(6), torch.tensor([0, 1, 2, 3, 2, 1])
    mine = ego_first(game, state, games, seats)
    everyone, legal = encode(game, state, torch.arange(4))
    dynamics = TrueGame(game)
    root = dynamics.root(state, games, seats)
    own, theirs = dynamics.own_view(root), dynamics.views_of_others(root)
    for b in range(6):
        seat = int(seats[b])
        assert torch.equal(own.rows[b, 0], everyone[b, seat]) and torch.equal(own.legal[b, 0], legal[b, seat])
        for k in range(3):
            assert torch.equal(theirs.rows[b, k], everyone[b, (seat + 1 + k) % 4])
    action, others = torch.full((6,), RIGHT), torch.full((6, 3), STAY)
    stepped = dynamics.step(root, action, others)
    joint = torch.full((6, 4), STAY)
    joint[games, seats] = RIGHT
    after, _ = game.step(state, joint)
    assert torch.equal(ego_first(game, after, games, seats).cell, stepped.embedding[1])
    assert mine.batch == 6


@pytest.mark.parametrize("paths", [False, True])
def test_imagined_views_and_legal_actions_are_those_of_the_game(paths: bool) -> None:
    game = small_game(GameConfig(height=6, width=6, max_block_comp=3))
    state = game.reset(20, seeded(1))
    state = state._replace(alive=torch.rand(20, 4, generator=seeded(2)) < 0.8)
    assert torch.equal(legal_of_planes(View(game, state).board, 4), game.legal(state))
    model = make_model("structured", game.config, width=8, generator=seeded(3)).eval()
    true, imagined = TrueGame(game, paths), ImaginedGame(game, model, paths)
    games, seats = torch.arange(20), torch.arange(20) % 4
    a, b = (d.views_of_others(d.root(state, games, seats)) for d in (true, imagined))
    assert torch.equal(a.rows, b.rows) and torch.equal(a.legal, b.legal) and torch.equal(a.time, b.time)
    planes, _, which = imagined.root(state, games, seats)
    late = (planes, torch.full((20,), game.config.final_time - 1), which)
    stepped = imagined.step(late, torch.full((20,), STAY), torch.full((20, 3), STAY))
    assert bool((stepped.stays == 0).all())  # the clock needs no model


def test_rows_tell_the_shortest_ways() -> None:
    """By hand: nearer moves and distances around an obstacle, of those who are there only."""
    config = GameConfig(max_block_comp=1)
    spots = {"players": [(0, 0), (3, 3), (3, 2), None], "hares": [(0, 0), (3, 0)], "obstacles": [(0, 1)]}
    game, state = placed(config, stags=[(1, 2)], **spots)
    layout = row_layout(config, True)
    rows, _ = encode(game, state, torch.arange(4), True)
    ways = rows[0, :, layout.ways : layout.distances].view(4, 2, STAY).tolist()
    assert ways[0] == [[0, 1, 0, 0], [0, 0, 0, 0]]  # down to the stag, the right is blocked; it stands on a hare
    assert ways[1] == [[1, 0, 1, 0], [0, 0, 1, 0]]  # up or left; the nearest hare is to the left
    assert ways[3] == [[0] * STAY] * 2  # gone
    steps = rows[0, 1, layout.distances :].view(4, 2, FAR + 1)  # as player 2 sees itself, 3, 4 and 1
    assert steps[0].argmax(1).tolist() == [3, 3] and steps[1].argmax(1).tolist() == [2, 2]
    assert steps[3].argmax(1).tolist() == [3, 0] and steps.sum((1, 2)).tolist() == [2, 2, 0, 2]
    plain, _ = encode(game, state, torch.arange(4))
    assert torch.equal(rows[..., : layout.ways], plain)
    game, state = placed(config, **spots)  # no stag is left
    rows, _ = encode(game, state, torch.arange(4), True)
    assert not rows[0, 0, layout.ways : layout.ways + STAY].any()
    assert rows[0, 0, layout.distances :].sum() == 3


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


def test_looking_one_step_ahead() -> None:
    game, state = placed(FOUR, players=[(0, 0), (3, 3), (3, 2), (2, 3)], stags=[(1, 2)], hares=[(0, 0), (3, 0)])
    planner = Planner(
        game, blank_nets(FOUR), RandomCoPlayers(), TrueGame(game), PlanConfig(draws=5), one_step=True
    )  # fmt: skip
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


def test_normalised_values() -> None:
    q = torch.tensor([[1.0, 3.0], [2.0, 2.0]])
    found = normalised(q, torch.tensor([1.0, 2.0]), torch.tensor([5.0, 2.0]))
    assert torch.equal(found, torch.tensor([[0.0, 0.5], [0.0, 0.0]]))


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


# --- networks --------------------------------------------------------------------------------------------------------


def test_goals_told_once_are_goals_told_every_time() -> None:
    """What a tree precomputes gives the same predictions as trying all goals, for every observer's own network."""
    nets = OtherNets(TINY, torch.eye(2), 8, copy_generators((0, 1), 2, "t"))
    with torch.no_grad():
        nets.actor.weight.normal_(generator=seeded(0))
        nets.place.normal_(generator=seeded(1))
    rows = torch.randint(0, 2, (4, 5, 1, nets.sight.rows.weight.shape[1]), generator=seeded(2)).to(torch.uint8)
    time, goal = torch.rand(4, 5, generator=seeded(3)), torch.randint(0, 2, (4, 5, 1), generator=seeded(4))
    every = nets(rows, time)  # [P, N, S', K, A]
    given = nets.given(rows, time, nets.goal_input(goal))
    expected = every.gather(3, goal[..., None, None].expand(-1, -1, -1, 1, every.shape[-1])).squeeze(3)
    torch.testing.assert_close(given, expected)
    single = OtherNets(TINY, torch.eye(2), 8, copy_generators((1,), 2, "t"))
    single.load_state_dict({k: w if k == "goals" else w[2:] for k, w in nets.state_dict().items()})
    torch.testing.assert_close(single(rows[2:], time[2:]), every[2:])


def test_predictions_are_distributions_over_what_is_legal() -> None:
    game = small_game(FOUR)
    state = game.reset(4, seeded(0))
    state = state._replace(alive=torch.tensor([[True, True, False, True]] * 4))
    view = View(game, state)
    for variant in ("hop", "direct-om", "mcts-self", "mcts-random"):
        mind = small_mind(variant, seeds=(0, 1), game=FOUR)
        found = mind.predict(view, even(4, 4, mind.count))
        total = found.sum(-1)
        assert torch.allclose(total[:, 0], torch.tensor([1.0, 0.0, 1.0]))  # player 3 has left
        legal = game.legal(state)[:, [1, 2, 3]]
        assert float((found[:, 0] * ~legal).sum()) == 0.0


def test_a_mind_cut_down_to_one_seed_plans_alike() -> None:
    game = small_game(TINY)
    mind = Mind(TINY, MindConfig(variant="hop", hidden=8), Goals.hunt(), (4, 9))
    with torch.no_grad():
        for weights in mind.parameters():
            weights.normal_(generator=seeded(1))
    state = game.reset(6, seeded(2))
    view = View(game, state)
    belief = even(6, 2)
    alone = mind.one(9).predict(View(game, state.select(slice(3, 6))), belief[3:])
    torch.testing.assert_close(mind.predict(view, belief)[3:], alone)
