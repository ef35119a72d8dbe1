"""How a training uses hard starts."""

from __future__ import annotations

from dataclasses import dataclass

from marlab.fish.starts.files import StageSpec, parse_stage_spec
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class HardStartConfig:
    """Stages of hard starts, and when to warn that few of them are used."""

    seed_stage_spec: str = ""
    """Stages of hard starts as iterations:file|type=T|label=L, separated by semicolons."""
    seed_replay_path: str = ""
    """One file for a single stage; used where tail_seed_stage_spec is empty."""
    seed_prewarm_iterations: int = 0
    """Iterations of that single stage."""
    override_probability: float = 0.5
    """Chance that a reset takes a hard start (tail_queue=cyclic)."""
    force_reset_steps: int = 0
    """Cut every training episode after so many steps; 0 plays all 500."""
    stage_warn_ratio: float = 0.0
    """Warn when at most this share of the hard starts is left; 0: never."""
    stage_warn_patience: int = 2
    """Iterations in a row before that warning."""
    override_warn_ratio: float = 0.25
    """Warn when at most this share of the last 256 resets took a hard start; 0: never."""

    def __post_init__(self) -> None:
        for name in ("override_probability", "stage_warn_ratio", "override_warn_ratio"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise UserError(f"tail_{name} is {getattr(self, name):g}, expected 0 to 1.")
        if self.stage_warn_patience < 1:
            raise UserError(f"tail_stage_warn_patience is {self.stage_warn_patience}, expected at least 1.")
        if self.seed_replay_path and not self.seed_stage_spec and self.seed_prewarm_iterations < 1:
            raise UserError("tail_seed_replay_path needs tail_seed_prewarm_iterations of at least 1.")
        _ = self.stages

    @property
    def stages(self) -> tuple[StageSpec, ...]:
        """The stages asked for; the older pair of flags makes a single one."""
        if self.seed_stage_spec:
            return parse_stage_spec(self.seed_stage_spec)
        if self.seed_replay_path:
            return (StageSpec(self.seed_prewarm_iterations, self.seed_replay_path, label="stage1"),)
        return ()
