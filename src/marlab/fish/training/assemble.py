"""From settings to working parts: switches, schedules, gate, hard starts, and the configs of simulator and learner."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from marlab.fish.schedule.curriculum import (
    AdaptiveBoost,
    BoostSchedule,
    EscapeBoost,
    PenaltySchedule,
    Phase,
    Schedules,
    parse_curriculum,
    parse_entropy_windows,
)
from marlab.fish.schedule.gate import GateConfig, PenaltyGate, TypeLimits
from marlab.fish.schedule.syntax import keyed, name, number, numbers, whole, wholes
from marlab.fish.sea.config import SeaConfig
from marlab.fish.starts.files import StageSpec, load_stages, parse_stage_spec
from marlab.fish.starts.queue import LowRatioWarning, StartQueue
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import PPOConfig

if TYPE_CHECKING:
    from marlab.fish.training.config import FishTrainConfig

COMPAT: dict[str, tuple[str, str]] = {
    # switch: (the original's reading, ours)
    "action_mode": ("broadcast", "per_fish"),
    "episode_end": ("terminated", "truncated"),  # the sea calls it time_limit
    "vision_reward": ("cliff", "continuous"),
    "heading_wrap": ("lost", "kept"),
    "override_preroll": ("rerandomised", "preserved"),
    "queue_on_phase_change": ("discarded", "carried"),
    "lr_progress": ("phase", "run"),
    "seed_scope": ("probes", "everything"),
    "stats_window": ("last_100", "iteration"),
    "adaptive_boost_signal": ("first_death_p10", "late_first_death_p10"),
    "best_checkpoint_rule": ("step_one", "survival"),
    "tail_queue": ("fifo", "cyclic"),
    "tail_stage_advance": ("consumption", "iterations"),
}


@dataclass(frozen=True)
class Switches:
    """The rules that the original got wrong, as this run reads them."""

    action_mode: Literal["per_fish", "broadcast"]
    episode_end: Literal["truncated", "terminated"]
    vision_reward: Literal["continuous", "cliff"]
    heading_wrap: Literal["kept", "lost"]
    override_preroll: Literal["preserved", "rerandomised"]
    queue_on_phase_change: Literal["carried", "discarded"]
    lr_progress: Literal["run", "phase"]
    seed_scope: Literal["everything", "probes"]
    stats_window: Literal["iteration", "last_100"]
    adaptive_boost_signal: Literal["late_first_death_p10", "first_death_p10"]
    best_checkpoint_rule: Literal["survival", "step_one"]
    tail_queue: Literal["cyclic", "fifo"]
    tail_stage_advance: Literal["iterations", "consumption"]


def switches_of(config: FishTrainConfig) -> Switches:
    """Each switch as it was set, or as `compat` says where it was left open."""
    values: dict[str, Any] = {}
    for switch, (original, ours) in COMPAT.items():
        chosen = getattr(config, switch)
        values[switch] = chosen if chosen is not None else (original if config.compat else ours)
    return Switches(**values)


def check(config: FishTrainConfig) -> None:
    """Refuse settings that cannot work together; every part says itself what is wrong with it."""
    sea_config(config)
    ppo_config(config)
    hidden_sizes(config)
    schedules(config)
    stage_specs(config)


# --- phases and schedules -----------------------------------------------------------------------------------


def phases_of(config: FishTrainConfig) -> tuple[Phase, ...]:
    return parse_curriculum(config.curriculum, config.total_iterations, config.num_fish)


def schedules(config: FishTrainConfig) -> Schedules:
    """All schedules of the run, held at the first gate stage's phase if there is a gate."""
    phases, gate = phases_of(config), gate_config(config)
    return Schedules(
        phases,
        penalty_schedule(config, phases),
        escape_boost(config, phases),
        entropy_base=config.ent_coef,
        entropy_windows=parse_entropy_windows(config.entropy_coef_schedule),
        learning_rate=config.learning_rate,
        lr_schedule=config.lr_schedule,
        lr_progress=switches_of(config).lr_progress,
        phase_limit=None if gate is None else gate.phase_allowance[0],
    )


