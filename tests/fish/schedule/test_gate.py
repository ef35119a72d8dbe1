from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marlab.fish.schedule.gate import GateConfig, PenaltyGate, ProbeOutcome, check_reachable
from marlab.fish.training import assemble
from marlab.fish.training.config import FishTrainConfig
from marlab.lab.config import from_dict, load_preset
from marlab.lab.errors import UserError

PRESETS = Path(assemble.__file__).parents[1] / "presets"


def outcome(**change: Any) -> ProbeOutcome:
    values = {
        "samples": 960,
        "step_one_count": 5,
        "early_death_fraction": 0.05,
        "fish_death_p10": 500.0,
        "min_final_survival": 0.9,
        "avg_final_survival": 0.95,
    }
    return ProbeOutcome(**{**values, **change})


GOOD = outcome()
BAD = outcome(fish_death_p10=50.0)
POOR = outcome(early_death_fraction=0.5)  # neither success nor failure


def gate(allowance: tuple[int, ...] = (4, 5, 6), lock_until: int = 0, **change: Any) -> PenaltyGate:
    return PenaltyGate(GateConfig(**change), allowance, lock_until)


def v32_gate() -> PenaltyGate:
    config = from_dict(FishTrainConfig, load_preset("v32", PRESETS).values, "v32")
    made = assemble.gate(config)
    assert made is not None
    return made


# --- the recorded runs --------------------------------------------------------------------------------------


def test_replay_of_the_main_run() -> None:
    machine = v32_gate()
    probes = {
        16: outcome(step_one_count=16, early_death_fraction=0.110, fish_death_p10=87.9, min_final_survival=0.458),
        32: outcome(step_one_count=13, early_death_fraction=0.107, fish_death_p10=90.9, min_final_survival=0.552),
        48: outcome(step_one_count=22, early_death_fraction=0.106, fish_death_p10=90.6, min_final_survival=0.521),
    }
    records = {i: machine.evaluate(i, probe) for i, probe in probes.items()}
    assert [r["event"] for r in records.values()] == ["failure_hold", "noop", "noop"]
    assert all(r["stage"] == 0 and r["phase_limit"] == 3 and r["limit_phase"] == 4 for r in records.values())
    assert records[16]["freeze_until"] == 20
    assert "failure_p10" in records[16]["failed_conditions"]
    assert records[32]["failed_conditions"] == ["success_p10"]  # not the freeze that the log blames
    assert "90.9 against 95" in records[32]["reason"]
    assert records[48]["failed_conditions"] == ["success_step_one", "success_step_one_ratio", "success_p10"]


def test_replay_of_the_sibling_that_advanced() -> None:
    machine = v32_gate()
    first = machine.evaluate(
        16, outcome(samples=1152, step_one_count=19, early_death_fraction=0.082, min_final_survival=0.833)
    )
    second = machine.evaluate(
        32, outcome(samples=1152, step_one_count=12, early_death_fraction=0.063, min_final_survival=0.896)
    )
    assert first["event"] == "locked"
    assert (second["event"], second["stage"], second["limit_phase"], second["phase_limit"]) == ("advance", 1, 5, 4)
    assert second["freeze_until"] == 36
    assert second["changed"] and second["last_success"] == 32 and second["failed_conditions"] == []


# --- the state machine --------------------------------------------------------------------------------------


def test_rollback_needs_the_tolerance() -> None:
    machine = gate(failure_tolerance=2)
    assert machine.evaluate(1, GOOD)["event"] == "advance"
    held = machine.evaluate(20, BAD)
    assert (held["event"], held["stage"], held["failure_streak"], held["freeze_until"]) == ("failure_hold", 1, 1, 24)
    fallen = machine.evaluate(21, BAD)
    assert (fallen["event"], fallen["stage"], fallen["failure_streak"]) == ("rollback", 0, 0)
    assert machine.evaluate(22, BAD)["event"] == "failure_hold"  # nothing lies below stage 0


def test_a_success_between_failures_clears_the_streak() -> None:
    machine = gate(failure_tolerance=2, freeze_iterations=0)
    machine.evaluate(1, GOOD)
    machine.evaluate(2, BAD)
    machine.evaluate(3, POOR)
    assert machine.evaluate(4, BAD)["event"] == "failure_hold"


