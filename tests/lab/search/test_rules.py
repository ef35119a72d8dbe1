"""The rules of selection by hand: halving, noise, and two old rules kept for comparison."""

from __future__ import annotations

from dataclasses import replace

import torch

from marlab.lab.search.rules import Rows, dirichlet_prior, halving_visits, puct_scores
from marlab.lab.search.search import (
    SearchConfig,
)
from tests.hunt.helpers import seeded
from tests.lab.search.cases import chain, run
from tests.lab.search.table_game import TableGame


def test_sequential_halving_shares_the_budget() -> None:
    assert halving_visits(4, 16) == [0] * 4 + [1] * 4 + [2] * 2 + [3] * 2 + [4] * 2 + [5] * 2
    assert halving_visits(1, 3) == [0, 1, 2]
    assert all(len(halving_visits(k, 50)) == 50 for k in range(20))


def test_legacy_reward_forgets_what_is_paid_on_the_way() -> None:
    game = chain()
    paid = TableGame(**{**vars(game), "reward": game.reward + 0.5})  # something for every step
    root = torch.tensor([0])
    plain = SearchConfig(simulations=300, c1=1.0)
    q = run(paid, plain, root).q[0, 0].item()
    forgetful = SearchConfig(simulations=300, c1=1.0, legacy_terminal_reward=True)
    assert q - run(paid, forgetful, root).q[0, 0].item() > 0.8  # 0.5 (1 + 0.9) less what ended early


def test_legacy_q_prefers_what_was_tried_often() -> None:
    """One visit of 1 counts 1/2 with W / (1 + N), so 0.6 tried again and again looks better than it."""
    rows = Rows(
        prior=torch.full((2, 1), 1e-9),
        visits=torch.tensor([[1.0], [9.0]]),
        returns=torch.tensor([[1.0], [5.4], [0.0]]),
    )
    plain = SearchConfig(normalise="none")
    assert puct_scores(rows, plain).argmax(0).item() == 0
    assert puct_scores(rows, replace(plain, legacy_q=True)).argmax(0).item() == 1


def test_dirichlet_noise_is_a_distribution_with_the_right_spread() -> None:
    legal = torch.ones(7, 20000, dtype=torch.bool)
    legal[6] = False
    prior = torch.full((7, 20000), 1 / 6).masked_fill(~legal, -torch.inf)
    config = SearchConfig(dirichlet_share=1.0, dirichlet_alpha=0.3)
    noisy = dirichlet_prior(prior, config, seeded(0))
    assert noisy[6].isneginf().all()
    torch.testing.assert_close(noisy[:6].sum(0), torch.ones(20000))
    mean, alpha = 1 / 6, 0.3
    torch.testing.assert_close(noisy[:6].mean(1), torch.full((6,), mean), rtol=0, atol=0.01)
    variance = mean * (1 - mean) / (6 * alpha + 1)
    torch.testing.assert_close(noisy[:6].var(1), torch.full((6,), variance), rtol=0.05, atol=0)
