"""What is in the codes: probes, clouds, prototypes; and what may be believed of players beyond goals."""

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import DOWN, LEFT, RIGHT, STAY, Game
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import BeliefTracker, ExactLikelihoods
from marlab.hunt.others.codes import (
    CoPlayerTypes,
    Goals,
    fuse_prototype_and_history,
    k_means,
    linear_probe,
    make_codebook,
    others_at,
    relabel_by_likelihood,
    two_dimensions,
)
from marlab.hunt.others.config import BeliefConfig
from marlab.hunt.others.vae import Code
from marlab.hunt.players.policy import Memory
from marlab.hunt.players.rules import on_stag
from marlab.lab.errors import UserError
from tests.hunt.helpers import placed, seeded

HUNT = Goals.hunt()


def test_linear_probe_reads_what_is_there_and_nothing_else():
    x, noise = torch.randn(2000, 6, generator=seeded(0)), torch.randn(2000, 6, generator=seeded(1))
    y = (x @ torch.tensor([1.0, -2, 0, 0, 0, 1]) > 0.5).long()
    good = linear_probe(x[:1500], y[:1500], x[1500:], y[1500:])
    bad = linear_probe(noise[:1500], y[:1500], noise[1500:], y[1500:])
    assert good.accuracy > 0.97 and good.balanced > 0.96 and good.rows == 500
    assert bad.accuracy < 0.70 and bad.balanced < 0.56
    assert good.majority == pytest.approx((y[1500:] == 0).float().mean().item())


def test_k_means_finds_separate_clouds():
    centres = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    points = (centres.repeat_interleave(50, 0) + 0.3 * torch.randn(150, 2, generator=seeded(0)))[
        torch.randperm(150, generator=seeded(1))
    ]
    found = k_means(points, 3, seeded(2))
    assert torch.cdist(centres, found).amin(1).max() < 0.3
    assert len(k_means(torch.ones(5, 2), 3, seeded(0))) == 3, "equal points must not break it"


def test_codebook_knows_what_its_prototypes_lead_to():
    codes = torch.cat([torch.zeros(40, 2), torch.full((40, 2), 8.0)])
    outcomes = torch.cat([torch.ones(40), torch.full((40,), 2.0)]).long()
    outcomes[0] = 0
    book = make_codebook(codes, outcomes, 2, seeded(0))
    at_zero = int(book.nearest(torch.zeros(2)))
    assert book.outcome[1, at_zero] > 0.95 and book.outcome[2, 1 - at_zero] > 0.97
    assert book.goal[0, at_zero] > 0.95 and book.goal.sum(0).tolist() == pytest.approx([1, 1])
    assert book.usage.tolist() == [0.5, 0.5] and book.spread.abs().max() == 0


def test_players_without_a_capture_are_judged_by_what_they_did():
    """Three prototypes: stag hunters, hare catchers, and players who never capture anything but act as the first do."""
    codes = torch.tensor([0.0, 4.0, 8.0]).repeat_interleave(40).unsqueeze(1)
    outcomes = torch.tensor([1, 2, 0]).repeat_interleave(40)
    book = make_codebook(codes, outcomes, 3, seeded(0))
    hunter, catcher, waiter = (int(book.nearest(torch.tensor([x]))) for x in (0.0, 4.0, 8.0))
    assert book.goal[0, waiter] == 0.5, "captures say nothing about them"
    deeds = torch.zeros(120, 3)
    deeds[80:110, catcher] = -1.0  # most of them act a little more as stag hunters do
    deeds[110:, hunter] = -1.0
    judged = relabel_by_likelihood(book, codes, outcomes, deeds)
    assert judged.goal[0, hunter] > 0.98 and judged.goal[1, catcher] > 0.98
    assert judged.goal[0, waiter] > 0.85, "one player's deeds are faint, those of thirty in forty are not"
    assert judged.goal.sum(0).tolist() == pytest.approx([1, 1, 1])


