"""The search in C finds what the search of tensors finds, and imagines by the same rules."""

from __future__ import annotations

import ctypes

import pytest
import torch

import marlab.hunt as hunt
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import State
from marlab.hunt.game.views import View
from marlab.hunt.planner import native, planner
from marlab.hunt.planner.agent import HopAgent
from marlab.hunt.planner.dynamics import ego_first
from marlab.hunt.planner.plans import JointPlan
from tests.hunt.helpers import seeded
from tests.hunt.hop_cases import small_mind

pytestmark = pytest.mark.skipif(not isinstance(native._library(), ctypes.CDLL), reason="no C compiler")


def positions(game, count: int) -> State:
    """Situations of all times of an episode, after random moves."""
    generator, state = seeded(3), game.reset(count, seeded(2))
    for step in range(6):
        moved, _ = game.step(state, torch.randint(game.actions, state.cell.shape, generator=generator))
        later = torch.arange(count) % 6 > step
        state = state.where(later & ~game.over(moved), moved)
    return state


def planned(agent: HopAgent, state: State, natively: bool) -> tuple[JointPlan, torch.Tensor]:
    """A plan, and what the generator gives next."""
    agent.planner.engine, generator = ("native" if natively else "tensors"), seeded(7)
    agent.act(View(agent.game, state), agent.begin(state.batch, generator), generator)
    told = agent.explain()
    return told.plan, torch.rand(4, generator=generator)


@pytest.mark.parametrize(("name", "followers"), [("hop_4x4", 0.0), ("hop_4x4", 0.5), ("hop_8x8_b5", 0.5)])
def test_shipped_planners_visit_the_same_in_50_positions(name: str, followers: float) -> None:
    """All in one batch, so that the test is quick; with three trees none of the draws is a tie for last bits."""
    trained, trees = hunt.load(name), 3
    game = hunt.make_game(trained.game, seeded(0), maps=20)
    agent = trained.agent(game, seats=[1], trees=trees, followers=followers)
    state = positions(game, 50)
    (fast, after_fast), (slow, after_slow) = planned(agent, state, True), planned(agent, state, False)
    assert int(slow.visits.sum()) == int((slow.visits.sum(2) > 0).sum()) * trees * 64
    assert torch.equal(fast.visits, slow.visits) and torch.equal(fast.line, slow.line)
    assert torch.equal(after_fast, after_slow)  # the same random numbers were drawn
    for mine, theirs in zip(fast[:6], slow[:6]):
        assert float((mine - theirs).abs().max()) < 5e-3  # where two actions are as likely, last bits choose
        assert float(((mine - theirs).abs() > 1e-4).float().mean()) < 0.01
    assert fast.metrics.keys() == slow.metrics.keys()
    assert all(abs(float(fast.metrics[k] - v)) < 1e-3 for k, v in slow.metrics.items())


CASES = {
    "six players": ("msh_12x12_6p", {}, {"paths": True}),
    "obstacles, own networks": ("msh_8x8_b5", {}, {"paths": True, "independent": True}),
    "one model for all seats": ("msh_4x4_4h2s", {}, {"own_moa": False}),
    "mean rewards and a price of time": ("msh_4x4", {"prosocial": True, "time_reward": -0.1}, {}),
    "an end after the first capture": ("msh_4x4", {"dynamic_final_time": True, "hares": 2}, {}),
    "no stag": ("msh_tiny", {"stags": 0}, {}),
    "networks that hope for too much": ("msh_2p_4x4", {"hares": 1}, {}),
    "loyal players": ("msh_4x4", {}, {}),
}


@pytest.mark.parametrize("case", CASES, ids=list(CASES))
def test_every_imagined_step_is_that_of_the_game(case: str) -> None:
    name, rules, mind = CASES[case]
    config = game_config(name, **rules)
    game = hunt.make_game(config, seeded(0), maps=5)
    agent = HopAgent(
        game, small_mind("hop", (0,), config, **mind), fates=False, loyalty=2.0 if "loyal" in case else 0.0
    )
    who, batch = agent.planner, 12
    if "hope" in case:
        who.nets.critic.bias.data.add_(3.0)
    state = positions(game, batch)
    roots = batch * game.players  # groups of seats, as a plan has them
    games = torch.arange(batch).repeat(game.players)
    seats = torch.arange(game.players).repeat_interleave(batch)
    mine = ego_first(game, state, games, seats)
    goals = torch.randint(2, (roots, game.players - 1), generator=seeded(4))
    meant = agent.mind.goals.candidates[goals]  # [R, S', V]
    prepared = who.coplayers.prepare(goals, meant)
    wish = who._goal_input(torch.nn.functional.one_hot(goals, 2).float())
    hunting = who._hunting(goals)
    assert (hunting is not None) == ("loyal" in case)
    step = native.NativeStep(who, mine, torch.arange(roots), roots, prepared, wish, hunting, seeded(5))
    tensors, embedding, generator = who._expansion(prepared, wish, hunting, seeded(5)), tuple(mine), seeded(6)
    packed = step.root
    for _ in range(who.config.search.simulations):
        actions = torch.randint(game.actions, (roots,), generator=generator)
        alive = State(*embedding).alive[:, 0] & ~game.over(State(*embedding))
        fast, slow = step((packed,), actions), tensors(embedding, actions)
        after = native.unpack(game, fast.embedding[0])
        for one, other in zip(after, State(*slow.embedding)):
            assert torch.equal(one[alive], other[alive])
        assert torch.equal(fast.evaluation.legal[alive], slow.evaluation.legal[alive])
        assert torch.allclose(fast.reward[alive], slow.reward[alive]) and torch.equal(
            fast.discount[alive], slow.discount[alive]
        )
        goes_on = alive & (slow.discount > 0)
        assert torch.allclose(fast.evaluation.logits[goes_on], slow.evaluation.logits[goes_on], atol=1e-5)
        assert torch.allclose(fast.evaluation.value[goes_on], slow.evaluation.value[goes_on], atol=1e-5)
        packed, embedding = native.pack(State(*slow.embedding)), slow.embedding


def test_what_c_does_not_know_is_left_to_tensors() -> None:
    for variant, knows in (("hop", True), ("mcts-random", False), ("hopplus-mcts-wm", False)):
        mind = small_mind(variant)
        agent = HopAgent(hunt.make_game(mind.game), mind)
        assert agent.planner._natively(6) is knows
        assert not agent.planner._natively(planner.MOST_ROOTS + 1)
        assert agent.planner.engine == "native" and mind.planner(agent.game).engine == "tensors"  # as trainings do
