"""Goals for L3 and L4: recorded games do not say what the expert aimed at, so a goal is filled in for every day.

`none` leaves zeros, `v2` takes the label of the day (what the expert did, known only afterwards), `l2` asks a trained
L2 network: what L3 will be told in play. One forward pass serves a whole chunk of days, on the CPU or a GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from marlab.lab.config import to_dict
from marlab.lab.errors import UserError
from marlab.market.rules.goals import mask_goal
from marlab.market.samples.dataset import Columns, Samples
from marlab.market.samples.extract import with_goals
from marlab.market.samples.options import BACKFILL_BATCH, GoalSource, SampleOptions, Sizes

if TYPE_CHECKING:  # networks need torch, which workers that fill in labels or zeros can do without
    from marlab.market.networks.manager import HorizonManagerPPO

MOST_ZERO_GOALS = 0.01
"""Share of decisions with a goal of zeros above which L3 does not learn from them."""


@dataclass(frozen=True)
class Backfill:
    """How goals are filled in; small enough to be sent to a worker, which loads the network once."""

    source: GoalSource
    model: Path | None = None
    device: str = "cpu"
    batch: int = BACKFILL_BATCH
    options: SampleOptions = field(default_factory=SampleOptions)
    """Those of the samples; a network that learnt from other features is refused."""

    def __post_init__(self) -> None:
        check_source(self.source, self.model)
        if self.batch < 1:
            raise UserError(f"The batch of the backfill is {self.batch}, expected 1 day or more.")

    def network(self) -> HorizonManagerPPO | None:
        """The trained L2 of the source l2; refused if it learnt from other features than the samples have."""
        if self.source != "l2" or self.model is None:
            return None
        from marlab.market.networks.manager import find_manager

        path = find_manager(self.model)
        network = _loaded(path, path.stat().st_mtime_ns, self.device)
        check_network(path, network, self.options.sizes, to_dict(self.options))
        return network

    def __call__(self, samples: Samples) -> Samples:
        """The samples with goals, and with the features of L3 and L4 that depend on them."""
        return fill_goals(samples, self.source, self.network(), self.batch)


@functools.lru_cache(maxsize=1)
def _loaded(path: Path, changed_ns: int, device: str) -> HorizonManagerPPO:
    """The network of a file as it was at a time; a file that was trained further is loaded again."""
    from marlab.lab.device import choose_device
    from marlab.market.networks.weights import load_manager

    return load_manager(path, choose_device(device))


def fill_goals(
    samples: Samples, source: GoalSource, network: HorizonManagerPPO | None = None, batch: int = BACKFILL_BATCH
) -> Samples:
    """The samples with goals of a source; `network` is the trained L2 of the source l2."""
    if source == "none":
        return samples
    if source == "v2":
        return with_goals(samples, np.asarray(samples.macro["label"]))
    assert network is not None
    return with_goals(samples, predict_goals(network, samples.macro, batch))


def refuse_zero_goals(samples: Samples, advice: str) -> None:
    """L3 must not learn from samples whose goals are mostly zeros."""
    share = float((samples.goals() == 0).all(1).mean()) if samples.rows("micro") else 0.0
    if share > MOST_ZERO_GOALS:
        raise UserError(
            f"{share:.0%} of the decisions have a goal of zeros, so L3 would learn to ignore goals; {advice}."
        )


def check_source(source: str, model: Path | None) -> None:
    """Refuse an impossible choice before any work starts."""
    if source not in get_args(GoalSource):
        raise UserError(f"goal_backfill is '{source}', expected none, v2 or l2.")
    if source == "l2" and model is None:
        raise UserError("goal_backfill l2 needs the weights of a trained L2: give l2_model_path.")
    if source == "l2" and model is not None:
        from marlab.market.networks.manager import find_manager

        find_manager(model)


def check_network(path: Path, network: HorizonManagerPPO, sizes: Sizes, data: Mapping[str, Any] | None) -> None:
    """Refuse a network that expects other features than the samples have."""
    takes = {name: int(network.options[name]) for name in ("horizon", "d_static", "d_temporal")}
    given = {"horizon": sizes.horizon, "d_static": sizes.static + sizes.extra, "d_temporal": sizes.temporal}
    for name in takes:
        if takes[name] != given[name]:
            raise UserError(
                f"The L2 model {path} was made for {name} {takes[name]}, the samples have {given[name]}: make the"
                " samples with the features it learnt from."
            )
    if data is not None:
        from marlab.market.networks.weights import check_options

        check_options(path, network, data)


def predict_goals(network: HorizonManagerPPO, macro: Columns, batch: int = BACKFILL_BATCH) -> NDArray[np.float32]:
    """[D, 16] what L2 would aim at each morning: nothing negative, zeros on sides the factory cannot trade on."""
    import torch

    days = len(macro["day"])
    device = next(network.parameters()).device
    mean = torch.empty(days, macro["goal"].shape[1])
    with torch.inference_mode():
        for start in range(0, days, batch):
            rows = slice(start, start + batch)
            static = np.concatenate([macro["x_static"][rows], macro["extra"][rows]], 1)
            inputs = (static, macro["x_temporal"][rows], macro["x_role"][rows])
            mean[rows] = network(*(torch.tensor(values).to(device) for values in inputs))[0].cpu()
    goal = mask_goal(mean.numpy(), macro["x_role"]).astype(np.float32)
    if not np.isfinite(goal).all():
        raise UserError("The L2 model gives goals that are not numbers; train it again.")
    return goal
