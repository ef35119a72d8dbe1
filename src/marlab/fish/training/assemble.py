"""From settings to working parts: schedules, gate, hard starts, and the sea."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from marlab.fish.schedule.boost import EscapeBoost
from marlab.fish.schedule.curriculum import Schedules, parse_entropy_windows
from marlab.fish.schedule.gate import PenaltyGate
from marlab.fish.schedule.syntax import wholes
from marlab.fish.sea.config import SeaConfig, decided
from marlab.lab.checks import WIDEST
from marlab.lab.errors import UserError

if TYPE_CHECKING:
    from marlab.fish.starts.queue import LowRatioWarning, StartQueue
    from marlab.fish.training.config import FishTrainConfig


def check(config: FishTrainConfig) -> None:
    """Refuse settings that cannot work together; every part says itself what is wrong with it."""
    hidden_sizes(config)
    schedules(config)


def schedules(config: FishTrainConfig) -> Schedules:
    """All schedules of the run, held at the first gate stage's phase if there is a gate."""
    phases, machine = config.phases, gate(config)
    boost = config.boost.schedule(config.sea.escape_boost_speed, len(phases))
    return Schedules(
        phases, config.penalty.schedule(phases, config.sea.density_penalty_coef),
        EscapeBoost(boost, None if config.disable_adaptive_boost else config.adaptive_boost),
        entropy_base=config.ppo.entropy_coef, entropy_windows=parse_entropy_windows(config.entropy_coef_schedule),
        learning_rate=config.ppo.learning_rate, lr_schedule=config.ppo.lr_schedule,
        lr_progress=config.rules.lr_progress or "run", phase_limit=None if machine is None else machine.phase_limit,
    )  # fmt: skip


def gate(config: FishTrainConfig) -> PenaltyGate | None:
    """The gate on the density penalty, or None where it is off."""
    if not config.gate.is_on:
        return None
    lock = config.gate.lock_iteration if config.gate.lock_iteration > 0 else config.penalty.lock_until
    return PenaltyGate(config.gate, config.gate.allowance(len(config.phases)), lock)


def start_queue(config: FishTrainConfig) -> tuple[StartQueue, list[str]]:
    """Read all start files; the queue, and what compat only warns about."""
    from marlab.fish.starts.files import load_stages
    from marlab.fish.starts.queue import StartQueue

    stages, warnings = load_stages(config.starts.stages, lenient=config.compat)
    queue = StartQueue(
        stages, config.num_envs, mode=config.rules.tail_queue or "cyclic",
        advance=config.rules.tail_stage_advance or "iterations",
        override_probability=config.starts.override_probability,
    )  # fmt: skip
    return queue, warnings


def tail_warnings(config: FishTrainConfig) -> tuple[LowRatioWarning, LowRatioWarning]:
    """(watches `tail_queue_remaining_ratio`, watches `prewarm_override_ratio_256`)."""
    from marlab.fish.starts.queue import LowRatioWarning

    starts = config.starts
    override_limit = starts.override_warn_ratio if starts.stages else 0.0
    return (
        LowRatioWarning("tail_stage_warning", starts.stage_warn_ratio, starts.stage_warn_patience),
        LowRatioWarning("tail_override_warning", override_limit, starts.stage_warn_patience),
    )


def sea_config(config: FishTrainConfig, num_fish: int | None = None) -> SeaConfig:
    """The sea with room for the largest phase (or for `num_fish`) and every switch decided."""
    fish = num_fish or max(phase.num_fish for phase in config.phases)
    return decided(replace(config.sea, num_fish=fish), config.compat)


def hidden_sizes(config: FishTrainConfig) -> tuple[int, ...]:
    sizes = wholes(config.policy_hidden_sizes, "policy_hidden_sizes")
    if not sizes or not 1 <= min(sizes) <= max(sizes) <= WIDEST:
        raise UserError(f"policy_hidden_sizes is '{config.policy_hidden_sizes}', expected sizes such as 64,64.")
    return sizes
