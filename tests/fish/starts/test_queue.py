from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from marlab.fish.schedule.phases import parse_curriculum
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.world import FishWorld
from marlab.fish.starts.files import Stage, StageSpec, StartSet
from marlab.fish.starts.queue import LowRatioWarning, StartQueue
from marlab.lab.errors import UserError

R2 = parse_curriculum("15:9,20:10,25:9,25:8,25:8,25:8,25:8", 60, 25)


def stage(iterations: int, entries: int, tag: int = 0, type: str = "main", full: bool = False) -> Stage:
    """Entry i of the file has velocity (tag, i)."""
    velocity = np.stack([np.full(entries, tag), np.arange(entries)], axis=1).astype(float)
    position = np.full((entries, 2), 1.0 if full else np.nan)
    return Stage(StageSpec(iterations, f"{tag}.json", type, f"label{tag}"), StartSet(f"{tag}.json", position, velocity))


def fifo(stages: list[Stage], arenas: int) -> StartQueue:
    return StartQueue(stages, arenas, mode="fifo", advance="consumption")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# --- compat: slots ------------------------------------------------------------------------------------------


def test_slots_of_the_main_run() -> None:
    queue = fifo([stage(16, 5, 1), stage(16, 5, 2)], 128)
    assert queue.capacity == queue.remaining == 4096
    plan = queue.plan(33, rng())
    assert plan.active[:32].all() and not plan.active[32].any()  # 32 per arena
    slots = np.arange(4096).reshape(32, 128)  # slot j belongs to arena j mod 128
    assert np.array_equal(plan.velocity[:32, :, 0].numpy(), np.where(slots < 2048, 1.0, 2.0))
    assert np.array_equal(plan.velocity[:32, :, 1].numpy(), (slots % 2048) % 5)
    assert torch.equal(plan.stage[:, 0], torch.tensor([0] * 16 + [1] * 16 + [-1]))