def test_locked_then_frozen_then_free() -> None:
    machine = gate(lock_until=10, freeze_iterations=4)
    locked = machine.evaluate(10, GOOD)
    assert (locked["event"], locked["failed_conditions"]) == ("locked", ["locked"])
    assert machine.evaluate(11, GOOD)["event"] == "advance"
    frozen = machine.evaluate(14, GOOD)
    assert (frozen["event"], frozen["failed_conditions"]) == ("frozen", ["frozen"])
    assert "until iteration 15" in frozen["reason"]
    assert machine.evaluate(15, GOOD)["event"] == "advance"


def test_required_successes_must_follow_each_other() -> None:
    machine = gate(required_successes=2, success_freeze_iterations=1)
    assert machine.evaluate(1, GOOD)["event"] == "success_progress"
    assert machine.evaluate(2, GOOD)["event"] == "advance"
    machine.evaluate(10, GOOD)
    assert machine.evaluate(12, POOR)["event"] == "noop"
    record = machine.evaluate(14, GOOD)
    assert (record["event"], record["success_streak"]) == ("success_progress", 1)


def test_the_last_stage_is_the_last() -> None:
    machine = gate((4, 5), freeze_iterations=0)
    machine.evaluate(1, GOOD)
    record = machine.evaluate(2, GOOD)
    assert (record["event"], record["stage"]) == ("success_progress", 1)


def test_a_negative_count_asks_for_nothing_and_zero_asks_for_none() -> None:
    many = outcome(step_one_count=300)
    assert gate(success_step_one=-1).evaluate(1, many)["event"] == "advance"
    assert gate(success_step_one=0).evaluate(1, outcome(step_one_count=1))["failed_conditions"] == ["success_step_one"]
    assert gate(success_step_one=0).evaluate(1, outcome(step_one_count=0))["event"] == "advance"


def test_ratio_rule_uses_all_fish() -> None:
    thirteen = outcome(step_one_count=13)
    assert thirteen.step_one_ratio == pytest.approx(0.0135417, abs=1e-7)
    assert gate(success_step_one=-1, success_step_one_ratio=0.0135).evaluate(1, thirteen)["event"] == "noop"
    assert gate(success_step_one=-1, success_step_one_ratio=0.0136).evaluate(1, thirteen)["event"] == "advance"


def test_medians_need_their_full_window() -> None:
    machine = gate(success_median_window=3, required_successes=1, freeze_iterations=0)
    records = [machine.evaluate(i, GOOD) for i in (1, 2, 3)]
    assert [r["event"] for r in records] == ["noop", "noop", "advance"]
    assert records[0]["rolling_p10_median"] is None
    assert "not yet known" in records[0]["reason"]


def test_early_death_window_takes_the_median() -> None:
    machine = gate(success_early_death_window=3, freeze_iterations=0)
    shares = [0.05, 0.5, 0.06]
    records = [machine.evaluate(i, outcome(early_death_fraction=s)) for i, s in enumerate(shares, start=1)]
    assert [r["event"] for r in records] == ["noop", "noop", "advance"]
    assert records[-1]["rolling_early_death_median"] == pytest.approx(0.06)


def test_limits_per_type_of_hard_start() -> None:
    limits = {
        "success_early_death_by_stage": "ne:0.13,main:0.04", "success_step_one_by_stage": "main:45",
        "failure_tolerance_by_stage": "main:1",
    }  # fmt: skip
    probe = outcome(early_death_fraction=0.12, step_one_count=6)
    assert gate(**limits).evaluate(1, replace(probe, tail_type="ne"))["event"] == "advance"
    assert gate(**limits).evaluate(1, probe)["failed_conditions"] == ["success_early_death"]
    main = outcome(early_death_fraction=0.03, step_one_count=45, tail_type="main")
    machine = gate(**limits)
    assert machine.evaluate(1, main)["event"] == "advance"
    assert machine.evaluate(9, replace(BAD, tail_type="main"))["event"] == "rollback"


@pytest.mark.parametrize("probe", [GOOD, BAD, POOR, outcome(min_final_survival=0.1)])
@pytest.mark.parametrize("lock", [0, 50])
def test_every_record_without_success_names_a_failed_condition(probe: ProbeOutcome, lock: int) -> None:
    record = gate(lock_until=lock).evaluate(3, probe)
    assert bool(record["failed_conditions"]) == (record["event"] != "advance")
    assert bool(record["reason"]) == bool(record["failed_conditions"])


