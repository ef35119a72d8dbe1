"""Networks as play uses them: in numpy, from `.npz` files without torch, from `.pt` files by way of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

import numpy as np

from marlab.lab.errors import UserError
from marlab.market.logs.daystate import HORIZON, Array, DayState
from marlab.market.networks import forward
from marlab.market.networks.forward import L2_KIND, Plain, PlainManager
from marlab.market.networks.learnt import learnt_with
from marlab.market.rules import goals
from marlab.market.rules.features import FeatureOptions, static_features, temporal_features
from marlab.market.rules.l1 import L1Options, caps
from marlab.market.rules.offers import OfferSlots, no_offers

NUMPY = ".npz"


def load_for_play(path: Path, kind: str) -> Plain:
    """A network in numpy from weights, a training checkpoint or an `.npz` file."""
    if path.suffix == NUMPY:
        return forward.load(path, kind)
    from marlab.market.networks.weights import load_network

    return forward.plain(kind, load_network(path, kind))


def _manager_at(place: Path) -> Path:
    from marlab.market.networks.manager import find_manager

    return find_manager(place)


class L2StrategicManager:
    """The manager of a playing agent: rules of thumb, or a trained network with the features it learnt from."""

    def __init__(
        self,
        mode: Literal["heuristic", "neural"] = "heuristic",
        horizon: int = HORIZON,
        model_path: Path | None = None,
        l1: L1Options | None = None,
    ) -> None:
        if mode not in ("heuristic", "neural"):
            raise UserError(f"The mode of L2 is '{mode}', expected heuristic or neural.")
        if mode == "neural" and model_path is None:
            raise UserError("L2 in neural mode needs its weights: give l2_model_path.")
        self.mode = mode
        self.l1 = l1 or L1Options()
        self.features = FeatureOptions(horizon=horizon)
        self.network: PlainManager | None = None
        if mode == "neural" and model_path is not None:
            path = model_path if model_path.suffix == NUMPY else _manager_at(model_path)
            network = self.network = cast(PlainManager, load_for_play(path, L2_KIND))
            self.features = learnt_with(path, network).features
            if network.options["horizon"] != horizon:
                looks = network.options["horizon"]
                raise UserError(f"The L2 model {path} looks {looks} days ahead, not {horizon}.")

    def compute(self, state: DayState, slots: OfferSlots | None = None, extra: Array | None = None) -> Array:
        """The goal [..., 16] of a morning: nothing negative, zeros on sides the factory cannot trade on.

        `slots` are yesterday's offers; `extra` [..., n] the further features of a network that learnt from them.
        """
        if self.network is None and self.l1.rules == "economic":  # buy the need and sell the room
            return goals.economic_goal(state, caps(state, self.l1))
        if self.network is None:  # fill the lines
            return goals.heuristic_goal(state)
        slots = slots or no_offers(state.day.shape, state.horizon)
        static = static_features(state, self.features)
        if extra is not None:
            static = np.concatenate([static, extra], -1)
        inputs = (static, temporal_features(state, slots, self.features), goals.roles(state))
        leading = state.day.shape
        flat = (x.astype(np.float32).reshape(-1, *x.shape[len(leading) :]) for x in inputs)
        mean = self.network(*flat).astype(np.float64)
        return goals.mask_goal(mean.reshape(*leading, -1), goals.roles(state))
