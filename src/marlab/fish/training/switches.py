"""The switches of a training: what the original's trainer got wrong. Those of the sea are fields of `SeaConfig`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from marlab.fish.sea.switches import check_switches


@dataclass(frozen=True)
class Switches:
    """Rules with two readings: ours first, the original's second; none: ours, or with `compat` the original's."""

    action_mode: Literal["per_fish", "broadcast"] | None = None
    """Every fish acts for itself, or (compat) one action is copied to all of them."""
    queue_on_phase_change: Literal["carried", "discarded"] | None = None
    """Hard starts are carried into the next phase, or (compat) thrown away."""
    lr_progress: Literal["run", "phase"] | None = None
    """The learning rate falls over the whole run, or (compat) once per phase."""
    seed_scope: Literal["everything", "probes"] | None = None
    """What the seed fixes: everything, or (compat) only the probes."""
    stats_window: Literal["iteration", "last_100"] | None = None
    """Training statistics over the iteration's finished episodes, or (compat) over the last 100 of any phase."""
    adaptive_boost_signal: Literal["late_first_death_p10", "first_death_p10"] | None = None
    """What the adaptive boost listens to: first deaths after step one, or (compat) all first deaths; step-one deaths
    keep that signal constant."""
    best_checkpoint_rule: Literal["survival", "step_one"] | None = None
    """The best probe has the highest survival, or (compat) the fewest step-one deaths."""
    tail_queue: Literal["cyclic", "fifo"] | None = None
    """Hard starts come with a probability and are refilled, or (compat) at every reset until none is left."""
    tail_stage_advance: Literal["iterations", "consumption"] | None = None
    """Stages of hard starts follow the iterations, or (compat) the next begins when one is used up."""

    def __post_init__(self) -> None:
        check_switches(self)
