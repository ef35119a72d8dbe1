"""Self-protection of a training: the best version is kept, a bad turn is taken back, harm raises an alarm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

ERRORS = 2.5
"""A fall of more standard errors than this below the best is taken back."""
SHORT, BANKRUPT, LEFT = 0.1, 0.02, 0.05
"""More than this above the rule: units a day not delivered, share of bankrupt seats, share of partners that leave."""
KL, ENTROPY = 0.1, 0.05
"""A mean divergence above this, or an entropy below this, is an alarm."""

Turn = Literal["better", "go on", "roll back", "stop"]


class Best(NamedTuple):
    """The best comparison so far."""

    step: int
    gain: float


class Guard:
    """Judges each comparison with the rule."""

    def __init__(self, patience: int, start: float = 0.0) -> None:
        """`start`: what the first version gains over the rule."""
        self.patience, self.best, self.waited = patience, Best(0, start), 0
        self.rollbacks = 0

    def judge(self, step: int, gain: float, error: float) -> Turn:
        """What to do after a comparison."""
        if gain > self.best.gain:
            self.best, self.waited = Best(step, gain), 0
            return "better"
        self.waited += 1
        if self.patience and self.waited >= self.patience:
            return "stop"
        if gain < self.best.gain - ERRORS * error:
            self.rollbacks += 1
            return "roll back"
        return "go on"

    def state_dict(self) -> dict[str, Any]:
        return {"best": tuple(self.best), "waited": self.waited, "rollbacks": self.rollbacks}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        step, gain = state["best"]
        self.best, self.waited, self.rollbacks = Best(int(step), float(gain)), state["waited"], state["rollbacks"]


def alarms(told: Mapping[str, float]) -> list[str]:
    """What in the metrics of a generation warns of harm, one sentence each."""
    found = []
    limits = (
        ("short", SHORT, "units a day are sold and not delivered"),
        ("bankrupt", BANKRUPT, "of the seats go bankrupt"),
        ("left", LEFT, "of the negotiations are left by the partner"),
    )
    for name, limit, what in limits:
        mine, rule = told.get(f"steer/{name}"), told.get(f"steer/rule_{name}")
        if mine is not None and rule is not None and mine > rule + limit:
            found.append(f"{mine:.3f} {what}, {rule:.3f} with the rule")
    if told.get("ppo/approx_kl", 0.0) > KL:
        found.append(f"the policy moves by {told['ppo/approx_kl']:.3f} (KL) in an update")
    if told.get("ppo/entropy", 1.0) < ENTROPY:
        found.append(f"the entropy has fallen to {told['ppo/entropy']:.3f}: little is tried out any more")
    return found