def test_two_dimensions_keep_the_largest_variation():
    codes = torch.randn(300, 5, generator=seeded(0)) * torch.tensor([0.1, 5.0, 0.1, 2.0, 0.1])
    flat = two_dimensions(codes)
    assert flat.var(0).tolist() == pytest.approx([codes[:, 1].var().item(), codes[:, 3].var().item()], rel=0.05)


def test_how_much_of_a_goal_is_about_the_stag():
    assert Goals.hunt().stag.tolist() == [1.0, 0.0] and Goals.none().count == 1
    common = torch.tensor([[0.3, 0.1], [0.1, 0.5]])
    assert Goals(torch.eye(2), torch.ones(3, 2), common).stag.tolist() == pytest.approx([0.75, 1 / 6])
    with pytest.raises(ValueError, match="does not fit"):
        Goals(torch.eye(2), torch.ones(3, 4))


def test_a_prototype_and_a_history_meet_where_their_variances_say():
    code = Code(torch.tensor([4.0]), torch.tensor([0.0]))
    meant = fuse_prototype_and_history(code, torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [0.0]]))
    assert meant.tolist() == [[2.0], [2.0]], "halfway between equal variances, and a sure prototype stays"


# --- followers ----------------------------------------------------------------------------------------------------


def near(x: torch.Tensor) -> object:
    return pytest.approx(x.tolist(), abs=1e-6)


def test_a_follower_is_a_hare_catcher_until_somebody_stands_on_the_stag():
    found = CoPlayerTypes(HUNT, 0.4)
    assert found.alone.tolist() == [0, 1, 1] and found.joined.tolist() == [0, 1, 0]
    assert near(found.prior) == [0.5, 0.3, 0.2]  # goals are as probable as before
    assert found.evidence.tolist() == [[1, 1, 1], [1, 0, 1], [0, 1, 1]]  # it may capture either
    assert found.stag.tolist() == [1, 0, 0]
    by_goal = torch.tensor([[0.9, 0.2], [0.9, 0.2]])
    assert found.now(by_goal, torch.tensor([False, True])).tolist() == [
        near(x) for x in torch.tensor([[0.9, 0.2, 0.2], [0.9, 0.2, 0.9]])
    ]
    assert near(found.told(found.prior)) == [0.5 + 0.1, 0.3 + 0.1]


def test_every_goal_about_hares_has_a_follower_who_hunts_as_most_stag_hunters_do():
    common = torch.tensor([[0.1, 0.3, 0.0, 0.1], [0.0, 0.0, 0.2, 0.3]])
    goals = Goals(torch.eye(4), torch.rand(3, 4, generator=seeded(0)), common)
    found = CoPlayerTypes(goals, 0.5)
    assert found.alone.tolist() == [0, 1, 2, 3, 2, 3] and found.joined.tolist() == [0, 1, 2, 3, 1, 1]
    assert found.prior.tolist() == [0.25, 0.25, 0.125, 0.125, 0.125, 0.125]
    meant = torch.full((2, 4, 4), 7.0)  # a history that means the same whatever the goal
    alone, joined = found.meanings(meant)
    assert bool((alone == 7).all()) and bool((joined[:, :4] == 7).all())
    assert torch.equal(joined[:, 4:], goals.candidates[[1, 1]].expand(2, 2, 4))  # how it will hunt is not in there


def test_without_a_goal_about_hares_or_about_the_stag_nobody_follows():
    assert CoPlayerTypes(HUNT, 0.0).count == 2
    assert CoPlayerTypes(Goals.none(), 0.5).count == 1
    only_hares = Goals(torch.eye(2), torch.ones(3, 2), torch.tensor([[0.1, 0.1], [0.4, 0.4]]))
    assert CoPlayerTypes(only_hares, 0.5).count == 2
    with pytest.raises(UserError, match=r"followers is 1, expected 0 or more and below 1"):
        CoPlayerTypes(HUNT, 1.0)


