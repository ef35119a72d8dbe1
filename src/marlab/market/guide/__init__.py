"""The training guide's names, all of them here: `from marlab.market.guide import load_tournament_data, HRLXFTrainer`.

They are loaded when they are asked for, so that `import marlab.market.guide` needs neither torch nor pyarrow.
"""

from __future__ import annotations

from marlab.lab.door import lazy_names

_HOMES = {
    "guide.data": (
        "compute_l1_baseline_offline", "extract_l3_residuals", "extract_macro_state", "load_l4_distill_data",
        "load_tournament_data", "reconstruct_l2_goals",
    ),
    "guide.trainer": (
        "HRLXFTrainer", "add_options", "load_model", "save_model", "train_l2_bc", "train_l3_awr", "train_l3_bc",
        "train_l4_distill",
    ),
    "learn.settings": ("TrainConfig",),
    "logs.daystate": ("HORIZON", "DayState"),
    "logs.worldlog": ("AgentLog",),
    "networks.coordinator": ("GlobalCoordinator",),
    "networks.executor": ("TemporalDecisionTransformer",),
    "networks.manager": ("HorizonManagerPPO",),
    "online.settings": ("OnlineConfig",),
    "rules.features": ("FeatureOptions", "StateBuilder"),
    "rules.l1": ("L1Options",),
    "agent.safety": ("L1SafetyLayer",),
    "samples.options": ("GoalSource", "SampleOptions"),
    "samples.records": (
        "L4DistillSample", "L4Samples", "MacroSample", "MacroSamples", "MicroSample", "MicroSamples",
    ),
    "samples.npz": ("load_l4_samples", "load_samples", "save_l4_samples", "save_samples"),
}  # fmt: skip
_TARGETS = {name: f"marlab.market.{module}:{name}" for module, names in _HOMES.items() for name in names}

__all__ = sorted(_TARGETS)
__getattr__, __dir__ = lazy_names(__name__, _TARGETS)
