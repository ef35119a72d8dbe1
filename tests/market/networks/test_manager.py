"""The L2 network: size, ranges, its probabilities, and its files."""

import pytest
import torch
from torch import Tensor

from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointError, save_checkpoint
from marlab.market.networks.manager import HorizonManagerPPO, find_manager
from marlab.market.networks.weights import load_manager, save_network


def inputs(n: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    roles = torch.tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])[torch.arange(n) % 3]
    return torch.rand(n, 12, generator=generator), torch.randn(n, 41, 10, generator=generator), roles


def test_number_of_parameters_is_that_of_the_guide():
    for positive_q in (False, True):
        assert sum(p.numel() for p in HorizonManagerPPO(positive_q=positive_q).parameters()) == 42_769


def test_quantities_are_positive_with_the_option_and_prices_are_left_alone():
    torch.manual_seed(0)
    plain, positive = HorizonManagerPPO(positive_q=False), HorizonManagerPPO()
    positive.load_state_dict(plain.state_dict())
    with torch.no_grad():
        a, b = plain(*inputs(64))[0], positive(*inputs(64))[0]
    assert (a[:, ::2] < 0).any() and (b[:, ::2] > 0).all()
    torch.testing.assert_close(b[:, ::2], torch.nn.functional.softplus(a[:, ::2]))
    torch.testing.assert_close(b[:, 1::2], a[:, 1::2])


def test_log_std_is_bounded():
    network = HorizonManagerPPO()
    torch.nn.init.constant_(network.log_std.bias, 50.0)
    assert (network(*inputs(4))[1] == 2.0).all()
    torch.nn.init.constant_(network.log_std.bias, -50.0)
    assert (network(*inputs(4))[1] == -20.0).all()


def test_sampled_goals_have_the_probability_they_are_said_to_have():
    torch.manual_seed(1)
    network = HorizonManagerPPO()
    x = inputs(5)
    goal, log_prob, value = network.sample_action(*x, generator=torch.Generator().manual_seed(3))
    again, entropy, value_again = network.evaluate_actions(*x, goal)
    torch.testing.assert_close(log_prob, again)
    torch.testing.assert_close(value, value_again)
    mean, log_std, _ = network(*x)
    by_hand = -0.5 * ((goal - mean) / log_std.exp()) ** 2 - log_std - 0.5 * torch.log(torch.tensor(2 * torch.pi))
    torch.testing.assert_close(log_prob, by_hand.sum(1))
    torch.testing.assert_close(entropy, (log_std + 0.5 * (1 + torch.log(torch.tensor(2 * torch.pi)))).sum(1))
    assert torch.equal(network.sample_action(*x, deterministic=True)[0], mean)


def test_weights_come_back_with_their_options(tmp_path):
    torch.manual_seed(2)
    network = HorizonManagerPPO(horizon=20, positive_q=False, d_static=15, d_temporal=12)
    save_network(tmp_path / "l2_bc.pt", network, step=7, data={"l1": {"rules": "guide"}})
    loaded = load_manager(tmp_path / "l2_bc.pt")
    assert loaded.options == network.options and loaded.data == {"l1": {"rules": "guide"}} and not loaded.training
    x = torch.rand(3, 15), torch.randn(3, 21, 12), torch.ones(3, 2)
    assert torch.equal(loaded(*x)[0], network(*x)[0])


def test_files_of_other_networks_are_refused(tmp_path):
    save_checkpoint(tmp_path / "fish.pt", "fish/ppo", 1, {})
    with pytest.raises(CheckpointError, match="written by 'fish/ppo', expected one by 'market/l2'"):
        load_manager(tmp_path / "fish.pt")
    save_checkpoint(tmp_path / "empty.pt", "market/l2", 1, {"options": {"horizon": 40}, "model": {}})
    with pytest.raises(CheckpointError, match="does not hold an L2 network"):
        load_manager(tmp_path / "empty.pt")


def test_the_model_of_a_folder_is_found_in_the_order_of_the_guide(tmp_path):
    with pytest.raises(UserError, match="holds no L2 model"):
        find_manager(tmp_path)
    with pytest.raises(UserError, match="There is no L2 model at"):
        find_manager(tmp_path / "nowhere")
    for name in ("l2_bc_epoch12.ckpt.pt", "l2_bc_epoch9.pt", "l2_bc_epoch10.pt", "l2_bc.pt"):
        (tmp_path / name).touch()
        expected = "l2_bc_epoch10.pt" if name == "l2_bc_epoch10.pt" else name
        assert find_manager(tmp_path).name == expected
    assert find_manager(tmp_path / "l2_bc_epoch9.pt").name == "l2_bc_epoch9.pt"


def test_open_needs_are_asked_for_before_anything_is_learnt() -> None:
    from marlab.market.rules.goals import GAP, SPREAD
    from marlab.market.rules.partners import EXTRA_SIZE, NEEDS

    network = HorizonManagerPPO(d_static=12 + EXTRA_SIZE, gap_quantities=True)
    torch.nn.init.zeros_(network.mean.weight)
    torch.nn.init.constant_(network.mean.bias, -40.0)  # softplus of it is nothing
    x_static = torch.zeros(2, 12 + EXTRA_SIZE)
    x_static[0, 12], x_static[1, 13] = 12 / NEEDS, 5 / NEEDS
    goal = network(x_static, torch.zeros(2, 41, 10), torch.ones(2, 2))[0]
    torch.testing.assert_close(goal[0, 0::4].detach(), torch.tensor(12 * GAP * SPREAD, dtype=torch.float32))
    torch.testing.assert_close(goal[1, 2::4].detach(), torch.tensor(5 * GAP * SPREAD, dtype=torch.float32))
    assert goal[0, 2::4].abs().max() < 1e-6
