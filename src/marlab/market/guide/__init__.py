"""The training guide's names, all of them here: `from marlab.market.guide import load_tournament_data, HRLXFTrainer`.

They are loaded when they are asked for, so that `import marlab.market.guide` needs neither torch nor pyarrow.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "guide.data": (
        "compute_l1_baseline_offline", "extract_l3_residuals", "extract_macro_state", "load_l4_distill_data",
        "load_tournament_data", "reconstruct_l2_goals",
    ),
    "guide.trainer": ("HRLXFTrainer", "load_model", "save_model"),
    "learn.settings": ("TrainConfig",),
    "logs.daystate": ("HORIZON", "DayState"),
    "logs.worldlog": ("AgentLog",),
    "networks.coordinator": ("GlobalCoordinator",),
    "networks.executor": ("TemporalDecisionTransformer",),
    "networks.manager": ("HorizonManagerPPO",),
    "rules.features": ("FeatureOptions", "StateBuilder"),
    "rules.l1": ("L1Options",),
    "rules.safety": ("L1SafetyLayer",),
    "samples.options": ("GoalSource", "SampleOptions"),
    "samples.records": (
        "L4DistillSample", "L4Samples", "MacroSample", "MacroSamples", "MicroSample", "MicroSamples",
        "load_l4_samples", "load_samples", "save_l4_samples", "save_samples",
    ),
}  # fmt: skip
_HOME = {name: f"marlab.market.{module}" for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
