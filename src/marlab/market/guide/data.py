"""The data pipeline under the names of the training guide; every function is a thin door to the modules behind it.

    macro, micro = load_tournament_data("runs/market/collected", agent_name="PenguinAgent", goal_backfill="v2")

Logs may be recorded worlds or tracker JSON. With `num_workers=1` all happens in this process, which is what inline
scripts and Windows need.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marlab.lab.config import to_dict
from marlab.lab.engine.child import usable_cores
from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.market.logs.daystate import HORIZON, Array, DayState, stack
from marlab.market.logs.find import choose_experts, find_logs
from marlab.market.logs.tracker_days import Surroundings, read_days
from marlab.market.logs.worldlog import AgentLog
from marlab.market.rules import goals, l1
from marlab.market.rules.features import FeatureOptions, StateBuilder
from marlab.market.rules.l1 import L1Options
from marlab.market.samples.dataset import Samples, concatenate, load_part
from marlab.market.samples.extract import extract, with_goals
from marlab.market.samples.goals import Backfill
from marlab.market.samples.options import GoalSource, SampleOptions
from marlab.market.samples.records import L4Samples, MacroSamples, MicroSamples
from marlab.market.samples.work import Reading, make_part, refuse_many

CHUNK = 16
"""Log files that one worker takes at a time."""


def load_tournament_data(
    tournament_dir: str | Path, agent_name: str = "PenguinAgent", num_workers: int | None = None,
    goal_backfill: GoalSource = "none", l2_model_path: str | Path | None = None, strict_json_only: bool = True,
    l2_backfill_device: str = "cpu", l2_backfill_batch_size: int = 256, options: SampleOptions | None = None,
) -> tuple[MacroSamples, MicroSamples]:  # fmt: skip
    """Days and decisions of one expert in all logs below a folder; prints how many there are.

    `num_workers` None or 0 uses all cores, 1 this process. `goal_backfill` l2 needs `l2_model_path`.
    """
    if not strict_json_only:
        raise UserError("strict_json_only=False is not supported: the simulator's CSV tables lack what samples need.")
    fill = _backfill(goal_backfill, l2_model_path, l2_backfill_device, l2_backfill_batch_size, options)
    samples = _load(Path(tournament_dir), agent_name, num_workers, fill, options or SampleOptions())
    made = options or SampleOptions()
    return MacroSamples.view(samples, made), MicroSamples.view(samples, made)


def load_l4_distill_data(
    tournament_dir: str | Path,
    agent_name: str = "PenguinAgent",
    goal_source: GoalSource = "l2",
    l2_model_path: str | Path | None = None,
    num_workers: int | None = None,
    l2_backfill_device: str = "cpu",
    options: SampleOptions | None = None,
) -> L4Samples:
    """Joint decisions with the weights of the heuristic coordinator, for goals of the chosen source."""
    fill = _backfill(goal_source, l2_model_path, l2_backfill_device, 256, options)
    made = options or SampleOptions()
    return L4Samples.view(_load(Path(tournament_dir), agent_name, num_workers, fill, made), made)


def _backfill(
    source: GoalSource, model: str | Path | None, device: str, batch: int, options: SampleOptions | None
) -> Backfill:
    return Backfill(source, None if model is None else Path(model), device, batch, options or SampleOptions())


def _load(place: Path, agent_name: str, workers: int | None, fill: Backfill, options: SampleOptions) -> Samples:
    logs = find_logs(place)
    experts = choose_experts(agent_name, (kind for log in logs.logs for kind in log.types))
    files = [log.path.as_posix() for log in logs.logs if experts.intersection(log.types)]
    chunks = [files[i : i + CHUNK] for i in range(0, len(files), CHUNK)]
    workers = min(workers or usable_cores(), len(chunks))
    bad = dict(logs.bad)
    parts = _here(chunks, experts, options, bad) if workers == 1 else _workers(chunks, experts, options, workers, bad)
    refuse_many(bad, len(files) + len(logs.bad))
    for why in bad.values():
        print(f"left out: {why}")
    samples = fill(concatenate(parts))
    print(
        f"{len({log.world for log in samples.logs}):,} worlds, {len(samples.logs):,} logs of"
        f" {', '.join(sorted(experts))}: {samples.rows('macro'):,} macro and {samples.rows('micro'):,} micro"
        f" samples, {samples.rows('calls'):,} joint decisions"
    )
    return samples


def _here(
    chunks: list[list[str]], experts: frozenset[str], options: SampleOptions, bad: dict[str, str]
) -> list[Samples]:
    reading = Reading()
    with Progress("samples", total=sum(map(len, chunks)), unit="logs") as bar:
        parts = []
        for chunk in chunks:
            parts.append(reading.samples(chunk, experts, options))
            bar.advance(len(chunk))
    bad |= reading.bad
    return parts


def _workers(
    chunks: list[list[str]], experts: frozenset[str], options: SampleOptions, workers: int, bad: dict[str, str]
) -> list[Samples]:
    with tempfile.TemporaryDirectory(prefix="marlab-samples-") as folder:
        names = [f"{i:06d}" for i in range(len(chunks))]
        stored = to_dict(options)
        tasks = [
            Task(name, (chunk, sorted(experts), stored, Backfill("none"), str(Path(folder) / name)))
            for name, chunk in zip(names, chunks)
        ]
        for result in run_tasks(make_part, tasks, EngineConfig("local", workers), "samples"):
            if not result.ok:
                raise RuntimeError(f"a part of the logs failed ({result.kind}): {result.error}")
            bad |= result.value["bad"]
        return [load_part(Path(folder) / f"{name}.npz") for name in names]


def reconstruct_l2_goals(log: AgentLog, options: SampleOptions | None = None) -> dict[int, NDArray[np.float32]]:
    """The v2 goal [16] of every day of a log: what the expert did, was offered and still needed."""
    macro = extract(log, options or _options_for(log.days)).macro
    return {int(day): goal for day, goal in zip(macro["day"], macro["label"])}


def extract_macro_state(
    state: DayState | Mapping[str, Any], options: SampleOptions | None = None
) -> tuple[Array, Array, Array]:
    """x_static [12], X_temporal [H+1, 10] and roles [2] of a morning with no offers known.

    `state` is a DayState (one day or a batch) or the data of a tracker's daily_status.
    """
    day = _day_state(state)
    return StateBuilder(day.horizon, None if options is None else options.features).build(day)


def compute_l1_baseline_offline(
    state: DayState | Mapping[str, Any], is_buying: bool, options: L1Options | None = None
) -> Array:
    """The projected baseline [..., 3] (quantity, price, days to delivery) of one side."""
    day, rules = _day_state(state), options or L1Options()
    return np.stack(l1.baseline(day, l1.caps(day, rules), not is_buying, rules), -1)


def extract_l3_residuals(
    log: AgentLog,
    daily_states: DayState | Sequence[DayState] | None = None,
    goal_of_day: Mapping[int, NDArray[Any]] | None = None,
) -> MicroSamples:
    """One sample per decision of a log; other `daily_states` replace the recorded ones, goals are zero by default."""
    if daily_states is not None:
        log = replace(log, days=daily_states if isinstance(daily_states, DayState) else stack(daily_states))
    options = _options_for(log.days)
    samples = extract(log, options)
    if goal_of_day is not None:
        zero = np.zeros(goals.GOAL_SIZE)
        samples = with_goals(samples, np.stack([goal_of_day.get(int(d), zero) for d in samples.macro["day"]]))
    return MicroSamples.view(samples, options)


def _options_for(days: DayState) -> SampleOptions:
    return SampleOptions(features=FeatureOptions(horizon=days.horizon))


def _day_state(state: DayState | Mapping[str, Any]) -> DayState:
    if isinstance(state, DayState):
        return state
    day = int(state.get("current_step", state.get("day", 0)))
    around = Surroundings("daily_status", {}, suppliers=1, consumers=1)
    return read_days([(day, state)], around, HORIZON, Counter()).take(0)
