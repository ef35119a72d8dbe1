import pytest
import torch

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import HUNT_HARE, STAY, Outcome
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import (
    BeliefTracker,
    ExactLikelihoods,
    account_posterior,
    condition_on_capture,
    counted,
    observed,
    persistent_prior,
    prior_of,
)
from marlab.hunt.others.config import BeliefConfig
from marlab.lab.errors import UserError
from tests.hunt.helpers import placed

EVEN = torch.tensor([0.5, 0.5])
SURE = torch.tensor([True])


def bayes(floor: float = 0.0, mixing: float = 0.0) -> BeliefConfig:
    return BeliefConfig(floor=floor, mixing=mixing)


# --- the updates --------------------------------------------------------------------------------------------------


def test_bayes_rule_by_hand():
    belief = observed(EVEN[None], torch.tensor([[0.5, 0.25]]), EVEN[None], SURE, bayes())
    assert torch.allclose(belief, torch.tensor([[2 / 3, 1 / 3]]))
    mixed = observed(EVEN[None], torch.tensor([[0.5, 0.25]]), EVEN[None], SURE, bayes(mixing=0.1))
    assert torch.allclose(mixed, 0.9 * belief + 0.05)


def test_floor_keeps_a_goal_alive():
    ruled_out = torch.tensor([[1.0, 0.0]])
    without = observed(EVEN[None], ruled_out, EVEN[None], SURE, bayes())
    with_floor = observed(EVEN[None], ruled_out, EVEN[None], SURE, bayes(floor=1e-3))
    assert without.tolist() == [[1.0, 0.0]]
    assert with_floor[0, 1].item() == pytest.approx(1e-3 / (1 + 1e-3))


def test_an_impossible_observation_means_no_update():
    """With zero mixing and zero floor: excluded by both goals, or by the only one that is still believed in."""
    belief = torch.tensor([[0.7, 0.3], [1.0, 0.0]])
    likelihood = torch.tensor([[0.0, 0.0], [0.0, 0.5]])
    prior = EVEN.expand(2, 2)
    after = observed(belief, likelihood, prior, torch.tensor([True, True]), bayes())
    assert torch.equal(after, belief)


def test_absent_players_teach_nothing():
    belief = torch.tensor([[0.7, 0.3]])
    after = observed(belief, torch.tensor([[0.0, 1.0]]), EVEN[None], torch.tensor([False]), BeliefConfig())
    assert torch.equal(after, belief)


def test_a_capture_reveals_the_goal():
    belief = torch.tensor([[0.9, 0.1], [1.0, 0.0], [0.9, 0.1]])
    hare = torch.tensor([0.0, 1.0]).expand(3, 2)
    after = condition_on_capture(belief, hare, torch.tensor([True, True, False]))
    assert after.tolist() == [[0.0, 1.0], [0.0, 1.0], pytest.approx([0.9, 0.1])]
    # Prototypes of a codebook only lean towards an outcome.
    soft = condition_on_capture(EVEN[None], torch.tensor([[0.8, 0.2]]), SURE)
    assert torch.allclose(soft, torch.tensor([[0.8, 0.2]]))


def test_counts_and_priors_by_hand():
    counts = torch.zeros(1, 2)
    for _ in range(3):
        counts = counted(counts, torch.tensor([[1.0, 0.0]]), 0.9)
    assert counts[0, 0].item() == pytest.approx(1 + 0.9 + 0.81)
    assert prior_of(counts, 1.0)[0].tolist() == pytest.approx([(2.71 + 0.5) / 3.71, 0.5 / 3.71])
    assert prior_of(torch.zeros(1, 8), 1.0)[0].tolist() == pytest.approx([1 / 8] * 8)


@pytest.mark.parametrize(
    "field, value", [("floor", 1.0), ("mixing", -0.1), ("discount", 0.0), ("strength", 0.0), ("lasting", 1.0)]
)
def test_bad_settings_are_refused(field: str, value: float):
    with pytest.raises(UserError, match=f"belief {field} is"):
        BeliefConfig(**{field: value})


