"""Players by name, as every command that lets agents meet takes them.

A name is a rule (NS, MIX(0.3), ...), a reciprocator (GRIM(2), TFT), a stranger (NOISY(0.2,NS), KEEP), a run directory
of trained agents or a file of them, or agents that come with the package (hop_4x4), unless a file or run has that name;
RUN:3 picks one training seed, RUN?simulations=64 changes settings of planning agents, and NAME=RUN calls it NAME.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from torch import Tensor

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.rules import Game
from marlab.hunt.planner.agent import KIND as PLANNERS
from marlab.hunt.planner.agent import SHIPPED, HopAgent, HopAgents, load_hop
from marlab.hunt.planner.config import Engine
from marlab.hunt.players.characters import parse_character
from marlab.hunt.players.policy import Policy
from marlab.hunt.players.seats import Kind, Role
from marlab.hunt.players.strangers import policy_for
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.network import load_agents
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.lab.config import to_dict
from marlab.lab.door import shipped_file, shipped_names
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.identity import weights_digest
from marlab.lab.runs.records import find_run

_NAMED = re.compile(r"([A-Za-z][\w.-]*)=(.+)")
_SEEDED = re.compile(r"(.+?)(?::(\d+))?(?:\?(.*))?")


@dataclass(frozen=True)
class Agent:
    """Something that can be seated: which policy plays it, for each of its training seeds."""

    name: str
    kind: str  # rule, ppo, or the variant of a planner
    make: Callable[[Game, int], Policy]  # (game, one of `seeds`) -> who plays it in any seat
    together: Callable[[Game, Sequence[int]], Policy] | None = None  # the same for blocks of games of several seeds
    seeds: tuple[int, ...] = (0,)
    game: GameConfig | None = None  # the game it was trained in
    path: Path | None = None
    identity: str = ""  # everything its play depends on: the rule, or the weights with their seeds and settings
    text: str = ""  # how it was asked for; other processes find it by this

    @property
    def trained(self) -> bool:
        return self.path is not None


def find_agent(text: str) -> Agent:
    """An agent by its name on the command line."""
    named = _NAMED.fullmatch(text.strip())
    name, what = (named.group(1), named.group(2)) if named else (None, text.strip())
    if not what:
        raise UserError("An agent has an empty name, expected a rule such as NS or a run directory.")
    if re.match(r"[A-Z]+(\(|$)", what) and not Path(what).exists():
        return scripted(what, name)
    return replace(_trained(what, name), text=text)


def find_agents(texts: Sequence[str]) -> list[Agent]:
    """Several agents with different names."""
    agents = [find_agent(text) for text in texts]
    names = [agent.name for agent in agents]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"Two agents are called '{name}'; give one another name, such as other={name}.")
    return agents


def scripted(text: str, name: str | None = None) -> Agent:
    """A rule, a reciprocator, or another character without networks."""
    character = parse_character(text)
    if isinstance(character, Role) and character.kind == Kind.ND:
        raise UserError("ND plays the snowdrift game, which has no teams of stag and hare hunters.")
    rule, make = str(character), policy_for(character)
    return Agent(name or rule, "rule", lambda game, seed: make(game), identity=rule, text=rule)


def _trained(what: str, name: str | None) -> Agent:
    parts = _SEEDED.fullmatch(what)
    assert parts is not None  # anything with a letter matches
    text, seed, options = parts.group(1), parts.group(2), parts.group(3) or ""
    path, kind = find_trained(text)
    label = name or what.replace(text, path.stem if path.is_file() else path.name, 1)
    if kind == PPOTrainConfig.KIND:
        if options:
            raise UserError(f"'{what}' has settings, which only planning agents take; {path} holds PPO players.")
        return _ppo(path, label, None if seed is None else int(seed))
    return _planner(path, label, None if seed is None else int(seed), options)


def find_trained(text: str) -> tuple[Path, str]:
    """(where they are, the kind of training) of trained agents by a file, a run, or a shipped name; files and runs win
    over shipped names."""
    path = Path(text)
    if not path.is_file():
        try:
            info = find_run(text)
        except UserError as error:
            shipped = shipped_file(text, SHIPPED)
            if shipped is None:
                raise UserError(f"{error} Shipped agents: {', '.join(shipped_names(SHIPPED))}.") from None
            path = shipped
        else:
            if info.kind not in (PPOTrainConfig.KIND, HopTrainConfig.KIND):
                what = info.kind or "unknown"
                raise UserError(f"{info.path} holds no agents that play ({what}), expected a run of `hunt train`.")
            return info.path, info.kind
    return path, HopTrainConfig.KIND if load_checkpoint(path).kind == PLANNERS else PPOTrainConfig.KIND


def _planner(path: Path, name: str, seed: int | None, options: str) -> Agent:
    planners = Planners(load_hop(path), parse_settings(options))
    agents = planners.agents
    seeds = _seeds(agents.seeds, seed, path)
    world = agents.mind.world[0]
    goals = agents.mind.goals
    weights = [
        *agents.mind.state_dict().values(),
        *([] if world is None else world.state_dict().values()),
        goals.candidates,
        goals.evidence,
        goals.common,
    ]
    description = (
        f"{weights_digest(weights)}:{seeds}?{json.dumps(to_dict(agents.config))}{sorted(planners.settings.items())}"
    )
    identity = hashlib.sha256(description.encode()).hexdigest()[:16]
    return Agent(name, agents.config.variant, planners.make, planners.make, seeds, agents.game, path, identity)


def _ppo(path: Path, name: str, seed: int | None) -> Agent:
    agents = load_agents(path)
    seeds = _seeds(agents.seeds, seed, path)
    weights = weights_digest(tensor for net in agents.weights.values() for tensor in net.values())
    identity = f"{weights}:{seeds}"
    return Agent(name, "ppo", lambda game, s: agents.policy(game, s), None, seeds, agents.game, path, identity)


def _seeds(known: tuple[int, ...], wanted: int | None, path: Path) -> tuple[int, ...]:
    if wanted is not None and wanted not in known:
        raise UserError(f"There is no seed {wanted} in {path}, only {', '.join(map(str, known))}.")
    return known if wanted is None else (wanted,)


# --- planning agents with other settings ------------------------------------------------------------------------------


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


def _chance(text: str) -> float:
    number = float(text)
    if not 0 <= number < 1:
        raise ValueError
    return number


def _amount(text: str) -> float:
    number = float(text)
    if not 0 <= number < math.inf:
        raise ValueError
    return number


def _answer(text: str) -> bool:
    return {"yes": True, "no": False}[text]


def _engine(text: str) -> str:
    return {name: name for name in get_args(Engine)}[text]


SETTINGS: dict[str, tuple[Callable[[str], Any], str]] = {
    "simulations": (_whole, "a whole number from 1"),
    "trees": (_whole, "a whole number from 1"),
    "discount": (_share, "a number above 0 and at most 1"),
    "lasting": (_chance, "a number from 0 to below 1"),
    "followers": (_chance, "a number from 0 to below 1"),
    "loyalty": (_amount, "a number from 0"),
    "fates": (_answer, "yes or no"),
    "greedy": (_answer, "yes or no"),
    "intra": (_answer, "yes or no"),
    "inter": (_answer, "yes or no"),
    "engine": (_engine, "auto, tensors, native or graph"),
}
"""What may follow the ? of a run: how to read it, and how to say what is right."""


@dataclass(frozen=True)
class Planners:
    """The agents of a planning run with changed settings."""

    agents: HopAgents
    settings: Mapping[str, Any]

    def make(self, game: Game, seed: int | Sequence[int]) -> Policy:
        settings = dict(self.settings)
        belief = {key: settings.pop(key) for key in ("intra", "inter") if key in settings}
        agent = self.agents.agent(game, seed, **settings)
        if belief:
            agent.tracker = agent.mind.tracker(game, replace(agent.tracker.config, **belief), agent.hypotheses)
        return agent


def parse_settings(options: str) -> dict[str, Any]:
    """Options such as simulations=64&greedy=no."""
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


def restrict_to_seats(policy: Policy, seats: Tensor) -> None:
    """Let a planning agent decide only in its own seats [K, n] of the K games that it plays: planning is costly."""
    if isinstance(policy, HopAgent):
        policy._mine = seats