def penalty_schedule(config: FishTrainConfig, phases: tuple[Phase, ...]) -> PenaltySchedule:
    targets = numbers(config.density_penalty_phase_targets, "density_penalty_phase_targets")
    plateaus = wholes(config.density_penalty_phase_plateaus, "density_penalty_phase_plateaus")
    return PenaltySchedule(
        phases=phases,
        base=config.density_penalty_coef,
        targets=targets or (config.density_penalty_coef,) * len(phases),
        ramp_phases=frozenset(wholes(config.density_penalty_ramp_phases, "density_penalty_ramp_phases")),
        plateaus=plateaus or (0,) * len(phases),
        lock_value=config.density_penalty_lock_value,
        lock_until=config.density_penalty_lock_until,
    )


def escape_boost(config: FishTrainConfig, phases: tuple[Phase, ...]) -> EscapeBoost:
    schedule = BoostSchedule(
        speed=config.escape_boost_speed,
        floor=config.escape_boost_floor_default,
        phase_speeds=_phase_speeds(config.escape_boost_phase_speeds, "escape_boost_phase_speeds", phases),
        phase_floors=_phase_speeds(config.escape_boost_phase_floors, "escape_boost_phase_floors", phases),
        penalty_caps=_speeds(keyed(config.escape_boost_penalty_caps, "escape_boost_penalty_caps", number)),
    )
    adaptive = AdaptiveBoost(
        window=config.adaptive_boost_window,
        lower_p10=config.adaptive_boost_lower_p10,
        upper_p10=config.adaptive_boost_upper_p10,
        low_speed=config.adaptive_boost_low_speed,
        high_speed=config.adaptive_boost_high_speed,
        min_iteration=config.adaptive_boost_min_iteration,
        stage_floors=_speeds(keyed(config.adaptive_boost_stage_floor, "adaptive_boost_stage_floor", whole)),
        use_median=config.adaptive_boost_use_median,
    )
    if adaptive.lower_p10 > adaptive.upper_p10:
        raise UserError("adaptive_boost_lower_p10 must not exceed adaptive_boost_upper_p10.")
    return EscapeBoost(schedule, None if config.disable_adaptive_boost else adaptive)


def _phase_speeds(text: str, flag: str, phases: tuple[Phase, ...]) -> dict[int, float]:
    speeds = keyed(text, flag, whole)
    for phase in speeds:
        if not 1 <= phase <= len(phases):
            raise UserError(f"{flag} names phase {phase}, but the curriculum has phases 1 to {len(phases)}.")
    return _speeds(speeds)


def _speeds(table: dict[Any, float]) -> dict[Any, float]:
    for key, speed in table.items():
        if not 0.0 <= speed <= 1.0:
            raise UserError(f"The escape boost for '{key:g}' is {speed:g}, expected a fraction from 0 to 1.")
    return table


# --- gate ---------------------------------------------------------------------------------------------------


def gate_config(config: FishTrainConfig) -> GateConfig | None:
    """The gate's limits, or None where it is off."""
    c = config
    if c.penalty_gate_required_successes <= 0:
        return None
    lock = c.penalty_gate_lock_iteration if c.penalty_gate_lock_iteration > 0 else c.density_penalty_lock_until
    return GateConfig(
        phase_allowance=wholes(c.penalty_gate_phase_allowance, "penalty_gate_phase_allowance"),
        phase_count=len(phases_of(c)),
        lock_until=lock,
        required_successes=c.penalty_gate_required_successes,
        freeze_iterations=c.penalty_gate_freeze_iterations,
        success_freeze_iterations=c.penalty_gate_success_freeze_iterations,
        success_step_one=c.penalty_gate_success_step_one,
        success_step_one_ratio=c.penalty_gate_success_step_one_ratio,
        success_early_death=c.penalty_gate_success_early_death,
        early_death_window=c.penalty_gate_success_early_death_window,
        success_p10=c.penalty_gate_success_p10,
        p10_window=c.penalty_gate_success_median_window,
        failure_p10=c.penalty_gate_failure_p10,
        failure_min_final=c.penalty_gate_failure_min_final,
        failure_tolerance=c.penalty_gate_failure_tolerance,
        by_type=_type_limits(c),
        rule=c.penalty_gate_rule,
        success_score=c.penalty_gate_success_score,
        failure_score=c.penalty_gate_failure_score,
        confidence=c.penalty_gate_confidence,
        confidence_level=c.penalty_gate_confidence_level,
        subtract_doomed=c.penalty_gate_subtract_doomed,
    )