# --- in play ------------------------------------------------------------------------------------------------------


def hunts_hare() -> tuple[BeliefTracker, View, Outcome]:
    """Player 1 takes a hare at once, player 2 walks to the stag."""
    game, state = placed(
        game_config("msh_2p_4x4"), players=[(0, 0), (3, 3)], stags=[(3, 1)], hares=[(0, 0), (0, 1), (0, 3), (1, 3)]
    )
    _, outcome = game.step(state, torch.tensor([[HUNT_HARE, 2]]))
    return BeliefTracker(game, ExactLikelihoods(game), BeliefConfig()), View(game, state), outcome


def test_tracker_reads_actions_and_captures():
    tracker, view, outcome = hunts_hare()
    memory = tracker.observe(view, outcome, tracker.begin(1))
    assert memory["belief"][0, 0].tolist() == [0.0, 1.0]
    assert memory["belief"][0, 1, 0] > 0.9, "only the way to the stag leads left from there"
    assert memory["outcome"].tolist() == [[2, 0]]
    assert not memory["finished"].any() and memory["counts"].sum() == 0


def test_goals_are_counted_once_at_the_end_and_forgotten_with_a_new_team():
    tracker, view, outcome = hunts_hare()
    outcome = outcome._replace(over=torch.tensor([True]))
    memory = tracker.begin(1)
    for _ in range(3):  # what follows the end of an episode does not count
        memory = tracker.observe(view, outcome, memory)
    assert memory["counts"][0, 0].tolist() == [0.0, 1.0]
    assert memory["counts"][0, 1].sum().item() == pytest.approx(1.0), "without a capture the posterior is counted"
    fresh = tracker.reset(memory, torch.tensor([True]))
    assert fresh["belief"][0, 0].tolist() == pytest.approx([0.25, 0.75])
    assert not fresh["finished"].any() and fresh["outcome"].sum() == 0
    strangers = tracker.begin_opponents(memory, torch.tensor([True]), new_team=True)
    assert strangers["belief"][0, 0].tolist() == [0.5, 0.5]
    known = tracker.begin_opponents(memory, torch.tensor([True]), new_team=False)
    assert torch.equal(known["belief"], fresh["belief"])
    other_game = tracker.reset(memory, torch.tensor([False]))
    assert torch.equal(other_game["belief"], memory["belief"])


def test_ablations_switch_off_their_half():
    _, view, outcome = hunts_hare()
    outcome = outcome._replace(over=torch.tensor([True]), hunters=torch.zeros_like(outcome.hunters))
    game = view.game

    def after(config: BeliefConfig) -> tuple[torch.Tensor, torch.Tensor]:
        tracker = BeliefTracker(game, ExactLikelihoods(game), config)
        memory = tracker.observe(view, outcome, tracker.begin(1))
        return memory["belief"][0, 1], tracker.reset(memory, torch.tensor([True]))["belief"][0, 1]

    belief, prior = after(BeliefConfig(intra=False))
    assert belief.tolist() == [0.5, 0.5]
    belief, prior = after(BeliefConfig(inter=False))
    assert belief[0] > 0.9 and prior.tolist() == [0.5, 0.5]


def test_impossible_steps_leave_the_tracker_alone():
    """A player who stays although both rules move on: zero floor and mixing mean no update."""
    game, state = placed(
        game_config("msh_2p_4x4"), players=[(0, 0), (3, 3)], stags=[(3, 1)], hares=[(0, 3), (1, 1), (1, 2), (2, 2)]
    )
    _, outcome = game.step(state, torch.tensor([[STAY, STAY]]))
    tracker = BeliefTracker(game, ExactLikelihoods(game), bayes())
    memory = tracker.observe(View(game, state), outcome, tracker.begin(1))
    assert (memory["belief"] == 0.5).all()


