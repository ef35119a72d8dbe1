"""A measurement is found again by its key, and only by it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.hunt.evaluate.agents import find_agent, weights_digest
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.measurements import Measurements
from marlab.hunt.evaluate.run import score
from marlab.lab.errors import UserError


def test_what_was_put_is_found_by_another_process(tmp_path: Path) -> None:
    Measurements(tmp_path / "a").put({"x": [1, 2.5]}, "score", 3, ("NS", "NH"))
    Measurements(tmp_path / "b").put(7, "other")
    measurements = Measurements(tmp_path / "a", [tmp_path / "b"])
    assert measurements.get("score", 3, ("NS", "NH")) == {"x": [1, 2.5]}
    assert measurements.get("other") == 7 and measurements.reused == 2
    assert measurements.get("score", 4, ("NS", "NH")) is None


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    measurements = Measurements(tmp_path)
    measurements.put(1, "one")
    [file] = tmp_path.iterdir()
    for text, why in (("{", "not valid JSON"), ("[]", "not a measurement")):
        file.write_text(text)
        with pytest.raises(UserError, match=rf"{file.name}.*{why}.*remove it"):
            Measurements(tmp_path).get("one")


def test_another_agent_setting_or_protocol_is_another_measurement(tmp_path: Path, hop: Path, ppo: Path) -> None:
    names = (str(hop), f"{hop}?trees=1", f"{hop}?greedy=no", str(ppo), "NS")
    assert len({find_agent(text).identity for text in names}) == 5
    assert find_agent(str(hop)).identity == find_agent(f"other={hop}").identity  # a name changes nothing
    weights = [torch.zeros(2, 3), torch.ones(4)]
    assert weights_digest(weights) != weights_digest([torch.zeros(2, 3), torch.full((4,), 1.001)])
    size = 0
    for changes in ({}, {"steps": 50}, {"seed": 3}, {"runs": 8}):
        settings = {"runs": 4, "steps": 40, "window": 36, "layouts": 0, **changes}
        config = HuntEvalConfig("NS", parts=("scenarios",), scenarios=("3NH",), device="cpu", **settings)  # type: ignore[arg-type]
        score(config, Measurements(tmp_path))
        assert len(list(tmp_path.iterdir())) == size + 5  # NS is one of the five scripted players
        size += 5
