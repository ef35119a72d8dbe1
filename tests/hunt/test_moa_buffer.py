import copy
from dataclasses import replace

import pytest
import torch

from marlab.hunt.config import game_config
from marlab.hunt.dataset import Part
from marlab.hunt.goal_data import goal_data
from marlab.hunt.legacy_rows import with_rows_after_exit
from marlab.hunt.moa_buffer import LegacyMoaBuffer, MoaBuffer, MoaLearner, MoaLearning, OfflineRows, score_pairs
from marlab.hunt.others import Moa
from marlab.hunt.players import Kind
from marlab.lab.errors import UserError
from marlab.lab.testing import assert_same

from .helpers import seeded
from .offline import offline_data

GAME = game_config("msh_4x4")
LEARNING = MoaLearning(capacity=1500, batch=48, passes=3)


def goals_of(part: Part, observers: int = 4) -> torch.Tensor:
    """[sequences, observers, 2] the true goals, with a trace of who says so."""
    kind = part.rows.type[part.offsets[:-1]]
    goal = torch.nn.functional.one_hot((kind == Kind.NH).long(), 2).float()
    return goal.unsqueeze(1).repeat(1, observers, 1)


def offline_rows() -> OfflineRows:
    data = goal_data(GAME, offline_data().part("train"), "type", 10, "cpu")
    return OfflineRows(data.planes, data.mask, data.time, data.action, data.goal)


def filled(now: int = 0) -> MoaBuffer:
    part = offline_data().part("validation")
    buffer = MoaBuffer(GAME, 2, LEARNING.capacity)
    buffer.add(part, goals_of(part), now)
    return buffer


def test_drawn_steps_are_steps_of_the_pairs_other():
    part = offline_data().part("validation")
    buffer = MoaBuffer(GAME, 2, 5000)
    goals = goals_of(part)
    goals[:, 3] = 0.5  # observer 3 knows nothing
    buffer.add(part, goals, update=0)
    steps = buffer.draw(200, 0, 50, seeded(0))
    assert steps.planes.shape == (4, 3, 200, 4, 4, 7) and steps.goal.shape == (4, 3, 200, 2)
    assert (steps.goal[3] == 0.5).all() and (steps.goal[:3].amax(-1) == 1).all()
    assert steps.mask.gather(-1, steps.action.unsqueeze(-1)).all()
    stored = {j: {row.numpy().tobytes() for row in part.rows.obs[part.rows.player == j]} for j in range(4)}
    for i in range(4):
        for k in range(3):
            seen = {row.numpy().tobytes() for row in steps.planes[i, k]}
            assert seen <= stored[(i + 1 + k) % 4], f"observer {i}, slot {k}"


def test_the_ring_forgets_the_oldest_and_age_limits_what_is_drawn():
    part = offline_data().part("validation")
    buffer = MoaBuffer(GAME, 2, 100)
    for update in (0, 10, 60):
        buffer.add(part, goals_of(part), update)
    assert (buffer.update == 60).all(), "every player had more than 100 rows"
    buffer = MoaBuffer(GAME, 2, 20_000)
    for update in (0, 10, 60):
        buffer.add(part, goals_of(part), update)
    rows = torch.bincount(part.rows.player)
    assert torch.equal(buffer.usable(60, 50), 2 * rows) and torch.equal(buffer.usable(60, 49), rows)
    ages = buffer.draw(300, 60, 50, seeded(0)).age
    assert set(ages.unique().tolist()) == {0, 50}


def test_rows_of_players_who_left_are_refused():
    part = with_rows_after_exit(offline_data().part("validation"), 4)
    with pytest.raises(ValueError, match="not a step"):
        MoaBuffer(GAME, 2, 100).add(part, goals_of(part), 0)
    clean = offline_data().part("validation")
    with pytest.raises(ValueError, match="goals"):
        MoaBuffer(GAME, 2, 100).add(clean, goals_of(clean)[:-1], 0)
    with pytest.raises(ValueError, match="no usable rows"):
        MoaBuffer(GAME, 2, 100).draw(5, 0, 50, seeded(0))