def test_evidence_must_fit():
    game = make_game(game_config("msh_tiny"))
    with pytest.raises(ValueError, match="does not fit 2 goals"):
        BeliefTracker(game, ExactLikelihoods(game), evidence=torch.ones(3, 8))


# --- players who keep what they are after ---------------------------------------------------------------------------


def test_somebody_who_keeps_its_aim_by_hand():
    drawn = torch.tensor([[0.2, 0.2, 0.6]])
    aims = torch.tensor([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # the first two goals are one aim
    prior = persistent_prior(torch.tensor([[0.9, 0.1, 0.0]]), drawn, aims)
    assert prior[0].tolist() == pytest.approx([0.98 * 0.5 + 0.02 * 0.2] * 2 + [0.02 * 0.6])
    each = persistent_prior(torch.tensor([[0.9, 0.1, 0.0]]), drawn, torch.eye(3))
    assert each[0].tolist() == pytest.approx([0.98 * 0.9 + 0.004, 0.98 * 0.1 + 0.004, 0.012])


def test_episodes_tell_who_keeps_its_aim():
    kept, drawn = torch.tensor([[0.99, 0.01]]), torch.tensor([[0.6, 0.4]])
    half = torch.tensor([0.5])
    lasts, after = account_posterior(half, kept, drawn, torch.tensor([[1.0, 0.0]]))
    assert lasts.item() == pytest.approx(0.99 / (0.99 + 0.6)) and after[0].tolist() == [1.0, 0.0]
    fickle, after = account_posterior(half, kept, drawn, torch.tensor([[0.0, 1.0]]))
    assert fickle.item() == pytest.approx(0.01 / 0.41) and after[0].tolist() == [0.0, 1.0]
    nothing, _ = account_posterior(half, kept, drawn, (kept + drawn) / 2)  # an episode that told nothing
    assert nothing.item() == pytest.approx(0.5)


@pytest.mark.parametrize("lasting", [0.0, 0.5])
def test_a_lasting_aim_is_known_after_two_episodes(lasting: float):
    _, view, outcome = hunts_hare()
    tracker = BeliefTracker(view.game, ExactLikelihoods(view.game), BeliefConfig(lasting=lasting))
    over = torch.tensor([True])

    memory = tracker.begin(1)
    for _ in range(2):  # player 1 takes a hare, and the episode is over
        memory = tracker.reset(tracker.observe(view, outcome._replace(over=over), memory), over)
    after_two = memory["belief"][0, 0, 0].item()
    assert after_two == pytest.approx(0.5 / 2.9, abs=0.01) if not lasting else after_two < 0.08
    if lasting:
        assert memory["lasts"][0, 0] > 0.5
        strangers = tracker.begin_opponents(memory, over)
        assert strangers["belief"][0, 0].tolist() == [0.5, 0.5] and strangers["lasts"].unique().tolist() == [0.5]


def test_a_player_who_draws_anew_stays_uncertain():
    drawn, lasts, kept = torch.tensor([[0.5, 0.5]]), torch.tensor([0.5]), torch.tensor([[0.5, 0.5]])
    counts = torch.zeros(1, 2)
    for episode in range(12):  # stag, hare, stag, hare, ...
        seen = torch.tensor([[1.0, 0.0]]) if episode % 2 == 0 else torch.tensor([[0.0, 1.0]])
        lasts, after = account_posterior(lasts, kept, drawn, seen)
        counts = counted(counts, seen, 0.9)
        drawn = prior_of(counts, 1.0)
        kept = persistent_prior(after, drawn, torch.eye(2))
    assert lasts.item() == pytest.approx(0.02)  # never quite ruled out
    assert 0.4 < (lasts.unsqueeze(-1) * kept + (1 - lasts).unsqueeze(-1) * drawn)[0, 0].item() < 0.6
