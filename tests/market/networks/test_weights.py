"""Networks come back from their files as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointError, save_checkpoint
from marlab.market.networks.coordinator import GlobalCoordinator
from marlab.market.networks.executor import L3PolicyModel, TemporalDecisionTransformer
from marlab.market.networks.weights import (
    L3_KIND,
    L4_KIND,
    check_options,
    learnt_with,
    load_network,
    save_network,
)
from marlab.market.rules.features import FeatureOptions
from marlab.market.rules.l1 import L1Options
from tests.market.network_cases import decisions, disturbed, rounds

OPTIONS = {"l1": to_dict(L1Options()), "features": to_dict(FeatureOptions())}


@pytest.mark.parametrize(
    "model", [TemporalDecisionTransformer(d_model=32, n_layers=1), L3PolicyModel(d_model=32, n_layers=1)]
)
def test_saved_executors_come_back_as_they_were(tmp_path, model: TemporalDecisionTransformer) -> None:
    disturbed(model)
    model.data = OPTIONS
    save_network(tmp_path / "l3.pt", model)
    loaded = load_network(tmp_path / "l3.pt", L3_KIND)
    inputs = decisions(16)
    with torch.inference_mode():
        assert all(torch.equal(a, b) for a, b in zip(model(inputs), loaded(inputs)))
    assert type(loaded) is type(model) and loaded.data == model.data


def test_saved_coordinators_come_back_as_they_were(tmp_path) -> None:
    model = disturbed(GlobalCoordinator())
    save_network(tmp_path / "l4.pt", model)
    with torch.inference_mode():
        assert torch.equal(load_network(tmp_path / "l4.pt", L4_KIND)(*rounds(4, 5))[0], model(*rounds(4, 5))[0])
    assert np.isfinite(model(*rounds(4, 5))[0].detach().numpy()).all()


def crafted(path: Path, **changes: Any) -> Path:
    """Weights of a small L3 with parts of their file replaced."""
    model = disturbed(TemporalDecisionTransformer(d_model=16, n_layers=1))
    state = {"options": dict(model.options), "plan": "E", "data": OPTIONS, "model": model.state_dict()}
    options = {**state["options"], **changes.pop("options", {})}
    save_checkpoint(path, L3_KIND, 1, {**state, "options": options, **changes})
    return path


@pytest.mark.parametrize(
    "options",
    [{"n_layers": 10**6}, {"d_model": 2**40}, {"horizon": 10**12}, {"horizon": 41}, {"n_layers": 2}, {"n_heads": 3},
     {"n_heads": 0}, {"n_layers": -1}, {"n_layers": 1.0}, {"n_layers": True}, {"n_layers": "1"},
     {"dropout": float("nan")}, {"dropout": -1.0}, {"d_partner": 7}, {"colour": 3}, {"d_model": None},
     {"max_seq_len": 10**9}],
)  # fmt: skip
def test_options_that_the_tensors_do_not_confirm_are_refused_before_layers_are_made(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made, make = crafted(tmp_path / "l3.pt", options=options), [0], torch.nn.Linear.__init__

    def counted(self: torch.nn.Linear, *args: Any, **more: Any) -> None:
        made[0] += 1
        make(self, *args, **more)

    monkeypatch.setattr(torch.nn.Linear, "__init__", counted)
    with pytest.raises(CheckpointError, match="does not hold an L3 network"):
        load_network(path, L3_KIND)
    assert made[0] < 100


@pytest.mark.parametrize(
    "changes",
    [
        {"model": {}}, {"model": 5}, {"model": {"a": 5}}, {"data": 5}, {"data": {"l1": 5}}, {"data": [1]},
        {"data": torch.ones(3)},
    ],
)  # fmt: skip
def test_files_that_hold_something_else_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(CheckpointError):
        load_network(crafted(tmp_path / "l3.pt", **changes), L3_KIND)


def test_weights_that_are_not_numbers_are_refused(tmp_path: Path) -> None:
    model = TemporalDecisionTransformer(d_model=16, n_layers=1)
    with torch.no_grad():
        model.scales[0] = torch.nan
    save_network(tmp_path / "l3.pt", model, data=OPTIONS)
    with pytest.raises(CheckpointError, match="not a finite number"):
        load_network(tmp_path / "l3.pt", L3_KIND)


def test_weights_say_what_they_learnt_with_or_are_not_used(tmp_path: Path) -> None:
    path = tmp_path / "l3.pt"
    model = TemporalDecisionTransformer(d_model=16, n_layers=1)
    save_network(path, model)
    with pytest.raises(UserError, match=r"do not say with which L1 rules.*guide\.add_options"):
        learnt_with(path, load_network(path, L3_KIND))
    with pytest.raises(UserError, match="do not say"):
        check_options(path, model, OPTIONS)
    save_network(path, model, data=OPTIONS)
    assert learnt_with(path, load_network(path, L3_KIND)).features == FeatureOptions()
    check_options(path, load_network(path, L3_KIND), OPTIONS)
    other = {**OPTIONS, "l1": to_dict(L1Options(reserve=7))}
    with pytest.raises(UserError, match=r"learnt with l1\.reserve = 1000\.0, the samples have 7\.0"):
        check_options(path, load_network(path, L3_KIND), other)
    save_network(path, model, data={**OPTIONS, "features": to_dict(FeatureOptions(extra=True))})
    with pytest.raises(UserError, match="d_partner 0, but the features they name have 10"):
        learnt_with(path, load_network(path, L3_KIND))
