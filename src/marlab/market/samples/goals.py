"""Goals for L3 and L4: recorded games do not say what the expert aimed at, so a goal is filled in for every day.

`none` leaves zeros, `v2` takes the label of the day (what the expert did, known only afterwards), `l2` asks a trained
L2 network: what L3 will be told in play. One forward pass serves a whole chunk of days, on the CPU or a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.market.networks.manager import HorizonManagerPPO, find_manager
from marlab.market.networks.weights import check_options, load_manager
from marlab.market.rules.goals import mask_goal
from marlab.market.samples.dataset import Columns, Samples, Sizes
from marlab.market.samples.extract import GoalSource, with_goals

BATCH = 1024


class Backfill:
    """Fills in goals; made once per process, it holds the network on its device."""

    def __init__(
        self,
        source: GoalSource,
        model: Path | None = None,
        sizes: Sizes | None = None,
        data: Mapping[str, Any] | None = None,
        device: str = "cpu",
        batch: int = BATCH,
    ) -> None:
        """`sizes` and `data` are those of the samples; a network that learnt from other features is refused."""
        check_source(source, model)
        if batch < 1:
            raise UserError(f"The batch of the backfill is {batch}, expected 1 day or more.")
        self.source, self.batch = source, batch
        self.device = choose_device(device)
        self.network: HorizonManagerPPO | None = None
        if source == "l2" and model is not None:
            path = find_manager(model)
            self.network = load_manager(path, self.device)
            check_network(path, self.network, sizes or Sizes(), data)

    def __call__(self, samples: Samples) -> Samples:
        """The samples with goals, and with the features of L3 and L4 that depend on them."""
        if self.source == "none":
            return samples
        if self.network is None:
            return with_goals(samples, samples.macro["label"])
        return with_goals(samples, predict_goals(self.network, samples.macro, self.batch))


def check_source(source: str, model: Path | None) -> None:
    """Refuse an impossible choice before any work starts."""
    if source not in get_args(GoalSource):
        raise UserError(f"goal_backfill is '{source}', expected none, v2 or l2.")
    if source == "l2" and model is None:
        raise UserError("goal_backfill l2 needs the weights of a trained L2: give l2_model_path.")
    if source == "l2" and model is not None:
        find_manager(model)


def check_network(path: Path, network: HorizonManagerPPO, sizes: Sizes, data: Mapping[str, Any] | None) -> None:
    """Refuse a network that expects other features than the samples have."""
    takes = {name: int(network.options[name]) for name in ("horizon", "d_static", "d_temporal")}
    given = {"horizon": sizes.horizon, "d_static": sizes.static + sizes.extra, "d_temporal": sizes.temporal}
    for name in takes:
        if takes[name] != given[name]:
            told = f"The L2 model {path} was made for {name} {takes[name]}, the samples have {given[name]}"
            raise UserError(f"{told}: make the samples with the features it learnt from.")
    if data is not None:
        check_options(path, network, data)


@torch.inference_mode()
def predict_goals(network: HorizonManagerPPO, macro: Columns, batch: int = BATCH) -> NDArray[np.float32]:
    """[D, 16] what L2 would aim at each morning: nothing negative, zeros on sides the factory cannot trade on."""
    days = len(macro["day"])
    device = next(network.parameters()).device
    mean = torch.empty(days, macro["goal"].shape[1])
    for start in range(0, days, batch):
        rows = slice(start, start + batch)
        static = np.concatenate([macro["x_static"][rows], macro["extra"][rows]], 1)
        inputs = (static, macro["x_temporal"][rows], macro["x_role"][rows])
        mean[rows] = network(*(torch.tensor(values).to(device) for values in inputs))[0].cpu()
    goal = mask_goal(mean.numpy(), macro["x_role"]).astype(np.float32)
    if not np.isfinite(goal).all():
        raise UserError("The L2 model gives goals that are not numbers; train it again.")
    return goal
