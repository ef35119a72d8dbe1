"""The door of the guide: which names it has, and that knocking costs nothing."""

import subprocess
import sys

import pytest

from marlab.market import guide

NAMES = """
    AgentLog DayState FeatureOptions GlobalCoordinator GoalSource HORIZON HRLXFTrainer HorizonManagerPPO L1Options
    L1SafetyLayer L4DistillSample L4Samples MacroSample MacroSamples MicroSample MicroSamples OnlineConfig SampleOptions
    StateBuilder
    TemporalDecisionTransformer TrainConfig add_options compute_l1_baseline_offline extract_l3_residuals
    extract_macro_state load_l4_distill_data load_l4_samples load_model load_samples load_tournament_data
    reconstruct_l2_goals
    save_l4_samples save_model save_samples train_l2_bc train_l3_awr train_l3_bc train_l4_distill
""".split()


def test_the_guides_names_are_pinned_and_there() -> None:
    assert guide.__all__ == NAMES and set(NAMES) <= set(dir(guide))
    assert all(getattr(guide, name) is not None for name in NAMES)


def test_another_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'magic'"):
        _ = guide.magic


def test_the_door_alone_loads_nothing_heavy() -> None:
    code = "import sys, marlab.market.guide; print([m for m in ('torch', 'pyarrow', 'scml') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