def test_batches_mix_offline_and_online_and_say_so():
    learner = MoaLearner(Moa(GAME, 2, shared=True, generator=seeded(0)).spread(4), LEARNING)
    told = learner.learn(filled(), 7, seeded(1), offline_rows())
    assert told["offline_share"] == pytest.approx(0.25) and told["age"] == pytest.approx(7)
    assert sum(told["actions"]) == pytest.approx(1) and sum(told["goals"]) == pytest.approx(1)
    only_offline = learner.learn(MoaBuffer(GAME, 2, 50), 0, seeded(1), offline_rows())
    assert only_offline["offline_share"] == 1
    assert learner.learn(MoaBuffer(GAME, 2, 50), 0, seeded(1)) == {}
    assert learner.updates == 2


@pytest.mark.parametrize("shared", [True, False])
def test_all_observers_learn_and_none_disturbs_another(shared: bool):
    moa = Moa(GAME, 2, shared=shared, generator=seeded(0)).spread(4)
    before = {k: v.detach().clone() for k, v in moa.nets.weights.items()}
    MoaLearner(moa, LEARNING).learn(filled(), 0, seeded(1))
    moved = torch.stack([(moa.nets.weights[k] - v).flatten(1).norm(dim=1) for k, v in before.items()]).sum(0)
    assert (moved > 0).all() and moved.max() < 2 * moved.min()


def test_every_networks_gradient_is_clipped_on_its_own():
    learner = MoaLearner(Moa(GAME, 2, shared=True, generator=seeded(0)).spread(4), replace(LEARNING, grad_clip=0.5))
    weights = list(learner.moa.parameters())
    for w in weights:
        w.grad = torch.zeros_like(w)
        w.grad[1], w.grad[2] = 1e-6, 3.0
    norms = learner._clip()
    clipped = torch.stack([w.grad.flatten(1).square().sum(1) for w in weights]).sum(0).sqrt()
    assert clipped[2].item() == pytest.approx(0.5, rel=1e-4)
    assert clipped[1].item() == pytest.approx(norms[1].item(), rel=1e-4), "a small gradient stays as it is"
    assert clipped[0] == 0


def test_learning_brings_the_cross_entropy_down_and_the_target_follows():
    learner = MoaLearner(
        Moa(GAME, 2, shared=True, generator=seeded(0)).spread(4), replace(LEARNING, passes=15, batch=40, lr=3e-3)
    )
    buffer, generator = filled(), seeded(1)
    told = [learner.learn(buffer, 0, generator)["ce"] for _ in range(3)]
    assert told[2] < 0.8 * told[0]
    part = offline_data().part("validation")
    scores = score_pairs(learner.moa, part, goals_of(part), GAME.final_time)
    assert len([k for k in scores if k.endswith("/acc_top1")]) == 12
    assert scores["losses_player_2/moa/2->1/ce_loss"] < 1.2
    averaged = score_pairs(learner.target.module, part, goals_of(part), GAME.final_time)
    assert averaged["losses_player_2/moa/2->1/ce_loss"] != scores["losses_player_2/moa/2->1/ce_loss"]


def test_score_pairs_scores_each_player_on_its_own_rows():
    """Against a direct computation for one pair."""
    part = offline_data().part("validation")
    moa = Moa(GAME, 2, shared=False, generator=seeded(3)).spread(4)
    found = score_pairs(moa, part, goals_of(part), GAME.final_time)
    rows = (part.rows.player == 3).nonzero().squeeze(1)  # observer 1 sees player 3 in slot 1
    goal = torch.nn.functional.one_hot((part.rows.type[rows] == Kind.NH).long(), 2).float()
    single = Moa(GAME, 2, shared=False, generator=seeded(3))
    given, _ = single.rows(
        part.rows.obs[rows], part.rows.t[rows] / GAME.final_time, goal.unsqueeze(1), torch.ones(len(rows)).long()
    )
    logits = given[:, 0].masked_fill(~part.rows.mask[rows], -1e30)
    expected = torch.nn.functional.cross_entropy(logits, part.rows.a[rows]).item()
    assert found["losses_player_2/moa/2->4/ce_loss"] == pytest.approx(expected, rel=1e-4)


