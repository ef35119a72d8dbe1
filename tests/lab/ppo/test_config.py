"""Settings of PPO: schedules by hand, and what is refused."""

from __future__ import annotations

import pytest

from marlab.lab.errors import UserError
from marlab.lab.ppo.config import PPOConfig, scheduled_lr


def test_schedules() -> None:
    for schedule, values in {"constant": (1, 1, 1), "linear": (1, 0.5, 0), "cosine": (1, 0.5, 0)}.items():
        config = PPOConfig(learning_rate=1.0, lr_schedule=schedule)  # type: ignore[arg-type]
        found = [scheduled_lr(config, p) for p in (0.0, 0.5, 1.0)]
        assert found == pytest.approx(values)


@pytest.mark.parametrize(
    ("field", "value"), [("n_steps", 0), ("gamma", 1.5), ("batch_size", -1), ("learning_rate", 0.0)]
)
def test_impossible_settings(field: str, value: float) -> None:
    with pytest.raises(UserError, match=field):
        PPOConfig(**{field: value})
    with pytest.raises(UserError, match="cuda_graph"):
        PPOConfig(cuda_graph=True, target_kl=0.1)
