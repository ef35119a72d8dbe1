"""Who learns from what: seats, seeds, batches."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from marlab.hunt.game.rows import encode
from marlab.hunt.planner.replay import Experience
from marlab.hunt.selfplay import learn
from marlab.hunt.selfplay.learn import PlannerLearner
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from tests.hunt.helpers import seeded, small_game
from tests.hunt.hop_cases import LEARN, TINY, small_mind, small_training


def test_every_seat_learns_about_every_other_equally() -> None:
    """W11: all observers get as many rows of each other player, of that player alone, with their own beliefs."""
    trainer = SelfPlayTrainer(small_training(game=replace(TINY, players=3, height=4, width=4)))
    for _ in range(8):
        trainer.iterate()
    replay, models = trainer.replay, trainer.learner.fast.others
    assert models is not None and bool((replay.written > 0).all())
    for ring in range(3):
        replay.store.value[ring] = float(ring)  # mark whose steps these are
        for slot in range(2):
            replay.store.goal[ring, :, slot] = float(10 * ring + slot)
    steps = trainer.learner._pairs(models.moa.copies, replay, None)
    for observer in range(3):
        for slot in range(2):
            other = (observer + 1 + slot) % 3
            assert set(steps.value[observer, :, slot].tolist()) == {float(other)}
            assert set(steps.goal[observer, :, slot].flatten().tolist()) == {float(10 * other + slot)}


def test_with_the_original_buffer_one_observer_learns_from_successes() -> None:
    learns = replace(LEARN, legacy_moa_buffer="successes-only", moa_follow=0.0)
    config = small_training(game=replace(TINY, players=3, height=4, width=4), learn=learns)
    trainer = SelfPlayTrainer(config)
    others = trainer.learner.fast.others
    assert others is not None and trainer.successes is not None
    before = [p.detach().clone() for p in others.moa.parameters()]
    while not bool((trainer.successes.written > 0).all()):
        trainer.iterate()
    trainer.iterate()
    changed = [[not torch.equal(a[i], b[i]) for a, b in zip(others.moa.parameters(), before)] for i in range(3)]
    assert any(changed[0]) and not any(changed[1]) and not any(changed[2])
    assert bool((trainer.successes.written < trainer.replay.written).any())
    for ring, size in enumerate(trainer.successes.sizes.tolist()):
        assert bool((trainer.successes.store.value[ring, :size] > 0).all())
    again = SelfPlayTrainer(config)
    again.load_state_dict(trainer.state_dict())
    assert again.successes is not None
    assert torch.equal(again.successes.store.value, trainer.successes.store.value)


def test_a_batch_is_learnt_by_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learn, "WEIGHT_DECAY", 0.0)
    mind = small_mind(seeds=(0, 1))
    learner = PlannerLearner(mind, replace(LEARN, symmetries=False, follow=0.0), seeded(0))
    game = small_game(TINY)
    state = game.reset(12, seeded(1))
    rows, legal = encode(game, state, torch.zeros(1, dtype=torch.int64))
    wanted = torch.nn.functional.one_hot(legal[:, 0].float().multinomial(1, generator=seeded(2)).squeeze(1), 7).float()
    n = len(wanted)
    steps = Experience(
        rows[:, 0], torch.zeros(n), wanted.argmax(1), wanted, torch.rand(n, generator=seeded(3)),
        torch.full((n, 1, 2), 0.5), torch.full((n, 2, 1, 2), 0.5), torch.zeros(n, 2, 0),
        torch.zeros(n, dtype=torch.int64),
    )  # fmt: skip
    both = Experience(*(x.expand(2, *x.shape) for x in steps))
    for _ in range(400):
        found = learner.player_step(both, 1e-2, 0.0)
    assert float(found["policy"].max()) < 0.05 and float(found["value"].max()) < 0.005


def test_seeds_do_not_disturb_each_other() -> None:
    """A seed's networks start the same, whatever runs beside it."""
    alone, pair = small_mind(seeds=(3,)), small_mind(seeds=(1, 3))
    for name, weights in pair.some([3]).state_dict().items():
        assert torch.equal(weights, alone.state_dict()[name]), name
