"""World 2, fish: a shoal with one shared policy escapes a predator in a round tank.

    import marlab.fish as fish

    shoal = fish.load("best")
    env, policy = shoal.env(), shoal.policy()

The names below are imported when they are used. With Gymnasium, `FishEscape-v0` and `FishEscapeSingle-v0` are known.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from marlab.lab.door import lazy_names

if TYPE_CHECKING:
    from marlab.fish.api import load as load
    from marlab.fish.api import make_env as make_env
    from marlab.fish.api import train as train
    from marlab.fish.commands.evaluate import main as _evaluate
    from marlab.fish.sea.config import SeaConfig as SeaConfig
    from marlab.fish.sea.world import FishWorld as FishWorld
    from marlab.fish.training.config import FishTrainConfig as FishTrainConfig

    evaluate = _evaluate.call

__all__ = ["FishTrainConfig", "FishWorld", "SeaConfig", "evaluate", "load", "make_env", "train"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "FishTrainConfig": "marlab.fish.training.config:FishTrainConfig",
        "FishWorld": "marlab.fish.sea.world:FishWorld",
        "SeaConfig": "marlab.fish.sea.config:SeaConfig",
        "evaluate": "marlab.fish.commands.evaluate:main.call",
        "load": "marlab.fish.api:load",
        "make_env": "marlab.fish.api:make_env",
        "train": "marlab.fish.api:train",
    },
)

with suppress(ImportError):  # without Gymnasium there is nobody to tell; with it this takes some 60 ms and no torch
    from marlab.fish.envs import register as register
