"""The check that a resumed training equals a smooth one can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.runs.testing import assert_resume_equal
from tests.lab.tiny import TinyConfig, TinyTrainer


def test_the_resume_check_can_fail(tmp_path: Path) -> None:
    class Forgetful(TinyTrainer):
        def load_state_dict(self, state):  # type: ignore[no-untyped-def]
            super().load_state_dict(state)
            self.world.t = self.world.t + 1

    with pytest.raises(AssertionError):
        assert_resume_equal(lambda: Forgetful(TinyConfig()), 3, 2, tmp_path)
