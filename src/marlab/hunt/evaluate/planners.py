"""Planning agents for evaluations: seated where they are needed only, and with other settings than in training.

`RUN?simulations=200&discount=0.995` plays the agents of a run with those settings, which makes ablations of one
training: how much the simulations, the trees or the two kinds of belief are worth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from marlab.hunt.game.rules import Game
from marlab.hunt.planner.agent import HopAgent, HopAgents, load_hop
from marlab.hunt.players.policy import Policy
from marlab.lab.errors import UserError


def _whole(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0 < number <= 1:
        raise ValueError
    return number


def _answer(text: str) -> bool:
    return {"yes": True, "no": False}[text]


SETTINGS: dict[str, tuple[Callable[[str], Any], str]] = {
    "simulations": (_whole, "a whole number from 1"),
    "trees": (_whole, "a whole number from 1"),
    "discount": (_share, "a number above 0 and at most 1"),
    "greedy": (_answer, "yes or no"),
    "intra": (_answer, "yes or no"),
    "inter": (_answer, "yes or no"),
    "rollout": (_share, "a number above 0 and at most 1"),
}
"""What may follow the ? of a run: how to read it, and how to say what is right."""


@dataclass(frozen=True)
class Planners:
    """The agents of a planning run with changed settings."""

    agents: HopAgents
    settings: Mapping[str, Any]

    @property
    def uses(self) -> str:
        """What these agents know beyond learned models."""
        return "rule-based rollouts" if "rollout" in self.settings else ""

    def make(self, game: Game, seed: int | Sequence[int]) -> Policy:
        settings = dict(self.settings)
        belief = {key: settings.pop(key) for key in ("intra", "inter") if key in settings}
        rollout = settings.pop("rollout", None)
        agent = self.agents.agent(game, seed, record=game.device.type == "cuda", **settings)
        if belief:
            agent.tracker = agent.mind.tracker(game, replace(agent.tracker.config, **belief))
        if rollout is not None:
            agent.planner = agent.mind.planner(game, agent.planner.config, rollout)  # rollouts cannot be recorded
        return agent


def open_planners(path: Path, options: str) -> Planners:
    """The planning agents of a run directory, with options such as simulations=64&greedy=no."""
    return Planners(load_hop(path), parse_settings(options))


def parse_settings(options: str) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for part in filter(None, options.split("&")):
        key, _, text = part.partition("=")
        if key not in SETTINGS:
            raise UserError(f"'{key}' is not a setting of planning agents, expected {', '.join(SETTINGS)}.")
        read, right = SETTINGS[key]
        try:
            settings[key] = read(text)
        except (ValueError, KeyError):
            raise UserError(f"The setting {key} is '{text}', expected {right}.") from None
    return settings


def only_in(policy: Policy, seats: Tensor) -> None:
    """Let a planning agent decide only in its own seats [K, n] of the K games that it plays: planning is costly."""
    if isinstance(policy, HopAgent):
        policy._mine = seats