def test_learner_continues_where_it_was_saved():
    made = [MoaLearner(Moa(GAME, 2, shared=True, generator=seeded(0)).spread(4), LEARNING) for _ in range(2)]
    buffer = filled()
    made[0].learn(buffer, 0, seeded(1))
    made[1].load_state_dict(copy.deepcopy(made[0].state_dict()))  # as from a file: nothing is shared
    assert made[0].learn(buffer, 0, seeded(2)) == made[1].learn(buffer, 0, seeded(2))
    assert_same(made[0].state_dict(), made[1].state_dict())
    with pytest.raises(ValueError, match="spread"):
        MoaLearner(Moa(GAME, 2, shared=True), LEARNING)
    with pytest.raises(UserError, match="offline_ratio"):
        MoaLearning(offline_ratio=1.5)


# --- the original's buffer ------------------------------------------------------------------------------------------


def episodes_of(part: Part) -> list[dict[int, int]]:
    """For every episode, which sequence belongs to which player."""
    first = part.offsets[:-1]
    found: dict[int, dict[int, int]] = {}
    for s, (episode, player) in enumerate(zip(part.rows.episode[first].tolist(), part.rows.player[first].tolist())):
        found.setdefault(episode, {})[player] = s
    return list(found.values())


def test_legacy_buffer_keeps_only_rewarded_trajectories_and_labels_all_their_steps():
    part = offline_data().part("train")
    buffer = LegacyMoaBuffer(1, 4, capacity=10**9)
    for sequences in episodes_of(part):
        assert buffer.end_episode(part, sequences) == {}
    for slot, model in enumerate(buffer.model_ids):
        rows = torch.cat(buffer.rows[slot])
        assert len(rows) == len(buffer.labels[slot]) and (part.rows.player[rows] == model).all()
        assert (part.rows.outcome[rows] > 0).all(), "failed hunts, the informative case, are never seen"
        assert torch.equal(torch.tensor(buffer.labels[slot]) + 1, part.rows.outcome[rows])
    own = part.rows.player != 0
    assert sum(len(x) for x in buffer.labels) < int(own.sum())


def test_legacy_counters_and_places():
    part = offline_data().part("train")
    buffer = LegacyMoaBuffer(2, 4)
    assert buffer.model_ids == [0, 2, 3] and [buffer.place_id(m) for m in range(3)] == [3, 1, 2]
    stag = hare = 0.0
    for sequences in episodes_of(part)[:30]:
        outcome = int(part.rows.outcome[part.offsets[sequences[0]]])
        if outcome:
            stag, hare = 0.995 * stag + (outcome == 1), 0.995 * hare + (outcome == 2)
        buffer.end_episode(part, sequences)
    assert (buffer.stag_times[0], buffer.hare_times[0]) == pytest.approx((stag, hare))


@pytest.mark.parametrize("my_id", [1, 3])
def test_only_player_1_ever_learns_in_the_original(my_id: int):
    part = offline_data().part("train")
    buffer = LegacyMoaBuffer(my_id, 4, capacity=200)
    updates = 0
    for sequences in episodes_of(part):
        due = buffer.end_episode(part, sequences)
        updates += len(due)
        for rows, labels in due.values():
            assert len(rows) == len(labels) > 200
    assert (updates > 0) == (my_id == 1)
    assert all(len(x) <= 200 + 35 for x in buffer.labels), "the others throw theirs away"