# --- exactly at a limit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "field", "at", "beyond"),
    [
        ({"success_step_one": 5}, "step_one_count", 5, 6),
        ({"success_step_one": -1, "success_step_one_ratio": 0.25}, "step_one_count", 240, 241),
        ({"success_early_death": 0.25}, "early_death_fraction", 0.25, 0.2511),
        ({"success_p10": 120.0}, "fish_death_p10", 120.0, 119.9),
    ],
)
def test_a_success_may_touch_its_limit(limits: dict[str, Any], field: str, at: float, beyond: float) -> None:
    assert gate(**limits).evaluate(1, outcome(**{field: at}))["event"] == "advance"
    assert gate(**limits).evaluate(1, outcome(**{field: beyond}))["event"] == "noop"


@pytest.mark.parametrize(("field", "at", "beyond"), [("fish_death_p10", 95.0, 94.9), ("min_final_survival", 0.5, 0.49)])
def test_a_probe_at_the_limit_of_failure_has_not_failed(field: str, at: float, beyond: float) -> None:
    assert not gate().evaluate(1, outcome(**{field: at}))["failure_detected"]
    assert gate().evaluate(1, outcome(**{field: beyond}))["failure_detected"]


def test_a_score_may_touch_both_thresholds() -> None:
    rule = {"rule": "score", "success_score": 0.75, "failure_score": 0.5}
    for score, event in ((0.75, "advance"), (0.7499, "noop"), (0.5, "noop"), (0.4999, "failure_hold")):
        assert gate(**rule).evaluate(1, outcome(avg_final_survival=score))["event"] == event
    even = {"rule": "score", "success_score": 0.5, "failure_score": 0.5}
    assert gate(**even).evaluate(1, outcome(avg_final_survival=0.5))["event"] == "advance"


def test_a_score_counts_all_fish_unless_the_doomed_are_subtracted() -> None:
    probe = outcome(samples=100, avg_final_survival=0.8, doomed=20)
    rule = {"rule": "score", "success_score": 0.9, "failure_score": 0.1}
    assert "success_score: 0.8 against 0.9" in gate(**rule).evaluate(1, probe)["reason"]
    assert gate(**rule, subtract_doomed=True).evaluate(1, probe)["event"] == "advance"
    all_doomed = outcome(samples=100, avg_final_survival=0.0, early_death_fraction=1.0, doomed=100, step_one_count=100)
    assert gate(subtract_doomed=True).evaluate(1, all_doomed)["event"] == "advance"  # nobody who could be saved died


def test_every_move_says_how_long_the_gate_rests_and_forgets_its_streaks() -> None:
    machine = gate(required_successes=3, success_freeze_iterations=3, freeze_iterations=5, failure_tolerance=1)

    def told(iteration: int, probe: ProbeOutcome) -> tuple[Any, ...]:
        record = machine.evaluate(iteration, probe)
        return tuple(record[k] for k in ("event", "stage", "success_streak", "failure_streak", "freeze_until"))

    assert told(1, GOOD) == ("success_progress", 0, 1, 0, 4)
    assert told(4, GOOD) == ("success_progress", 0, 2, 0, 7)  # the freeze ends with its last iteration
    assert told(6, GOOD) == ("frozen", 0, 0, 0, 7)
    assert told(7, GOOD) == ("success_progress", 0, 1, 0, 10)
    assert told(10, GOOD) == ("success_progress", 0, 2, 0, 13)
    assert told(13, GOOD) == ("advance", 1, 0, 0, 18)
    assert told(18, GOOD) == ("success_progress", 1, 1, 0, 21)
    assert told(21, POOR) == ("noop", 1, 0, 0, 21)
    assert told(22, GOOD) == ("success_progress", 1, 1, 0, 25)
    assert told(23, BAD) == ("rollback", 0, 0, 0, 28)
    assert told(24, BAD) == ("failure_hold", 0, 0, 1, 29)
    assert told(25, BAD) == ("failure_hold", 0, 0, 2, 30)


def test_a_lock_comes_first_in_the_reasons_and_clears_the_streak() -> None:
    machine = gate(lock_until=10, required_successes=2)
    machine.success_streak = 1
    record = machine.evaluate(10, POOR)
    assert record["failed_conditions"] == ["locked", "success_early_death"]
    assert record["reason"].startswith("locked until iteration 10; ")
    assert record["success_streak"] == 0
    machine = gate(required_successes=2)
    machine.freeze_until, machine.success_streak = 20, 1
    assert machine.evaluate(19, GOOD)["success_streak"] == 0


