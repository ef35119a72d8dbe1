"""PPO players judged by what rules earn in their seats."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.hunt.diagnose.ppo import diagnose_ppo, open_ppo_run
from marlab.hunt.selfplay.gates import Gates
from tests.hunt.diagnose.conftest import Runs


def test_a_learner_among_rules_is_measured_by_the_best_reply(runs: Runs, tmp_path: Path) -> None:
    section = diagnose_ppo(open_ppo_run(runs["reply"], "reply"), Gates(), tmp_path)
    replies = section.figures["replies"]
    assert set(replies) == {"PPO", "NS"}
    assert replies["NS"] == pytest.approx(5.0, abs=0.2)  # two NS players always meet on the stag
    assert section.checks[0].gate == pytest.approx(0.9 * replies["NS"])
    assert [picture.file for picture in section.pictures] == ["reward-reply.png", "seats-reply.png"]
