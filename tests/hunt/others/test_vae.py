import math

import pytest
import torch

from marlab.hunt.game.config import game_config
from marlab.hunt.others.models import ModelSpec
from marlab.hunt.others.vae import (
    Code,
    GoalVAE,
    active_units,
    kl_factor,
    occupied_recall,
    recon_error,
)
from tests.hunt.helpers import seeded
from tests.hunt.offline import offline_data

SHAPE = (4, 4, 7)


def test_kl_matches_torch_distributions():
    a = Code(torch.randn(5, 3, generator=seeded(0)), torch.randn(5, 3, generator=seeded(1)))
    b = Code(torch.randn(5, 3, generator=seeded(2)), torch.randn(5, 3, generator=seeded(3)))
    p, q = (torch.distributions.Normal(c.mean, (0.5 * c.log_var).exp()) for c in (a, b))
    assert torch.allclose(a.kl_to(b), torch.distributions.kl_divergence(p, q), atol=1e-5)
    standard = torch.distributions.Normal(torch.zeros(5, 3), torch.ones(5, 3))
    assert torch.allclose(a.kl_to_standard(), torch.distributions.kl_divergence(p, standard), atol=1e-5)
    assert a.kl_to(a).abs().max() < 1e-6


def test_samples_follow_the_code():
    code = Code(torch.tensor([2.0, -1.0]).expand(20_000, 2), torch.tensor([0.0, math.log(0.25)]).expand(20_000, 2))
    drawn = code.sample(seeded(0))
    assert drawn.mean(0).tolist() == pytest.approx([2.0, -1.0], abs=0.03)
    assert drawn.std(0).tolist() == pytest.approx([1.0, 0.5], abs=0.03)


def test_kl_factor_rises_with_its_time_constant():
    assert kl_factor(0, 1e-3, 1e4) == 0
    assert kl_factor(10_000, 1e-3, 1e4) == pytest.approx(1e-3 * (1 - math.exp(-1)))
    assert kl_factor(10**7, 1e-3, 1e4) == pytest.approx(1e-3)


def test_vae_clamps_and_learns_a_few_situations():
    planes = offline_data().rows.obs[:32]
    vae = GoalVAE(SHAPE, generator=seeded(0))
    code = vae.encode(planes * 100)
    assert code.log_var.min() >= -8 and code.log_var.max() <= 4 and code.mean.shape == (32, 16)
    optimiser = torch.optim.Adam(vae.parameters(), 3e-3)
    for _ in range(150):
        loss = recon_error(vae.decode(vae.encode(planes).mean), planes, "bce")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    logits = vae.decode(vae.encode(planes).mean)
    assert recon_error(logits, planes, "bce") < 0.02 and recon_error(logits, planes, "mse") < 0.01
    recall = occupied_recall(logits, planes)
    assert recall[torch.tensor([0, 5, 6])].min() > 0.9
    assert torch.isnan(recall[4]), "a grid without obstacles has no occupied cells to recall"
    assert active_units(vae.encode(planes).mean) > 3


def test_low_error_on_sparse_planes_is_not_success():
    """An empty picture has a small error and no recall: why both are reported."""
    planes = offline_data().rows.obs[:64]
    empty = torch.full(planes.shape, -4.0)
    assert recon_error(empty, planes, "mse") < 0.08
    assert occupied_recall(empty, planes)[:4].nan_to_num().max() == 0


def test_active_units_counts_what_varies():
    mean = torch.randn(500, 4, generator=seeded(0)) * torch.tensor([1.0, 0.2, 0.05, 0.0])
    assert active_units(mean) == 2
    assert active_units(mean[:1]) == 0


def test_a_plane_that_is_left_out_does_not_count():
    planes = offline_data().rows.obs[:8]
    logits = torch.full(planes.shape, -2.0)
    blind = logits.clone()
    blind[..., 4] = 50.0  # obstacles everywhere
    assert recon_error(blind, planes, "bce") > recon_error(logits, planes, "bce") + 1
    assert torch.equal(recon_error(blind, planes, "bce", 4), recon_error(logits, planes, "bce", 4))
    by_hand = recon_error(logits[..., [0, 1, 2, 3, 5, 6]], planes[..., [0, 1, 2, 3, 5, 6]], "mse")
    assert torch.equal(recon_error(logits, planes, "mse", 4), by_hand)


def test_codes_need_not_show_the_map_where_there_is_one():
    with_map, open_field = (
        ModelSpec(game_config(name), "history", 16, 32, False) for name in ("msh_8x8_b5", "msh_8x8")
    )
    assert with_map.map_plane == 4 and open_field.map_plane is None
