"""Settings of the PPO baseline that are refused."""

from __future__ import annotations

import pytest

from marlab.hunt.ppo.train import PPOTrainer
from marlab.lab.errors import UserError
from tests.hunt.ppo_cases import small


@pytest.mark.parametrize("wrong", [{"num_envs": 0}, {"total_steps": -1}, {"seeds": "x"}, {"agent_roles": "NS,NS"}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UserError):
        small(**wrong)
    with pytest.raises(UserError, match="device"):
        PPOTrainer(small(device="nonsense"))
