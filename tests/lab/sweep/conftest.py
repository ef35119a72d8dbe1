"""A finished sweep that several modules look at; who changes it takes a copy."""

from __future__ import annotations

import pytest

from marlab.lab.runs.run import Run
from tests.lab.sweep.cases import RATES, tiny_sweep


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three rates with two seeds each."""
    return tiny_sweep(tmp_path_factory.mktemp("sweep") / "whole", RATES, seeds="0,1")