def _type_limits(config: FishTrainConfig) -> TypeLimits:
    flags = {
        "step_one": "penalty_gate_success_step_one_by_stage",
        "early_death": "penalty_gate_success_early_death_by_stage",
        "early_death_window": "penalty_gate_success_early_death_window_by_stage",
        "p10": "penalty_gate_success_first_death_p10_by_stage",
        "p10_window": "penalty_gate_success_p10_median_window_by_stage",
        "failure_tolerance": "penalty_gate_failure_tolerance_by_stage",
    }
    return TypeLimits(**{limit: keyed(getattr(config, flag), flag, name) for limit, flag in flags.items()})


def gate(config: FishTrainConfig) -> PenaltyGate | None:
    limits = gate_config(config)
    return None if limits is None else PenaltyGate(limits)


# --- hard starts --------------------------------------------------------------------------------------------


def stage_specs(config: FishTrainConfig) -> tuple[StageSpec, ...]:
    """The stages asked for; the older pair of flags makes a single one."""
    if config.tail_seed_stage_spec:
        return parse_stage_spec(config.tail_seed_stage_spec)
    if config.tail_seed_replay_path:
        return (StageSpec(config.tail_seed_prewarm_iterations, config.tail_seed_replay_path, label="stage1"),)
    return ()


def start_queue(config: FishTrainConfig) -> tuple[StartQueue, list[str]]:
    """Read all start files; the queue, and what compat only warns about."""
    switches = switches_of(config)
    stages, warnings = load_stages(stage_specs(config), lenient=config.compat)
    queue = StartQueue(
        stages,
        config.num_envs,
        mode=switches.tail_queue,
        advance=switches.tail_stage_advance,
        override_probability=config.tail_override_probability,
    )
    return queue, warnings


def tail_warnings(config: FishTrainConfig) -> tuple[LowRatioWarning, LowRatioWarning]:
    """(watches `tail_queue_remaining_ratio`, watches `prewarm_override_ratio_256`)."""
    patience = config.tail_stage_warn_patience
    override_limit = config.tail_override_warn_ratio if stage_specs(config) else 0.0
    return (
        LowRatioWarning("tail_stage_warning", config.tail_stage_warn_ratio, patience),
        LowRatioWarning("tail_override_warning", override_limit, patience),
    )


# --- simulator and learner ----------------------------------------------------------------------------------


def sea_config(config: FishTrainConfig, num_fish: int | None = None) -> SeaConfig:
    """The sea with room for the largest phase (or for `num_fish`); equal names mean equal things."""
    switches = switches_of(config)
    values = {f.name: getattr(config, f.name) for f in fields(SeaConfig) if hasattr(config, f.name)}
    values |= {f.name: getattr(switches, f.name) for f in fields(SeaConfig) if hasattr(switches, f.name)}
    values["time_limit"] = switches.episode_end
    values["num_fish"] = num_fish or max(phase.num_fish for phase in phases_of(config))
    return SeaConfig(**values)


def hidden_sizes(config: FishTrainConfig) -> tuple[int, ...]:
    sizes = wholes(config.policy_hidden_sizes, "policy_hidden_sizes")
    if not sizes or min(sizes) < 1:
        raise UserError(f"policy_hidden_sizes is '{config.policy_hidden_sizes}', expected sizes such as 64,64.")
    return sizes


def ppo_config(config: FishTrainConfig) -> PPOConfig:
    """The learner; rate and entropy come from the schedules at every update."""
    return PPOConfig(
        n_steps=config.n_steps,
        n_epochs=config.n_epochs,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        value_coef=config.vf_coef,
        entropy_coef=config.ent_coef,
        max_grad_norm=config.max_grad_norm,
        target_kl=config.target_kl,
        compile=config.compile,
        cuda_graph=config.cuda_graph,
    )
