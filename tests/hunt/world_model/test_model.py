"""World model: what its heads can and cannot say, its losses by hand, and targets read off real transitions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.hunt.data.collect import play_batches
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.data.dataset import Rows
from marlab.hunt.game.config import GameConfig, game_config
from marlab.hunt.world_model.data import (
    LEAVE,
    Transitions,
    outcomes,
    reward_classes,
)
from marlab.hunt.world_model.model import (
    DenseModel,
    Heads,
    Prediction,
    StructuredModel,
    _shifted,
    channel_factors,
    dense_loss,
    load_world_model,
    save_world_model,
)
from marlab.lab.errors import UserError
from tests.hunt.helpers import seeded

GAME = game_config("msh_4x4")
CROWDED = game_config("msh_6x6_b4")


def real_rows(game: GameConfig, seed: int = 0) -> Rows:
    return next(play_batches(HuntCollectConfig(game=game, seed=seed, rand_share=0.3))).rows


def as_transitions(game: GameConfig, rows: Rows) -> Transitions:
    return Transitions(
        obs=rows.obs, joint=rows.joint_a, t=rows.t, reward=rows.r, next_obs=rows.next_obs,
        done=torch.stack([rows.done_i, rows.done_all], 1), outcome=outcomes(game, rows.obs, rows.next_obs),
        reward_class=reward_classes(game, rows.a, rows.r), follow=torch.full_like(rows.t, -1),
    )  # fmt: skip


def blank(rows: int = 1, game: GameConfig = GAME) -> torch.Tensor:
    return torch.zeros(rows, game.height, game.width, game.channels)


# --- the structured model -------------------------------------------------------------------------------------------


def heads_for(model: StructuredModel, rows: int) -> Heads:
    game = model.game
    return Heads(
        move=torch.full((rows, game.players, 6), -50.0),
        survive=torch.full((rows, game.cells, 2), 50.0),
        reward=torch.zeros(rows, 2 * game.players),
        done=torch.zeros(rows, 2),
    )


def test_draws_what_the_heads_say() -> None:
    model, planes = StructuredModel(GAME, 8, seeded(0)), blank()
    planes[0, 0, 0, 0] = planes[0, 1, 2, 1] = planes[0, 3, 3, 2] = 1  # player 4 has left
    planes[0, 1, 2, 5] = planes[0, 0, 3, 6] = 1
    heads = heads_for(model, 1)
    heads.move[0, 0, 1] = heads.move[0, 1, LEAVE] = heads.move[0, 3, 1] = 50
    heads.move[0, 2, 2] = heads.move[0, 2, 3] = 50  # left, or against the wall on the right
    heads.survive[0, 1 * 4 + 2, 0] = -50
    heads.reward[0, 0] = heads.reward[0, 1] = 50
    found = model._draw(planes, heads)
    expected = blank()
    expected[0, 1, 0, 0] = 1
    expected[0, 3, 2, 2] = expected[0, 3, 3, 2] = 0.5
    expected[0, 0, 3, 6] = 1
    torch.testing.assert_close(found.planes, expected)
    assert found.reward.item() == pytest.approx(0.5)
    assert found.done is not None and found.done.tolist() == [[0.5, 0.5]]


def test_no_weights_can_say_the_impossible() -> None:
    model = StructuredModel(CROWDED, 16, seeded(1))
    for p in model.parameters():
        torch.nn.init.normal_(p, 0.0, 2.0, generator=seeded(p.numel()))
    data = as_transitions(CROWDED, real_rows(CROWDED))
    data = data.select(torch.arange(0, data.size, 7))
    found, n = model.predict(data.obs, data.joint, data.t), CROWDED.players
    assert torch.equal(found.planes[..., n], data.obs[..., n].float())  # obstacles are copied
    assert bool((found.planes[..., n + 1 :] <= data.obs[..., n + 1 :]).all())  # no prey appears
    near = _shifted(data.obs[..., :n].float(), 1.0 - data.obs[..., n].float()).amax(-1)
    assert bool((found.planes[..., :n][near == 0] == 0).all())  # nobody is more than a cell away
    mass = found.planes[..., :n].flatten(1, 2).sum(1)
    assert bool((mass <= data.obs[..., :n].flatten(1, 2).sum(1) + 1e-5).all())
    settled = model.settle(found.planes)
    assert set(settled.unique().tolist()) <= {0.0, 1.0}
    assert bool((settled[..., :n].flatten(1, 2).sum(1) <= 1).all())


def test_settle_takes_the_likeliest_situation() -> None:
    model, planes = StructuredModel(GAME, 8), blank()
    planes[0, 0, 0, 0], planes[0, 0, 1, 0] = 0.3, 0.6
    planes[0, 2, 2, 1] = 0.4  # rather gone
    planes[0, 1, 1, 6], planes[0, 1, 2, 6] = 0.7, 0.2
    expected = blank()
    expected[0, 0, 1, 0] = expected[0, 1, 1, 6] = 1
    assert torch.equal(model.settle(planes), expected)


def test_loss_is_low_exactly_when_the_step_was_foreseen() -> None:
    data = as_transitions(GAME, real_rows(GAME))
    data = data.select((data.outcome[:, 0] == LEAVE).nonzero().squeeze(1)[:64])
    model = StructuredModel(GAME, 16, seeded(0))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(100):
        loss = model.loss(data).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
    with torch.no_grad():
        found = model.predict(data.obs, data.joint, data.t)
    assert float((found.planes - data.next_obs.float()).square().mean()) < 1e-3
    swapped = data._replace(joint=data.joint.roll(1, 1))  # actions beside the wrong players
    assert model.loss(swapped).mean().item() > 1.0


def test_gradient_reaches_back_through_imagined_planes() -> None:
    data = as_transitions(GAME, real_rows(GAME)).select(torch.arange(8))
    model = StructuredModel(GAME, 8, seeded(0))
    planes = data.obs.float().requires_grad_()
    second = model.predict(model.predict(planes, data.joint, data.t).planes, data.joint, data.t + 1)
    second.planes.square().sum().backward()
    assert planes.grad is not None and bool((planes.grad[..., : GAME.players] != 0).any())


# --- the dense model and the losses ---------------------------------------------------------------------------------


def test_channel_weights_never_change_the_scale() -> None:
    data = as_transitions(GAME, real_rows(GAME)).select(torch.arange(200))
    noise = torch.randn(data.next_obs.shape, generator=seeded(0))
    found = Prediction(data.next_obs + 0.1 * noise, data.reward.clone(), None)
    plain = dense_loss(found, data, channel_factors(GAME, ())).mean()
    assert plain.item() == pytest.approx(0.01, rel=0.05)
    note = dense_loss(found, data, channel_factors(GAME, (2, 2, 2, 2, 1, 1, 1))).mean()
    assert note.item() == pytest.approx(plain.item(), rel=0.05)  # the same error in every channel
    scaled = dense_loss(found, data, channel_factors(GAME, (20, 20, 20, 20, 10, 10, 10))).mean()
    torch.testing.assert_close(scaled, note)
    off = Prediction(data.next_obs.float(), data.reward + 0.5, None)
    torch.testing.assert_close(dense_loss(off, data, channel_factors(GAME, ())), torch.full((200,), 0.25))
    for wrong in ((1.0, 2.0), (0.0,) * 7, (-1.0, 1, 1, 1, 1, 1, 1)):
        with pytest.raises(UserError, match="channel_weights"):
            channel_factors(GAME, wrong)


def test_weighted_and_unweighted_losses_agree_within_two_at_equal_parameters() -> None:
    data = as_transitions(GAME, real_rows(GAME)).select(torch.arange(500))
    losses = [
        DenseModel(GAME, weights, seeded(0)).loss(data).mean().item() for weights in ((), (2.0, 2, 2, 2, 1, 1, 1))
    ]
    assert 0.5 < losses[0] / losses[1] < 2.0


# --- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["structured", "dense"])
def test_save_and_load(kind: str, tmp_path: Path) -> None:
    model = StructuredModel(GAME, 8, seeded(0)) if kind == "structured" else DenseModel(GAME, (), seeded(0))
    save_world_model(tmp_path / "world_model.pt", model, step=3)
    again = load_world_model(tmp_path, GAME)
    data = as_transitions(GAME, real_rows(GAME)).select(torch.arange(20))
    one, two = (m.predict(data.obs, data.joint, data.t) for m in (model, again))
    assert torch.equal(one.planes, two.planes) and torch.equal(one.reward, two.reward)
    with pytest.raises(UserError, match=r"4x4 grid .*6x6 grid"):
        load_world_model(tmp_path, CROWDED)
    with pytest.raises(UserError, match="does not exist"):
        load_world_model(tmp_path / "nowhere")


def test_structured_refuses_games_it_cannot_describe() -> None:
    for game in (
        game_config("msg_4x4"),
        game_config("msh_4x4", prosocial=True),
        game_config("msh_4x4", time_reward=-1),
    ):
        with pytest.raises(UserError, match="--model dense"):
            StructuredModel(game)
