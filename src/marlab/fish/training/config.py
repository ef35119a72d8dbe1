"""Every setting of `marlab fish train`: the configs of sea, learner, schedules, starts and probes, and what joins them.

Outside of Python the groups stand flat, under the names of the v32 flags where those existed. The defaults are v32's,
with one exception: `seed` is 0, because an unseeded run cannot be repeated. A rule that the original got wrong has two
readings; `compat` turns all of them to the original's, single switches (of `Switches` and `SeaConfig`) win over it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from marlab.fish.measure.config import MeasureConfig
from marlab.fish.schedule.boost import AdaptiveBoost, BoostConfig
from marlab.fish.schedule.curriculum import PenaltyConfig
from marlab.fish.schedule.gate import GateConfig
from marlab.fish.schedule.phases import Phase, parse_curriculum
from marlab.fish.sea.config import SeaConfig, check_switches, decided
from marlab.fish.starts.files import HardStartConfig
from marlab.fish.training import assemble
from marlab.lab.checks import positive, share
from marlab.lab.config import group
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import Activation, PPOConfig
from marlab.lab.runs.judged import Judged


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
    probe_time: Literal["after_update", "before_update"] | None = None
    """A probe plays the policy that the iteration leaves behind, or (compat) the one it began with."""
    stats_window: Literal["iteration", "last_100"] | None = None
    """Training statistics over the iteration's finished episodes, or (compat) over the latest iterations that
    hold 100 of them, of any phase."""
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


PRESETS = Path(__file__).parents[1] / "presets"
V32_PPO = PPOConfig(n_steps=512, batch_size=1024, n_epochs=10, lr_schedule="warm_cosine", entropy_coef=0.02)


@dataclass(frozen=True)
class FishTrainConfig:
    """Train a shoal with one shared policy to survive the predator."""

    KIND: ClassVar[str] = "fish/ppo"  # in run.json, so that other commands know what the run holds
    COMMON: ClassVar = (
        "total_iterations", "num_envs", "curriculum", "policy_hidden_sizes", "seed", "device", "compat",
        "learning_rate", "n_steps", "batch_size", "n_epochs", "entropy_coef", "num_fish", "include_neighbor_features",
        "penalty_gate_required_successes", "tail_seed_stage_spec", "multi_eval_interval", "eval_multi_fish",
        "eval_multi_episodes", "skip_final_eval",
    )  # fmt: skip
    judged_by: ClassVar = Judged(
        ("best model: survival", "final model: survival", "last probe survival", "training survival"),
        "custom/avg_survival_rate",
    )
    OLD_NAMES: ClassVar = {"ent_coef": "entropy_coef", "vf_coef": "value_coef"}
    TITLE: ClassVar = "the training"

    total_iterations: int | None = None
    """Iterations in all, a rollout and its update each; none: as many as the curriculum has."""
    num_envs: int = 128
    """Arenas that run side by side."""
    curriculum: str = "15:12,20:14,25:8,25:8,25:10,25:4,25:4"
    """Phases as fish:iterations; lists with one entry per phase follow it unless they are given too."""
    policy_hidden_sizes: str = "384,384"
    """Hidden layers of the policy and of the value network."""
    activation: Activation = "tanh"
    """Between the layers."""
    policy_frame: Literal["tank", "own"] = "tank"
    """How the networks see directions: as they are in the tank, or from the fish, its own heading always ahead."""
    entropy_coef_schedule: str = "16-24:0.03,25-32:0.02"
    """Windows of iterations with another entropy weight: start-end:value, start+:value or n:value."""
    learning_reward_scale: float = 1.0
    """Factor on the reward that the learner sees; reports always show the unscaled reward."""
    learning_reward: Literal["shaped", "survival"] = "shaped"
    """What the learner is paid: the sea's reward, or nothing but -1 for its death."""
    learning_team: float = 0.0
    """With learning_reward=survival, what the death of any other fish of its arena costs a fish."""
    staggered: bool = False
    """Let the first episodes end at random times, so that later rollouts see all parts of an episode at once."""
    seed: int = 0
    """Seed of everything random in the run (with seed_scope=probes only of the probes)."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""
    checkpoint_interval: int = 5
    """Save a model every so many iterations."""
    obs_sampling: Literal["round_robin", "random"] = "round_robin"
    """Which fish's eyes the one policy sees with in broadcast mode."""
    disable_adaptive_boost: bool = False
    """Keep the boost at its phase's value."""
    compat: bool = False
    """Repeat the original bug for bug wherever a switch is not set."""

    ppo: PPOConfig = group(lambda: V32_PPO, "learning")
    sea: SeaConfig = group(SeaConfig, "the sea")
    boost: BoostConfig = group(BoostConfig, "escape boost", prefix="escape_boost_")
    adaptive_boost: AdaptiveBoost = group(AdaptiveBoost, "adaptive escape boost", prefix="adaptive_boost_")
    penalty: PenaltyConfig = group(PenaltyConfig, "density penalty", prefix="density_penalty_")
    gate: GateConfig = group(GateConfig, "gate on the density penalty", prefix="penalty_gate_")
    starts: HardStartConfig = group(HardStartConfig, "hard starts", prefix="tail_")
    measure: MeasureConfig = group(MeasureConfig, "probes, evaluation, films")
    switches: Switches = group(Switches, "switches between our rules and the original's")

    def __post_init__(self) -> None:
        positive(self, "num_envs", "learning_reward_scale", "checkpoint_interval")
        share(self, "learning_team")
        if self.learning_team and self.learning_reward != "survival":
            raise UserError("learning_team is a part of learning_reward=survival; set that too, or leave it 0.")
        if self.total_iterations is not None:
            positive(self, "total_iterations")
        if self.compat and self.num_envs < 64:
            raise UserError(f"num_envs is {self.num_envs}, but compat repeats a trainer that needs at least 64.")
        assemble.check(self)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        return parse_curriculum(self.curriculum, self.total_iterations, self.sea.num_fish)

    @property
    def iterations(self) -> int:
        """Iterations in all."""
        return self.phases[-1].last

    @property
    def rules(self) -> Switches:
        """The switches with every open one decided."""
        return decided(self.switches, self.compat)


OLD_FLAGS: dict[str, list[str]] = {
    "run_name": ["--name"],
    "no_neighbor_features": ["--no-include-neighbor-features"],
    "adaptive_boost_use_mean": ["--no-adaptive-boost-use-median"],
    **{old: [f"--{new.replace('_', '-')}"] for old, new in FishTrainConfig.OLD_NAMES.items()},
}
"""Old flag without dashes -> today's words. `--no_initial_escape_boost` and the like are today's flags already."""

IGNORED_FLAGS = {
    "eval_episodes": "the final evaluation plays --eval-multi-episodes episodes in every mode",
    "best_checkpoint_eval_episodes": "the best checkpoint is evaluated like the last, on --eval-multi-episodes",
}
"""Flags of v32 that change nothing here, and why."""