def test_main_run_ratio_until_the_phase_change_throws_the_queue_away() -> None:
    queue = fifo([stage(16, 5, 1), stage(16, 5, 2)], 128)
    ratios: dict[int, Any] = {}
    steps = 0
    queue.plan(2, rng())
    for iteration in range(1, 14):
        new_phase = iteration == 10
        if new_phase:
            queue.drop()
            steps = 0
        if iteration > 1:
            queue.plan(2, rng())
        before, steps = steps, steps + 128
        resets = int(iteration == 1 or new_phase) + int(before // 500 < steps // 500)
        queue.settle(np.full(128, resets))
        row = queue.metrics()
        ratios[iteration] = (
            row["prewarm_override_hits"],
            row["prewarm_override_episodes"],
            row["prewarm_override_ratio"],
        )
    assert ratios[1] == (128, 128, 1.0)
    assert ratios[2] == (0, 0, None)  # nothing happened, which is not the same as 0 %
    assert ratios[4] == ratios[8] == (128, 128, 1.0)
    assert ratios[10] == ratios[13] == (0, 128, 0.0)
    assert queue.handed_out == 384 and queue.lost == 4096 - 384 and queue.remaining == 0


def test_fifo_ends_when_the_stock_is_used_up() -> None:
    queue = fifo([stage(1, 3, 1), stage(2, 3, 2)], 2)
    taken = []
    for _ in range(5):
        plan = queue.plan(1, rng())
        taken += plan.velocity[0][plan.active[0]].tolist()
        queue.settle([1, 1])
    assert taken == [[1, 0], [1, 1], [2, 0], [2, 1], [2, 2], [2, 0]]
    row = queue.metrics()
    assert (row["tail_queue_remaining"], row["tail_queue_remaining_ratio"], row["tail_stage_index"]) == (0, 0.0, 2)
    assert row["prewarm_override_ratio"] == pytest.approx(6 / 10)


# --- fixed: probability, refill, calendar -------------------------------------------------------------------


def test_ratio_over_a_whole_run_with_seven_phases() -> None:
    """The acceptance check: half of the resets, in every iteration with resets, and nothing lost at phase changes."""
    queue = StartQueue([stage(16, 5, 1), stage(16, 5, 2)], 128, override_probability=0.5)
    draws, steps, hits = rng(3), 0, 0
    for iteration in range(1, 61):
        queue.begin_iteration(iteration)
        queue.plan(2, draws)
        new_phase = any(p.first == iteration for p in R2)  # a phase change resets all arenas
        before, steps = steps, (128 if new_phase else steps + 128)
        resets = int(new_phase) + int(not new_phase and before // 500 < steps // 500)
        queue.settle(np.full(128, resets))
        row = queue.metrics()
        hits += row["prewarm_override_hits"]
        assert row["tail_queue_remaining"] == 4096 - hits  # exactly by hits, also across phases
        if resets:
            assert row["prewarm_override_ratio"] > 0.25
        assert row["prewarm_override_ratio_256"] is not None
        assert 0.4 <= row["prewarm_override_ratio_256"] <= 0.6
    assert hits > 500 and queue.lost == 0


def test_stages_follow_the_calendar_and_start_over() -> None:
    queue = StartQueue([stage(2, 4, 1, "ne"), stage(3, 4, 2, "sw")], 4, override_probability=1.0)
    seen = []
    for iteration in range(1, 12):
        queue.begin_iteration(iteration)
        plan = queue.plan(1, rng())
        queue.settle(np.ones(4))
        row = queue.metrics()
        assert set(plan.velocity[0, :, 0].tolist()) == {float(row["tail_stage_index"])}
        seen.append((row["tail_stage_index"], row["tail_stage_type"], round(row["tail_stage_progress"], 2)))
    assert seen[:6] == [
        (1, "ne", 0.0),
        (1, "ne", 0.5),
        (2, "sw", 0.0),
        (2, "sw", 0.33),
        (2, "sw", 0.67),
        (1, "ne", 0.0),
    ]
    assert seen[5:10] == seen[:5]
    assert queue.metrics()["tail_seed_stage_id"] == queue.metrics()["tail_stage_index"]


def test_refill_counts_and_books_by_type() -> None:
    queue = StartQueue([stage(2, 7, 1, "ne"), stage(1, 7, 2, "main")], 3, override_probability=1.0)
    for _ in range(5):  # the calendar stays on stage 1: five starts per arena from a stock of two
        queue.plan(1, rng())
        queue.settle(np.ones(3))
    row = queue.metrics()
    assert row["tail_stage_remaining_by_type"] == {"ne": 3, "main": 3}
    assert (row["tail_prewarm_injections"], row["tail_prewarm_injections_total"]) == (9, 9)
    assert row["tail_ne_reinjections"] == 9
    assert queue.refills == 12 and queue.remaining == queue.capacity - queue.handed_out + queue.refills
    assert queue.metrics()["tail_prewarm_injections"] == 0


def test_every_entry_of_a_file_is_used_in_turn() -> None:
    queue = StartQueue([stage(50, 7, 1)], 3, override_probability=1.0)
    taken = []
    for _ in range(7):
        taken += queue.plan(1, rng()).velocity[0, :, 1].tolist()
        queue.settle(np.ones(3))
    assert taken == [float(j % 7) for j in range(21)]


def test_full_states_bring_their_position() -> None:
    plan = StartQueue([stage(4, 3, full=True)], 5, override_probability=1.0).plan(2, rng())
    assert plan.position.shape == (2, 5, 2) and torch.all(plan.position == 1.0)
    plan = StartQueue([stage(4, 3)], 5, override_probability=1.0).plan(2, rng())
    assert plan.position.isnan().all()


def test_resets_beyond_the_plan_are_ordinary() -> None:
    queue = StartQueue([stage(4, 3)], 2, override_probability=1.0)
    queue.plan(1, rng())
    queue.settle([3, 0])
    row = queue.metrics()
    assert (row["prewarm_override_episodes"], row["prewarm_override_hits"]) == (3, 1)


def test_recent_ratio_covers_exactly_the_last_256_resets() -> None:
    queue = StartQueue([stage(100, 3)], 128, mode="fifo", advance="consumption")
    assert queue.metrics()["prewarm_override_ratio_256"] is None
    for _ in range(2):
        queue.plan(1, rng())
        queue.settle(np.ones(128))
    queue.drop()
    queue.plan(1, rng())
    queue.settle(np.ones(128))
    assert queue.metrics()["prewarm_override_ratio_256"] == 0.5


def test_no_stages_means_ordinary_resets() -> None:
    queue = StartQueue([], 4)
    queue.begin_iteration(1)
    assert not queue.plan(2, rng()).active.any()
    queue.settle(np.ones(4))
    row = queue.metrics()
    assert (row["tail_stage_index"], row["prewarm_override_ratio"], row["tail_queue_remaining"]) == (0, 0.0, 0)
    assert row["tail_queue_remaining_ratio"] is None and row["tail_stage_progress"] is None


def test_counts_by_stage_become_counts_by_type() -> None:
    queue = StartQueue([stage(2, 3, 1, "ne"), stage(2, 3, 2, "main"), stage(2, 3, 3, "ne")], 2)
    assert queue.by_type([9, 1, 2, 4, 0, 0]) == {"ordinary": 9, "ne": 5, "main": 2}


def test_wrong_probability_and_too_many_stages() -> None:
    with pytest.raises(UserError, match="tail_override_probability"):
        StartQueue([stage(2, 3)], 2, override_probability=1.5)
    with pytest.raises(UserError, match="64 stages"):
        StartQueue([stage(2, 3)] * 64, 2)


def test_the_world_meets_the_planned_starts_and_the_books_agree() -> None:
    world = FishWorld(SeaConfig(num_fish=3), 6, seed=1, force_reset_steps=4)
    queue, draws = StartQueue([stage(9, 5, 1, full=True), stage(9, 5, 2)], 6, override_probability=0.5), rng(2)
    hits = 0
    for iteration in (1, 2, 3, 10, 11, 12):
        queue.begin_iteration(iteration)
        plan = queue.plan(3, draws)
        world.feed(plan)
        world.step(torch.full((6, 3), 4))
        if iteration == 1:
            world.reset()
            first = plan.active[0]
            velocity = world.state.predator_velocity
            assert torch.equal(velocity[first], plan.velocity[0][first])
            assert torch.equal(world.state.predator_position[first], plan.position[0][first])
            assert not torch.equal(velocity[~first], plan.velocity[0][~first])
        for _ in range(8):
            world.step(torch.full((6, 3), 4))
        queue.settle(world.resets_since_feed.tolist())
        seen, row = world.pop_stats(), queue.metrics()
        hits += row["prewarm_override_hits"]
        if iteration > 1:  # the first statistics hold the reset that made the world
            assert (seen["override_hits"], seen["override_episodes"]) == (
                row["prewarm_override_hits"],
                row["prewarm_override_episodes"],
            )
    assert hits == queue.handed_out > 10


# --- books and saving, for any course of events -------------------------------------------------------------

courses = st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=25)


@settings(max_examples=60)
@given(
    course=courses,
    mode=st.sampled_from(["fifo", "cyclic"]),
    advance=st.sampled_from(["iterations", "consumption"]),
    probability=st.floats(0, 1),
    stop=st.integers(0, 25),
    drop_at=st.integers(0, 60),
)
def test_books_balance_and_a_half_used_queue_continues(
    course: list[list[int]], mode: Any, advance: Any, probability: float, stop: int, drop_at: int
) -> None:
    def make() -> StartQueue:
        stages = [stage(2, 3, 1, "ne"), stage(1, 4, 2), stage(3, 2, 3, "ne")]
        return StartQueue(stages, 3, mode=mode, advance=advance, override_probability=probability)

    queue, draws, hits = make(), rng(1), 0
    for iteration, resets in enumerate(course, start=1):
        if iteration == stop:  # save, load into a new queue, go on with that one
            resumed = make()
            resumed.load_state_dict(queue.state_dict())
            queue = resumed
        if iteration == drop_at:
            queue.drop()
        queue.begin_iteration(iteration)
        plan = queue.plan(2, draws)
        expected = int((plan.active & (torch.arange(2)[:, None] < torch.tensor(resets))).sum())
        queue.settle(resets)
        row = queue.metrics()
        hits += row["prewarm_override_hits"]
        assert row["prewarm_override_hits"] == expected
        assert row["prewarm_override_episodes"] == sum(resets)
        assert queue.handed_out == hits
        assert queue.remaining == queue.capacity - hits + queue.refills - queue.lost
        assert sum(row["tail_stage_remaining_by_type"].values()) == queue.remaining >= 0
        assert 1 <= row["tail_stage_index"] <= 3 and 0.0 <= row["tail_stage_progress"] <= 1.0


@settings(max_examples=40)
@given(course=courses, stop=st.integers(1, 20), probability=st.floats(0, 1), mode=st.sampled_from(["fifo", "cyclic"]))
def test_resumed_and_uninterrupted_queues_give_the_same_starts(
    course: list[list[int]], stop: int, probability: float, mode: Any
) -> None:
    def make() -> StartQueue:
        return StartQueue([stage(2, 3, 1), stage(3, 5, 2)], 3, mode=mode, override_probability=probability)

    ours, theirs, a, b = make(), make(), rng(5), rng(5)
    for iteration, resets in enumerate(course, start=1):
        if iteration == stop:
            saved, theirs = theirs.state_dict(), make()
            theirs.load_state_dict(saved)
        for queue in (ours, theirs):
            queue.begin_iteration(iteration)
        for left, right in zip(ours.plan(2, a), theirs.plan(2, b)):
            assert torch.equal(left.nan_to_num(), right.nan_to_num())
        ours.settle(resets)
        theirs.settle(resets)
        assert ours.metrics() == theirs.metrics()


def test_a_queue_of_another_size_is_refused() -> None:
    saved = StartQueue([stage(2, 3)], 4).state_dict()
    with pytest.raises(UserError, match="1 stages for 4 arenas, but this run has 1 stages for 5"):
        StartQueue([stage(2, 3)], 5).load_state_dict(saved)


def test_misuse_is_a_program_error() -> None:
    queue = StartQueue([stage(2, 3)], 4)
    with pytest.raises(RuntimeError, match="plan"):
        queue.settle([0, 0, 0, 0])
    queue.plan(1, rng())
    with pytest.raises(RuntimeError, match="settle"):
        queue.state_dict()


# --- early warning ------------------------------------------------------------------------------------------


def test_warning_starts_after_its_patience_and_tells_how_long_it_lasted() -> None:
    warning = LowRatioWarning("tail_stage_warning", 0.5, 2)
    ratios = [0.9, 0.5, None, 0.4, 0.3, 0.8, 0.2]
    events = [warning.update(i, r, f"stage{i}") for i, r in enumerate(ratios, start=1)]
    assert [e is not None for e in events] == [False, False, False, True, False, True, False]
    assert events[3] == {
        "event": "tail_stage_warning", "state": "started", "iteration": 4, "ratio": 0.4, "label": "stage4",
        "duration": 2,
    }  # fmt: skip
    assert events[5] is not None and (events[5]["state"], events[5]["duration"]) == ("ended", 3)


def test_warning_can_be_off_and_can_be_saved() -> None:
    off = LowRatioWarning("x", 0.0, 1)
    assert off.update(1, 0.0, None) is None and not off.active
    ours, theirs = LowRatioWarning("x", 0.5, 3), LowRatioWarning("x", 0.5, 3)
    for i in (1, 2):
        ours.update(i, 0.1, None)
    theirs.load_state_dict(ours.state_dict())
    assert ours.update(3, 0.1, None) == theirs.update(3, 0.1, None)
    assert theirs.active
