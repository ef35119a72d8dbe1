"""What every module must reach before the next one may build on it: the limits of trainings and diagnoses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Gates:
    """What every module must reach before the next one may build on it."""

    replay: float = 1.0
    """Data: share of rows that a replay of the game reproduces."""
    labels: float = 1.0
    """Data: share of rows whose action is legal, its player's own, and possible for the player's type."""
    rows_after_exit: float = 0.0
    """Data: share of the rows learnt from whose player had left."""
    overfit: float = 0.01
    """MOA: nats above the label noise at which one batch must be known by heart."""
    free_excess: float = 0.15
    """MOA: nats above the exact prediction of a player of unknown type, without any goal."""
    top1: float = 0.62
    """MOA: share of right first guesses on validation episodes."""
    top3: float = 0.88
    """MOA: share of actions among the first three guesses."""
    top1_typed: float = 0.67
    """MOA: top1 where the true type is given."""
    top3_typed: float = 0.90
    """MOA: top3 where the true type is given."""
    ece: float = 0.05
    """MOA: expected calibration error where the true type is given."""
    cross_entropy: float = 0.75
    """MOA: nats where goals come from the history."""
    probe_gain: float = 0.10
    """Goal VAE: how much better a player's type is read from the code than from the situation, at t = 4."""
    reconstruction: float = 0.5
    """Goal VAE: reconstruction error as a share of that of the mean situation."""
    active_units: float = 2
    """Goal VAE: dimensions of the code that are in use."""
    belief_step: float = 0.90
    """Belief: probability of the true type at t = 4."""
    belief_prior: float = 0.85
    """Belief: probability of the true type before the first step, after ten episodes."""
    belief_learned: float = 0.83
    """Belief: as belief_step with what the MOA predicts instead of the exact rules, as a share of what the exact rules
    know beyond an even guess: 0.90 on msh_4x4, where they reach 0.98."""
    teleport: float = 0.001
    """World model: share of players who jump by two cells or more."""
    vanish: float = 0.005
    """World model: share of present players who are not shown."""
    position: float = 0.995
    """World model: share of players on the right cell."""
    position_5: float = 0.97
    """World model: the same after five imagined steps."""
    obs_mse: float = 7e-4
    """World model: mean squared error of unrounded cells."""
    reward_mse: float = 1e-3
    """World model: mean squared error of rewards."""
    reward_share: float = 2.5 / 3.0
    """PPO: mean reward of all players as a share of the team optimum (2.5 of 3 in msh_4x4)."""
    seat_spread: float = 0.3
    """PPO: best minus worst seat, mean over seeds, in units of msh_4x4's optimum of 3."""
    value_ratio: float = 3.0
    """PPO: largest over smallest value error of the seats."""
    reply_share: float = 0.9
    """PPO among rule-based players: its reward as a share of the best rule-based reply."""
    online_excess: float = 0.5
    """MOA in training: nats above the players' own randomness in the last tenth of a training. Plans differ from
    search to search, which that floor does not know, so against planners the excess does not reach 0."""
    improved: float = 0.99
    """Planner: share of decisions whose plan is no worse than the prior by the planner's own values."""
    scaled_spread: float = 1.0
    """Planner: beta times the normalised spread of Q; below it the plan is as good as uniform."""
    behaviour_entropy: float = 1.2
    """Planner: nats of what players act by; random players have about 1.45."""
    self_play_share: float = 2.6 / 3.0
    """Self-play: mean reward of all players as a share of the team optimum (2.6 of 3 in msh_4x4)."""
    stayed: float = 0.95
    """Self-play: the last tenth of a training as a share of the highest reward it had reached."""


SINGLE_EXCESS = 0.15
"""MOA in a training beside rule-based players: nats above their own randomness, per player."""
TOP1_WITHOUT_GOALS = 0.42
"""MOA without goals: nobody can know whether a player is after the stag, the best possible top-1 is about 0.46."""
FEW_SHOT_FLOORS = {"3NH": 0.80, "3NS": 2.2, "3RAND": 1.8, "NS+2NH": 4.3}
"""Few-shot adaptation: mean focal reward to reach among each team in the default game."""


class Gate(NamedTuple):
    """A figure and what it must reach."""

    name: str
    value: float
    limit: float
    at_least: bool

    @property
    def passed(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def text(self) -> str:
        word = "at least" if self.at_least else "at most"
        return f"{self.name} is {self.value:.4g}, expected {word} {self.limit:g}"


def least(name: str, value: float, limit: float) -> Gate:
    return Gate(name, value, limit, True)


def most(name: str, value: float, limit: float) -> Gate:
    return Gate(name, value, limit, False)