def test_the_rule_of_a_score_keeps_the_streak_between_its_thresholds() -> None:
    for rule, kept in (("score", 1), ("conditions", 0)):
        machine = gate(rule=rule, required_successes=3)
        machine.success_streak = 1
        between = outcome(avg_final_survival=0.9, early_death_fraction=0.5)
        assert machine.evaluate(1, between)["success_streak"] == kept


def test_defaults_of_the_allowance_follow_the_number_of_phases() -> None:
    assert [GateConfig().allowance(phases) for phases in (7, 3, 14, 1)] == [(4, 5, 6), (2, 3), (8, 10, 12), (1,)]
    assert GateConfig(phase_allowance="1,7,7").allowance(7) == (1, 7, 7)
    assert (GateConfig(required_successes=1).is_on, GateConfig(required_successes=0).is_on) == (True, False)
    assert GateConfig(confidence_level=0.5).confidence_level == 0.5
    with pytest.raises(UserError, match="confidence_level"):
        GateConfig(confidence_level=0.49)


def test_without_a_lock_the_first_probe_may_move_the_gate() -> None:
    assert PenaltyGate(GateConfig(), (4, 5, 6)).evaluate(1, GOOD)["event"] == "advance"


def test_limits_that_are_reached_on_average_are_not_doubted() -> None:
    assert check_reachable(GateConfig(success_step_one=10), 0.01, 1000) == []
    (doubt,) = check_reachable(GateConfig(success_step_one=9), 0.01, 1000)
    assert "a perfect policy passes 46% of the probes" in doubt
    with pytest.raises(UserError, match=r"allows 0 step-one deaths, but 1.00% of 1000 fish .* about 10;"):
        check_reachable(GateConfig(success_step_one=0), 0.01, 1000)
    assert len(check_reachable(GateConfig(success_step_one=3), 0.01, 1000, refuse=False)) == 1
    (doubt,) = check_reachable(GateConfig(success_step_one=4), 0.01, 1000)  # 2.9 % of the probes: luck, not hopeless
    assert "3%" in doubt
    assert check_reachable(GateConfig(rule="score", success_step_one=0), 0.01, 1000) == []


# --- confidence, doomed fish, score -------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["wilson", "clopper_pearson"])
def test_success_by_bound_needs_more_evidence_than_a_plain_ratio(method: str) -> None:
    limits = {"success_step_one": -1, "success_step_one_ratio": 0.02, "success_early_death": 0.06}
    near = outcome(step_one_count=18, early_death_fraction=0.02)
    assert gate(**limits).evaluate(1, near)["event"] == "advance"
    assert gate(**limits, confidence=method).evaluate(1, near)["failed_conditions"] == ["success_step_one_ratio"]
    clear = replace(near, step_one_count=12)
    assert gate(**limits, confidence=method).evaluate(1, clear)["event"] == "advance"


def test_doomed_fish_do_not_count_against_the_policy() -> None:
    limits = {"success_step_one": -1, "success_step_one_ratio": 0.005, "success_early_death": 0.01}
    probe = outcome(step_one_count=17, early_death_fraction=17 / 960, doomed=16)
    bounded = {"confidence": "wilson", "subtract_doomed": True}
    assert gate(**limits).evaluate(1, probe)["event"] == "noop"
    assert gate(**limits, **bounded).evaluate(1, probe)["event"] == "advance"
    worse = replace(probe, step_one_count=22, early_death_fraction=22 / 960)
    assert gate(**limits, **bounded).evaluate(1, worse)["failed_conditions"] == ["success_step_one_ratio"]


def test_score_rule_has_a_band_in_which_nothing_changes() -> None:
    machine = gate(rule="score", success_score=0.97, failure_score=0.85, required_successes=2, subtract_doomed=True)
    saved = outcome(avg_final_survival=0.975 * 944 / 960, doomed=16)
    between = replace(saved, avg_final_survival=0.9)
    assert machine.evaluate(1, saved)["event"] == "success_progress"
    middle = machine.evaluate(3, between)
    assert (middle["event"], middle["success_streak"], middle["failed_conditions"]) == ("noop", 1, ["success_score"])
    assert machine.evaluate(5, saved)["event"] == "advance"
    assert machine.evaluate(20, replace(saved, avg_final_survival=0.8))["event"] == "failure_hold"


