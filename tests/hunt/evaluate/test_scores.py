"""Differences, shares and adaptation times against cases with known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from marlab.hunt.evaluate.agents import scripted
from marlab.hunt.evaluate.play import Cell
from marlab.hunt.evaluate.scenarios import by_name, team
from marlab.hunt.evaluate.scores import Score, difference, normalised, scores_of
from tests.hunt.evaluate_cases import played


def score(per_run: np.ndarray, seeds: np.ndarray | None = None, by_episode: tuple[float, ...] = ()) -> Score:
    seeds = np.zeros(len(per_run), dtype=np.int64) if seeds is None else seeds
    empty = np.zeros(0)
    return Score("a", "s", per_run, seeds, np.array(by_episode), (empty, empty), 1, 1.0, {})


def test_pairs_cancel_what_is_common() -> None:
    rng = np.random.default_rng(2)
    starts = rng.normal(0.0, 5.0, 60)
    one, other = score(starts + 1.0 + rng.normal(0, 0.1, 60)), score(starts)
    gap = difference(one, other)
    assert gap.low is not None and 0.9 < gap.low < 1.0 < 1.05 < 1.2
    alone = one.measured()
    assert alone.low is not None and alone.high is not None and alone.high - alone.low > 2.0


def test_the_scale_runs_from_random_to_the_reference() -> None:
    rng = np.random.default_rng(3)
    random, best = score(rng.normal(1.0, 0.1, 40)), score(rng.normal(3.0, 0.1, 40))
    assert normalised(random, random, best).value == 0.0  # type: ignore[union-attr]
    assert normalised(best, random, best).value == 1.0  # type: ignore[union-attr]
    half = normalised(score((random.per_run + best.per_run) / 2), random, best)
    assert half is not None and half.value == pytest.approx(0.5) and half.low is not None and half.low > 0.45
    assert normalised(best, best, best) is None


def test_episodes_until_an_agent_has_adapted() -> None:
    learnt = score(np.full(4, 5.0), by_episode=(0.0,) * 10 + (5.0,) * 20)
    assert learnt.episodes_to_adapt == 11  # the first window of five episodes that all earn 5
    assert replace(learnt, by_episode=np.full(30, 5.0)).episodes_to_adapt == 1
    assert replace(learnt, by_episode=np.zeros(30)).episodes_to_adapt is None
    assert replace(learnt, per_run=np.zeros(4)).episodes_to_adapt is None


def test_scores_agree_with_what_is_known() -> None:
    cells = [
        Cell(scripted(name), team(text))
        for name, text in (("NS", "NS+2NH"), ("NS", "3NH"), ("NH", "3NH"), ("NH", "3NS"))
    ]
    plan, stream = played(cells, 16, 200)
    lone, hopeless, crowd, easy = scores_of(plan, stream, 200, 150)
    assert lone.mean == 5.0 and hopeless.mean == 0.0 and easy.mean == 1.0
    assert crowd.mean == pytest.approx(0.864, abs=0.03)
    assert lone.outcomes["stag_2"] == 1.0 and hopeless.outcomes["none"] == 1.0
    assert lone.episodes_to_adapt == 1 and hopeless.episodes_to_adapt is None


def test_only_the_last_steps_are_scored() -> None:
    """A partner who was let down once does not come again: hares are all that is left in the window."""
    plan, stream = played([Cell(scripted("WAIT(1)"), by_name("visit_grim"))], 16, 240)
    [score] = scores_of(plan, stream, 240, 80)
    mean = float(score.by_episode[:1].mean())
    assert score.mean < mean - 1.0
    late = stream.end > 160
    focal = plan.focal[stream.game[late]]
    paid = (stream.reward[late] * focal).sum(1)
    by_run = [float(paid[stream.game[late] == run].mean()) for run in range(16)]
    assert score.per_run == pytest.approx(by_run)
