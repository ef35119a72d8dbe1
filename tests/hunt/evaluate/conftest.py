"""Tiny trained agents, made once for all tests of this room."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hunt.evaluate_cases import hop_run, ppo_run


@pytest.fixture(scope="session")
def ppo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of PPO players of the training seeds 0 and 3."""
    return ppo_run(tmp_path_factory.mktemp("eval") / "ppo")


@pytest.fixture(scope="session")
def hop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of planning agents of one training seed."""
    return hop_run(tmp_path_factory.mktemp("eval") / "hop")