def test_score_by_bound_is_stricter_on_both_sides() -> None:
    unsure = outcome(samples=100, avg_final_survival=0.97, min_final_survival=0.9)
    record = gate(rule="score", confidence="wilson").evaluate(1, unsure)
    assert (record["event"], record["failed_conditions"]) == ("noop", ["success_score"])
    low = replace(unsure, avg_final_survival=0.84)
    assert gate(rule="score").evaluate(1, low)["failure_detected"]
    assert not gate(rule="score", confidence="wilson").evaluate(1, low)["failure_detected"]


# --- impossible gates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"phase_allowance": ""}, "empty"),
        ({"phase_allowance": "4,8"}, "phase 8"),
        ({"phase_allowance": "0"}, "phase 0"),
        ({"phase_allowance": "5,4"}, "fall"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"success_score": 0.5, "failure_score": 0.6}, "failure_score"),
        ({"success_median_window": 0}, "windows"),
        ({"success_early_death_window_by_stage": "ne:0"}, "windows"),
    ],
)
def test_impossible_settings_are_one_sentence(change: dict[str, Any], word: str) -> None:
    with pytest.raises(UserError, match=word):
        GateConfig(**change).allowance(7)


def test_a_count_below_the_doomed_floor_is_refused() -> None:
    limits = GateConfig(success_step_one=7)
    with pytest.raises(UserError, match=r"allows 7 step-one deaths, but 1.61% of 1152 fish"):
        check_reachable(limits, 0.0161, 1152)
    (doubt,) = check_reachable(limits, 0.0161, 1152, refuse=False)
    assert "by luck" in doubt


def test_a_ratio_near_the_doomed_floor_is_doubted_and_far_below_refused() -> None:
    limits = GateConfig(success_step_one=-1, success_step_one_ratio=0.015)
    (doubt,) = check_reachable(limits, 0.0161, 960)
    assert "penalty_gate_success_step_one_ratio" in doubt
    with pytest.raises(UserError, match="step_one_ratio"):
        check_reachable(replace(limits, success_step_one_ratio=0.005), 0.0161, 960)


def test_a_reachable_gate_is_silent() -> None:
    assert check_reachable(GateConfig(success_step_one=30), 0.0161, 960) == []
    ours = GateConfig(success_step_one=0, success_step_one_ratio=0.001, subtract_doomed=True)
    assert check_reachable(ours, 0.0161, 960) == []


# --- saving -------------------------------------------------------------------------------------------------

probes = st.builds(
    outcome,
    step_one_count=st.integers(0, 30),
    early_death_fraction=st.floats(0, 0.3),
    fish_death_p10=st.floats(1, 500),
    min_final_survival=st.floats(0.3, 1),
)


@given(before=st.lists(probes, max_size=8), after=st.lists(probes, max_size=8), window=st.integers(1, 3))
def test_a_saved_gate_continues_as_if_never_stopped(
    before: list[ProbeOutcome], after: list[ProbeOutcome], window: int
) -> None:
    settings: dict[str, Any] = {"required_successes": 2, "success_median_window": window, "success_p10": 90.0}
    ours, theirs = gate(**settings), gate(**settings)
    for i, probe in enumerate(before):
        ours.evaluate(4 * i, probe)
    theirs.load_state_dict(ours.state_dict())
    for i, probe in enumerate(after, start=len(before)):
        assert ours.evaluate(4 * i, probe) == theirs.evaluate(4 * i, probe)


@given(st.lists(probes, max_size=20))
def test_the_stage_stays_in_range_and_moves_by_one(sequence: list[ProbeOutcome]) -> None:
    machine = gate(failure_tolerance=1, freeze_iterations=0)
    for i, probe in enumerate(sequence):
        before = machine.stage
        record = machine.evaluate(i + 1, probe)
        assert 0 <= machine.stage <= 2
        assert machine.stage - before == {"advance": 1, "rollback": -1}.get(record["event"], 0)


def test_nothing_is_frozen_before_the_first_decision() -> None:
    assert gate().evaluate(1, POOR)["freeze_until"] == 0


def test_one_probe_alone_is_judged_by_its_bound() -> None:
    """A window of one is no median: chance counts against success, as it does without a window."""
    probe, limits = outcome(early_death_fraction=0.05), {"success_early_death": 0.055, "confidence": "wilson"}
    alone = gate(success_early_death_window=1, **limits)
    assert alone._early_for_success(probe) == alone._early_share(probe)[1] > 0.055
