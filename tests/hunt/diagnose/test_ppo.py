"""PPO players judged by what rules earn in their seats."""

from __future__ import annotations

import pytest

from marlab.hunt.diagnose.ppo import diagnose_ppo, open_ppo_run
from marlab.hunt.selfplay.gates import Gates
from tests.hunt.diagnose.conftest import Runs


def test_a_learner_among_rules_is_measured_by_the_best_reply(runs: Runs) -> None:
    section = diagnose_ppo(open_ppo_run(runs["reply"], "reply"), Gates(), episodes=200)
    replies = section.figures["replies"]
    assert set(replies) == {"PPO", "NS", "NH", "RAND"}
    assert replies["NS"] == pytest.approx(5.0, abs=0.2)  # two NS players always meet on the stag
    assert section.checks[0].gate == pytest.approx(0.9 * max(replies[k] for k in ("NS", "NH", "RAND")))