def test_somebody_else_must_stand_there():
    standing = torch.tensor([[False, False, False], [True, False, False], [True, True, False]])
    assert others_at(standing).tolist() == [[False] * 3, [False, True, True], [True] * 3]


class ExactFollowers(ExactLikelihoods):
    """The rules themselves, with followers."""

    def __init__(self, game: Game, hypotheses: CoPlayerTypes) -> None:
        super().__init__(game)
        self.hypotheses, self.goals = hypotheses, hypotheses.count

    def __call__(self, view: View, actions: torch.Tensor, memory: Memory) -> torch.Tensor:
        known = self.hypotheses
        self.goals = known.goals
        by_goal = super().__call__(view, actions, memory)
        self.goals = known.count
        return known.now(by_goal, others_at(on_stag(view.game, view.state)))


@pytest.mark.parametrize(("move", "follows"), [(DOWN, True), (RIGHT, False)])
def test_only_standing_on_the_stag_tells_followers_from_hare_catchers(move: int, follows: bool):
    """Player 2 walks to the hare on its right; then player 1 stands on the stag in the last row."""
    game, state = placed(
        game_config("msh_2p_4x4"), players=[(3, 1), (0, 0)], stags=[(3, 0)], hares=[(0, 3), (1, 3), (2, 3), (3, 3)]
    )
    known = CoPlayerTypes(HUNT, 0.5)
    config = BeliefConfig(floor=0.01, mixing=0.0)
    tracker = BeliefTracker(game, ExactFollowers(game, known), config, known.evidence, known.prior)
    memory = tracker.begin(1)
    assert memory["belief"][0, 1].tolist() == [0.5, 0.25, 0.25]
    after, outcome = game.step(state, torch.tensor([[LEFT, RIGHT]]))  # the stag hunter would go down
    memory = tracker.observe(View(game, state), outcome, memory)
    # stag .5 x .01 (the floor), hare and follower .25 x 1 each
    assert memory["belief"][0, 1].tolist() == near(torch.tensor([0.005, 0.25, 0.25]) / 0.505)
    _, outcome = game.step(after, torch.tensor([[STAY, move]]))
    memory = tracker.observe(View(game, after), outcome._replace(over=torch.tensor([True])), memory)
    # from (0, 1) two ways lead to the stag, one to the hare: stag and follower 1/2, hare .01, or .01, .01 and 1
    weights = torch.tensor([0.005 * 0.5, 0.25 * 0.01, 0.25 * 0.5] if follows else [0.005 * 0.01, 0.25, 0.25 * 0.01])
    assert memory["belief"][0, 1].tolist() == near(weights / weights.sum())
    again = tracker.reset(memory, torch.tensor([True]))
    expected = (memory["belief"][0, 1] + known.prior) / 2  # one episode beside a prior that weighs as much
    assert again["belief"][0, 1].tolist() == near(expected)
    assert (again["belief"][0, 1, 2] > 0.5) == follows


def test_networks_are_not_told_that_nobody_came_to_a_hunter():
    """The second prototype stands for stag hunters who captured nothing: whoever could come hears of a stag hunter."""
    evidence = torch.tensor([[0.0, 0.9, 0.0], [1.0, 0.1, 0.0], [0.0, 0.0, 1.0]])
    goals = Goals(torch.eye(3), evidence, torch.tensor([[0.2, 0.3, 0.0], [0.0, 0.0, 0.5]]))
    belief = torch.tensor([0.1, 0.6, 0.3])
    assert CoPlayerTypes(goals).told(belief).tolist() == near(belief)
    plain = CoPlayerTypes(goals, fates=False)
    assert not plain.depend and plain.told(belief).tolist() == near(torch.tensor([0.7, 0.0, 0.3]))
    assert CoPlayerTypes(goals, 0.5).joined.tolist() == [0, 1, 2, 0]  # followers hunt as those do who captured a stag
