"""Every setting of `marlab fish train`, under the names of the v32 flags where they existed.

The defaults are v32's, with two exceptions: `total_iterations` is 60, because v32's own default of 64 does not fit
its default curriculum, and `seed` is 0, because an unseeded run cannot be repeated. A rule that the original got
wrong has two readings; `compat` turns all of them to the original's, the switches below it turn single ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from marlab.fish.schedule.curriculum import LrSchedule
from marlab.fish.schedule.gate import GateConfidence, GateRule
from marlab.fish.sea.config import V32_HEADING_BIAS, V32_SPEED_BIAS
from marlab.fish.starts.queue import QueueMode, StageAdvance
from marlab.fish.training import assemble
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import Activation

PRESETS = Path(__file__).parents[1] / "presets"


@dataclass(frozen=True)
class FishTrainConfig:
    """Train a shoal with one shared policy to survive the predator."""

    # --- length and learning ---
    total_iterations: int = 60
    """Iterations in all: a rollout and its update each."""
    num_envs: int = 128
    """Arenas that run side by side."""
    num_fish: int = 25
    """Fish per arena where the curriculum is empty."""
    curriculum: str = "15:12,20:14,25:8,25:8,25:10,25:4,25:4"
    """Phases as fish:iterations; the iterations must add up to total_iterations."""
    n_steps: int = 512
    """Steps per rollout and arena."""
    batch_size: int = 1024
    """Samples per gradient step."""
    n_epochs: int = 10
    """Passes over each rollout."""
    learning_rate: float = 3e-4
    """Adam's step size at the start."""
    lr_schedule: LrSchedule = "warm_cosine"
    """How the step size falls; warm_cosine falls to one half within a fifth, then slowly to nothing."""
    policy_hidden_sizes: str = "384,384"
    """Hidden layers of the policy and of the value network."""
    activation: Activation = "tanh"
    """Between the layers."""
    ent_coef: float = 0.02
    """Weight of the entropy bonus outside the windows of the schedule."""
    entropy_coef_schedule: str = "16-24:0.03,25-32:0.02"
    """Windows of iterations with another entropy weight: start-end:value, start+:value or n:value."""
    gamma: float = 0.99
    """Discount per step."""
    gae_lambda: float = 0.95
    """Mixing of short and long returns in the advantage."""
    clip_range: float = 0.2
    """How far the probability ratio may move before it stops paying."""
    vf_coef: float = 0.5
    """Weight of the value loss."""
    max_grad_norm: float = 0.5
    """Gradients longer than this are scaled down."""
    target_kl: float | None = None
    """Stop an update when the mean KL divergence passes 1.5 times this; none never stops."""
    learning_reward_scale: float = 1.0
    """Factor on the reward that the learner sees; reports always show the unscaled reward."""

    # --- reproducibility and machine ---
    seed: int = 0
    """Seed of everything random in the run (with seed_scope=probes only of the probes)."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""
    threads: int = 0
    """CPU threads; 0 leaves it to torch. One thread repeats a run bit for bit."""
    compile: bool = False
    """Fuse simulator and networks with torch.compile: slow to start, faster to run."""
    cuda_graph: bool = False
    """On CUDA, record a gradient step once and replay it."""

    # --- compat ---
    compat: bool = False
    """Repeat the original bug for bug wherever a switch below is not set."""
    action_mode: Literal["per_fish", "broadcast"] | None = None
    """Every fish acts for itself, or (compat) one action is copied to all of them."""
    episode_end: Literal["truncated", "terminated"] | None = None
    """Step 500 cuts an episode off, or (compat) counts as the death of all who live."""
    vision_reward: Literal["continuous", "cliff"] | None = None
    """Reward far from the predator: no less than near it, or (compat) half of it."""
    heading_wrap: Literal["kept", "lost"] | None = None
    """Heading wedges that end at 360 degrees are kept, or (compat) lost."""
    override_preroll: Literal["preserved", "rerandomised"] | None = None
    """A hard start is met as written, or (compat) blurred by the pre-roll."""
    queue_on_phase_change: Literal["carried", "discarded"] | None = None
    """Hard starts are carried into the next phase, or (compat) thrown away."""
    lr_progress: Literal["run", "phase"] | None = None
    """The learning rate falls over the whole run, or (compat) once per phase."""
    seed_scope: Literal["everything", "probes"] | None = None
    """What the seed fixes: everything, or (compat) only the probes."""
    stats_window: Literal["iteration", "last_100"] | None = None
    """Training statistics over the iteration's finished episodes, or (compat) over the last 100 of any phase."""
    adaptive_boost_signal: Literal["late_first_death_p10", "first_death_p10"] | None = None
    """What the adaptive boost listens to: first deaths after step one, or (compat) all of them; deaths at step one
    keep that signal constant."""
    best_checkpoint_rule: Literal["survival", "step_one"] | None = None
    """The best probe has the highest survival, or (compat) the fewest step-one deaths."""
    tail_queue: QueueMode | None = None
    """Hard starts come with a probability and are refilled (cyclic), or (compat) at every reset until none is left."""
    tail_stage_advance: StageAdvance | None = None
    """Stages of hard starts follow the iterations, or (compat) the next begins when one is used up."""

    # --- the sea ---
    include_neighbor_features: bool = True
    """Give each fish seven numbers about its neighbours: 18 inputs instead of 11."""
    neighbor_radius: float = 3.0
    """A living fish this near (m) is a neighbour."""
    neighbor_average_count: int = 6
    """How many nearest neighbours the mean offset is taken over, and the unit of crowding."""
    initial_escape_boost: bool = True
    """Start every fish swimming outwards."""
    escape_boost_speed: float = 0.75
    """Speed of that start as a fraction of the fish's top speed, where a phase names none."""
    escape_boost_floor_default: float = 0.75
    """The boost never falls below this, where a phase names no floor."""
    escape_boost_phase_speeds: str = "3:0.76,4:0.78,5:0.82,6:0.82,7:0.82"
    """Boost per phase as phase:speed."""
    escape_boost_phase_floors: str = "3:0.76,4:0.78,5:0.80,6:0.80,7:0.80"
    """Lowest boost per phase as phase:speed."""
    escape_boost_penalty_caps: str = "0.05:0.8"
    """Highest boost from a density penalty on, as penalty:speed."""
    escape_jitter_std: float = 0.35
    """Standard deviation of the start's direction (rad)."""
    adaptive_boost_window: int = 4
    """Iterations whose first deaths the adaptive boost looks at."""
    adaptive_boost_lower_p10: float = 12.0
    """First deaths before this step ask for the low speed."""
    adaptive_boost_upper_p10: float = 18.0
    """First deaths after this step ask for the high speed."""
    adaptive_boost_low_speed: float = 0.76
    """Boost while fish die early."""
    adaptive_boost_high_speed: float = 0.80
    """Boost while fish live long."""
    adaptive_boost_min_iteration: int = 12
    """The adaptive boost acts from this iteration on."""
    adaptive_boost_stage_floor: str = ""
    """Lowest boost per gate stage (from 0) as stage:speed."""
    adaptive_boost_use_median: bool = True
    """Judge the window by its median; off: by its mean."""
    disable_adaptive_boost: bool = False
    """Keep the boost at its phase's value."""
    obs_sampling: Literal["round_robin", "random"] = "round_robin"
    """Which fish's eyes the one policy sees with in broadcast mode."""
    divergence_reward_coef: float = 0.0
    """Weight of the reward for neighbours that move away."""
    density_target: float = 0.4
    """Crowding (neighbours / neighbor_average_count) that is free of penalty."""
    predator_spawn_jitter_radius: float = 1.6
    """The predator starts within this distance (m) of the centre."""
    predator_pre_roll_steps: int = 16
    """Predator steps played before the fish may move."""
    predator_pre_roll_angle_jitter: float = 0.3
    """Largest random turn (rad) before each pre-roll step."""
    predator_pre_roll_speed_jitter: float = 0.2
    """Largest random relative change of speed before each pre-roll step."""
    predator_heading_bias: str = V32_HEADING_BIAS
    """Weighted wedges of the predator's first heading, start-end:weight in degrees."""
    predator_pre_roll_speed_bias: str = V32_SPEED_BIAS
    """Weighted bins of the speed set before each pre-roll step, low-high:weight in m/s."""

    # --- density penalty and its gate ---
    density_penalty_coef: float = 0.0
    """Penalty for crowding before the first phase; a ramp in phase 1 starts from it."""
    density_penalty_phase_targets: str = "0.0,0.02,0.04,0.05,0.055,0.06,0.065"
    """Penalty per phase; empty: density_penalty_coef in every phase."""
    density_penalty_ramp_phases: str = "6,7"
    """Phases (from 1) that approach their target step by step."""
    density_penalty_phase_plateaus: str = "0,0,6,6,4,0,0"
    """Iterations a ramp waits before it rises, per phase; empty: none."""
    density_penalty_lock_value: float = 0.04
    """The penalty stays at or below this while the lock holds."""
    density_penalty_lock_until: int = 28
    """Last iteration of the lock; 0 or less: no lock."""
    penalty_gate_phase_allowance: str = "4,5,6"
    """Last phase whose penalty may act, per gate stage."""
    penalty_gate_required_successes: int = 1
    """Successful probes in a row that move the gate up; 0 or less: no gate."""
    penalty_gate_freeze_iterations: int = 4
    """Rest after a move or a failure."""
    penalty_gate_success_freeze_iterations: int = 1
    """Rest after a success that does not move the gate yet."""
    penalty_gate_success_step_one: int = 7
    """A success has at most this many step-one deaths; a negative number asks for nothing."""
    penalty_gate_success_step_one_ratio: float = 0.0
    """A success has at most this share of step-one deaths; 0 asks for nothing."""
    penalty_gate_success_early_death: float = 0.09
    """A success has at most this share of deaths before step 100."""
    penalty_gate_success_early_death_window: int = 1
    """Judge early deaths by the median of so many probes."""
    penalty_gate_success_p10: float = 120.0
    """A success has a 10th percentile of death steps of at least this; 0 or less asks for nothing."""
    penalty_gate_success_median_window: int = 1
    """Judge that percentile by the median of so many probes."""
    penalty_gate_failure_p10: float = 95.0
    """A probe fails below this 10th percentile of death steps."""
    penalty_gate_failure_min_final: float = 0.5
    """A probe fails when its worst episode keeps fewer than this share of the fish."""
    penalty_gate_failure_tolerance: int = 2
    """Failures in a row that move the gate down."""
    penalty_gate_lock_iteration: int = -1
    """The gate does not move up before this iteration has passed; 0 or less: density_penalty_lock_until."""
    penalty_gate_success_step_one_by_stage: str = ""
    """Other step-one counts while a type of hard start is active, as type:count such as ne:18,main:45."""
    penalty_gate_success_early_death_by_stage: str = ""
    """Other early-death shares per type of hard start."""
    penalty_gate_success_early_death_window_by_stage: str = ""
    """Other early-death windows per type of hard start."""
    penalty_gate_success_first_death_p10_by_stage: str = ""
    """Other percentiles per type of hard start."""
    penalty_gate_success_p10_median_window_by_stage: str = ""
    """Other percentile windows per type of hard start."""
    penalty_gate_failure_tolerance_by_stage: str = ""
    """Other failure tolerances per type of hard start."""
    penalty_gate_rule: GateRule = "conditions"
    """Judge probes by the conditions above, or by one score (saved share of the fish) with two thresholds."""
    penalty_gate_success_score: float = 0.97
    """Score from which a probe is a success."""
    penalty_gate_failure_score: float = 0.85
    """Score below which a probe is a failure; in between nothing changes."""
    penalty_gate_confidence: GateConfidence = "none"
    """Compare shares with their limits by this one-sided confidence bound instead of the plain share."""
    penalty_gate_confidence_level: float = 0.8
    """Level of that bound."""
    penalty_gate_subtract_doomed: bool = False
    """Leave fish that no action could save at step one out of the gate's shares."""

    # --- hard starts ---
    tail_seed_stage_spec: str = ""
    """Stages of hard starts as iterations:file|type=T|label=L, separated by semicolons."""
    tail_seed_replay_path: str = ""
    """One file for a single stage; used where tail_seed_stage_spec is empty."""
    tail_seed_prewarm_iterations: int = 0
    """Iterations of that single stage."""
    tail_override_probability: float = 0.5
    """Chance that a reset takes a hard start (tail_queue=cyclic)."""
    tail_force_reset_steps: int = 0
    """Cut every training episode after so many steps; 0 plays all 500."""
    tail_stage_warn_ratio: float = 0.0
    """Warn when at most this share of the hard starts is left; 0: never."""
    tail_stage_warn_patience: int = 2
    """Iterations in a row before that warning."""
    tail_override_warn_ratio: float = 0.25
    """Warn when at most this share of the last 256 resets took a hard start; 0: never."""

    # --- probes, evaluation, films ---
    multi_eval_interval: int = 16
    """Probe every so many iterations; 0 or less: never."""
    multi_eval_probe_episodes: int = 12
    """Episodes per probe, on new arenas each time."""
    multi_eval_fixed_episodes: int = 0
    """Further episodes per probe on arenas that stay the same for the whole run."""
    multi_eval_seed_base: int | None = None
    """Seed of the probes' arenas; none: the seed of the run."""
    eval_multi_fish: int = 25
    """Fish per arena in probes and in the final evaluation; 1 or less: no probes."""
    eval_multi_episodes: int = 48
    """Episodes of the final evaluation."""
    eval_episodes: int = 5
    """Episodes of the final evaluation in broadcast mode."""
    final_eval_seed_base: int | None = None
    """Seed of the final evaluation's arenas; none: derived from the seed of the run."""
    best_checkpoint_eval_episodes: int = 32
    """Episodes on which the best checkpoint is looked at again."""
    best_checkpoint_max_step_one: int = 8
    """A best checkpoint has at most this many step-one deaths in its probe; 0 or less asks for nothing."""
    best_checkpoint_max_early_death: float = 0.1
    """A best checkpoint has at most this share of deaths before step 100; 0 or less asks for nothing."""
    skip_final_eval: bool = False
    """Leave final evaluation and its film to `marlab fish eval`."""
    checkpoint_interval: int = 5
    """Save a model every so many iterations."""
    tail_replay_count: int = 0
    """Film so many of a probe's worst episodes."""
    video_num_fish: int = 32
    """Fish in the final film; 0 or less: no film."""
    video_max_steps: int = 500
    """Longest film in steps."""
    video_fps: int = 20
    """Frames per second of the films."""

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if getattr(self, name) <= 0:
                raise UserError(f"{name} is {getattr(self, name)}, expected more than 0.")
        for name in _SHARES:
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise UserError(f"{name} is {getattr(self, name):g}, expected 0 to 1.")
        if self.compat and self.num_envs < 64:
            raise UserError(f"num_envs is {self.num_envs}, but compat repeats a trainer that needs at least 64.")
        if self.video_max_steps > 500:
            raise UserError(f"video_max_steps is {self.video_max_steps}, but an episode ends after 500 steps.")
        if self.tail_seed_replay_path and not self.tail_seed_stage_spec and self.tail_seed_prewarm_iterations < 1:
            raise UserError("tail_seed_replay_path needs tail_seed_prewarm_iterations of at least 1.")
        assemble.check(self)

    @property
    def switches(self) -> assemble.Switches:
        """The compat switches with every open one decided."""
        return assemble.switches_of(self)


_POSITIVE = (
    "total_iterations", "num_envs", "num_fish", "n_steps", "batch_size", "n_epochs", "learning_rate",
    "learning_reward_scale", "checkpoint_interval", "multi_eval_probe_episodes", "eval_multi_episodes",
    "best_checkpoint_eval_episodes", "adaptive_boost_window", "tail_stage_warn_patience", "video_max_steps",
    "video_fps",
)  # fmt: skip
_SHARES = (
    "tail_override_probability", "tail_stage_warn_ratio", "tail_override_warn_ratio", "penalty_gate_failure_min_final",
    "penalty_gate_success_early_death", "penalty_gate_success_step_one_ratio", "penalty_gate_success_score",
    "penalty_gate_failure_score", "escape_boost_speed", "escape_boost_floor_default",
)  # fmt: skip

OLD_FLAGS: dict[str, list[str]] = {
    "run_name": ["--name"],
    "no_neighbor_features": ["--no-include-neighbor-features"],
    "adaptive_boost_use_mean": ["--no-adaptive-boost-use-median"],
}
"""Old flag without dashes -> today's words. `--no_initial_escape_boost` and the like are today's flags already."""
