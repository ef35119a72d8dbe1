"""The rules of selection by hand: halving, noise, and two old rules kept for comparison."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from marlab.lab.search.rules import (
    Rows,
    completed_q,
    dirichlet_prior,
    gumbel_noise,
    gumbel_root_scores,
    gumbel_scores,
    halving_table,
    halving_visits,
    puct_scores,
)
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


# --- every score against plain loops ------------------------------------------------------------------------------

VISITS = [[3, 0, 1], [0, 0, 2], [1, 0, 4]]  # [A, R]
RETURNS = [[1.5, 0.0, 0.8], [0.0, 0.0, -1.0], [0.25, 0.0, 3.0], [0.4, 0.7, -0.2]]  # [A + 1, R], the last the raw value
PRIOR = [[0.5, 0.2, 0.1], [0.3, 0.3, 0.6], [0.2, 0.5, 0.3]]


def rows_of(prior: torch.Tensor) -> Rows:
    visits = torch.tensor(VISITS, dtype=torch.float64)
    returns = torch.tensor(RETURNS, dtype=torch.float64)
    return Rows.of(torch.cat([prior.double(), visits, returns]))


def plain_means(r: int) -> tuple[list[float | None], float, int]:
    """(mean returns or None, the node's value, visits of all actions) of one node."""
    means = [RETURNS[a][r] / VISITS[a][r] if VISITS[a][r] else None for a in range(3)]
    total = sum(VISITS[a][r] for a in range(3))
    return means, (sum(RETURNS[a][r] for a in range(4))) / (total + 1), total


def plain_puct(r: int, config: SearchConfig) -> list[float]:
    means, value, total = plain_means(r)
    q = [value if m is None else m for m in means]
    low, high = min(*q, value), max(*q, value)
    if config.normalise == "range":
        low, high = config.value_range
    if config.normalise != "none":
        q = [(x - low) / max(high - low, 1e-8) for x in q]
    if config.unvisited == "lowest":
        q = [0.0 if m is None else x for m, x in zip(means, q)]
    weight = (config.c1 + math.log((total + 1 + config.c2 + 1) / config.c2)) * math.sqrt(total + 1)
    return [PRIOR[a][r] * weight / (VISITS[a][r] + 1) + q[a] for a in range(3)]


@pytest.mark.parametrize("unvisited", ["parent", "lowest"])
@pytest.mark.parametrize("normalise", ["siblings", "range", "none"])
def test_puct_scores_are_those_of_plain_loops(normalise: str, unvisited: str) -> None:
    config = SearchConfig(
        normalise=normalise, unvisited=unvisited, c1=1.25, c2=7.0, simulations=12, value_range=(-2.0, 3.0)
    )  # type: ignore[arg-type]
    found = puct_scores(rows_of(torch.tensor(PRIOR)), config)
    expected = torch.tensor([plain_puct(r, config) for r in range(3)], dtype=torch.float64).t()
    torch.testing.assert_close(found, expected)


def plain_completed(r: int, config: SearchConfig) -> list[float]:
    means, _, total = plain_means(r)
    tried = [a for a in range(3) if means[a] is not None]
    mass = sum(PRIOR[a][r] for a in tried)
    tried_mean = sum(PRIOR[a][r] * means[a] for a in tried) / mass if tried else 0.0
    mixed = (RETURNS[3][r] + total * tried_mean) / (total + 1)
    q = [mixed if m is None else m for m in means]
    scale = (max(VISITS[a][r] for a in range(3)) + config.visit_offset) * config.value_scale
    return [(x - min(q)) / max(max(q) - min(q), 1e-8) * scale for x in q]


def test_gumbel_scores_are_those_of_plain_loops() -> None:
    config = SearchConfig(root="gumbel", visit_offset=30.0, value_scale=0.05)
    rows = rows_of(torch.tensor(PRIOR).log())
    completed = [plain_completed(r, config) for r in range(3)]
    torch.testing.assert_close(completed_q(rows, config), torch.tensor(completed, dtype=torch.float64).t())
    expected = []
    for r in range(3):
        weights = [PRIOR[a][r] * math.exp(completed[r][a]) for a in range(3)]
        total = sum(VISITS[a][r] for a in range(3))
        expected.append([weights[a] / sum(weights) - VISITS[a][r] / (total + 1) for a in range(3)])
    torch.testing.assert_close(gumbel_scores(rows, config), torch.tensor(expected, dtype=torch.float64).t())


def test_root_scores_rank_the_considered_actions_only() -> None:
    config = SearchConfig(root="gumbel", visit_offset=30.0, value_scale=0.05)
    prior = torch.tensor(PRIOR).log()
    prior[2, 1] = -torch.inf
    rows = rows_of(prior)
    noise = torch.tensor([[0.1, -0.2, 0.3], [0.5, 0.0, -0.4], [0.2, 0.9, 0.0]], dtype=torch.float64)
    found = gumbel_root_scores(rows, noise, torch.tensor([0, 0, 4]), config)
    assert found.isfinite().tolist() == [[False, True, False], [True, True, False], [False, False, True]]
    for a, r in ((1, 0), (2, 2)):
        largest = max(PRIOR[b][r] for b in range(3))
        expected = float(noise[a, r]) + math.log(PRIOR[a][r] / largest) + plain_completed(r, config)[a]
        assert float(found[a, r]) == pytest.approx(expected)
    sunk = gumbel_root_scores(rows, noise - 1e12, torch.tensor([0, 0, 4]), config)
    assert float(sunk[1, 0]) == -1e9  # still before all that are not considered


def test_gumbel_noise_has_the_mean_and_spread_of_a_gumbel() -> None:
    drawn = gumbel_noise(torch.empty(200_000, dtype=torch.float64), SearchConfig(gumbel_scale=2.0), seeded(0))
    assert float(drawn.mean()) == pytest.approx(2 * 0.5772, abs=0.02)
    assert float(drawn.std()) == pytest.approx(2 * math.pi / math.sqrt(6), abs=0.02)
    assert float(drawn.max()) > 10 and float(drawn.min()) > -7  # its tail is on the right


def test_a_node_knows_its_own_value_and_what_was_never_tried() -> None:
    rows = rows_of(torch.tensor(PRIOR))
    assert rows.raw_value.tolist() == [0.4, 0.7, -0.2]
    assert rows.untried().tolist() == [[0, 1, 0], [1, 1, 0], [0, 1, 0]]
    assert rows.value().tolist() == pytest.approx([plain_means(r)[1] for r in range(3)])
    assert rows.q(rows.untried(), torch.tensor([9.0, 8.0, 7.0]).double()).t().tolist() == [
        pytest.approx([9.0 - r if m is None else m for m in plain_means(r)[0]]) for r in range(3)
    ]


def test_halving_of_odd_numbers_and_small_budgets() -> None:
    assert halving_visits(5, 12) == [0] * 5 + [1] * 2 + [2] * 2 + [3] * 2 + [4]
    assert halving_visits(2, 6) == [0, 0, 1, 1, 2, 2]
    assert halving_visits(3, 2) == [0, 0]
    assert halving_visits(0, 2) == [0, 1]
    legal = torch.tensor([[True, True, False], [True, False, False], [True, True, True]])
    table = halving_table(legal, SearchConfig(considered=2, simulations=4))
    assert table.t().tolist() == [halving_visits(2, 4), halving_visits(2, 4), halving_visits(1, 4)]
