"""Which worlds a tournament plays: two designs that can tell agents apart.

rotation   All agents share every world. Within a config they rotate over its factories until everybody has sat
           everywhere; the order around the table is drawn anew for every config, because a fixed one decides who sits
           behind whom and so favours somebody.
seats      The same worlds again and again with one agent replaced: `replace` sits in a population that rotates, and
           every agent under test plays each of its seats against the same neighbours and random numbers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from marlab.lab.checks import at_least, positive
from marlab.lab.errors import UserError
from marlab.market.collect.plan import Market, check_range, draw_market
from marlab.market.simulator.experts import FILLERS, find_player, split_alias
from marlab.market.simulator.worlds import WorldSpec

OFFICIAL = "official"
Design = Literal["rotation", "seats"]
Level = Literal["first", "middle", "last"]


@dataclass(frozen=True)
class PlayConfig:
    """Who plays, in which worlds, and how much of it."""

    agents: tuple[str, ...] = ()
    """Agents under test: Name, module:Class or Name(key=value, ...); mine=my_agent:Mine names it `mine` in tables."""
    design: Design = "rotation"
    """rotation: all agents in every world; seats: each agent in the seats of `replace`, among `population`."""
    replace: str | None = None
    """The agent whose seats are played (design seats)."""
    population: tuple[str, ...] = ()
    """The agents that keep their seats (design seats)."""
    baseline: str | None = None
    """The agent that all others are compared with; default: the replaced one, or the first of `agents`."""
    configs: int = 4
    """Different markets; with --until-significant the most that are played."""
    first_config: int = 0
    """Number of the first market; other numbers are other markets."""
    shapes: tuple[str, ...] = ("2x6", "3x4", "4x3")
    """Levels x factories of a level, in turn from config to config; or `official`: 2 to 4 levels with fillers."""
    levels: tuple[Level, ...] = ("first", "middle", "last")
    """Levels whose seats are played (design seats); the worlds are those of a tournament with all levels."""
    turns: int | None = None
    """Worlds per config in each of which everybody moves on by one seat; default: a full rotation."""
    days: tuple[int, int] = (50, 50)
    """Fewest and most days of a world."""
    processes: tuple[int, int] = (2, 4)
    """Fewest and most levels of worlds of official shape."""
    fillers: tuple[str, ...] = field(default=FILLERS)
    """Agents that take the factories which nobody under test or in the population takes."""
    until_significant: bool = False
    """Stop as soon as the comparison is decided, by a bound that allows looking after every config."""
    alpha: float = 0.05
    """Error probability of --until-significant, over all comparisons and looks together."""
    trials: bool = True
    """Let every agent play a tiny world first and leave out those that crash."""
    competitors: int = 4
    """Agents under test that share a world of --official; the league draws 2 to 4."""
    world_timeout: float = 1800.0
    """Seconds after which a world is ended and counted as failed."""
    seed: int = 42
    """Seed of everything random."""

    def __post_init__(self) -> None:
        at_least(self, 1, "configs", *(("turns",) if self.turns is not None else ()))
        at_least(self, 0, "first_config")
        at_least(self, 2, "competitors")
        positive(self, "world_timeout")
        check_range("days", self.days, 5)
        check_range("processes", self.processes, 2)
        if not 0 < self.alpha < 1:
            raise UserError(f"alpha is {self.alpha:g}, expected a number between 0 and 1.")
        if not self.shapes or not self.fillers or not self.levels:
            raise UserError("shapes, fillers and levels must not be empty.")

    def check_agents(self) -> None:
        """Refuse agents that do not fit the design."""
        if self.design == "seats":
            if self.replace is None:
                raise UserError("The design seats needs --replace: the agent whose seats the others play.")
            if not self.agents:
                raise UserError("The design seats needs --agents: who plays in the seats of the replaced agent.")
            if self.baseline is not None and self.against not in (*self.agents, self.replace):
                raise UserError(f"baseline is {self.baseline}, expected the replaced agent or one of --agents.")
        else:
            if self.replace is not None or self.population or len(set(self.levels)) < 3:
                raise UserError("--replace, --population and --levels belong to --design seats.")
            if len(self.agents) < 2:
                raise UserError(f"A rotation needs at least two --agents, not {len(self.agents)}.")
            if self.baseline is not None and self.against not in self.agents:
                raise UserError(f"baseline is {self.baseline}, which is not one of --agents.")
        tested = (*self.agents, *((self.replace,) if self.replace else ()))
        rows = [label(name) for name in tested]
        twice = [name for name in rows if rows.count(name) > 1]
        if twice:
            raise UserError(
                f"{twice[0]} is named twice; every agent under test needs its own row: name it, as in mine=AGENT."
            )

    @property
    def against(self) -> str:
        """Whom the others are compared with."""
        if self.baseline is None:
            return self.replace or self.agents[0]
        return next((name for name in self.tested if self.baseline in (name, label(name))), self.baseline)

    @property
    def tested(self) -> tuple[str, ...]:
        """The rows of the tables."""
        return self.agents if self.replace is None else (self.replace, *self.agents)

    @property
    def everybody(self) -> tuple[str, ...]:
        """All agents that are asked for, each once."""
        return tuple(dict.fromkeys((*self.tested, *self.population)))


class Game(NamedTuple):
    """A world of the tournament."""

    spec: WorldSpec
    config: int
    turn: int
    player: str | None  # seats: who plays the seat; rotation: None
    tested: tuple[int, ...]  # factories whose score counts


class Arena:
    """The games of a tournament, config by config. `left_out`: agents that cannot play; fillers take their seats."""

    def __init__(self, config: PlayConfig, left_out: Sequence[str] = ()) -> None:
        self.config = config
        config.check_agents()
        for name in (*config.everybody, *config.fillers):
            find_player(name)  # an unknown name is told before anything is played
        self.left_out = tuple(left_out)
        self.players = [name for name in config.agents if name not in left_out]
        seated = config.agents if config.replace is None else (config.replace, *config.population)
        self._seated = [name for name in seated if name not in left_out]
        for shape in config.shapes:
            factories = _factories(shape)
            if factories is not None and sum(factories) < len(seated):
                raise UserError(f"The shape {shape} has {sum(factories)} factories, too few for {len(seated)} agents.")
            if config.days[0] <= (len(factories) if factories is not None else config.processes[1]):
                raise UserError(f"A world of {config.days[0]} days is too short for the shape {shape}.")
        if config.against in left_out:
            raise UserError(f"{config.against} cannot play, and all others would be compared with it.")
        if len(self.players) < (1 if config.replace else 2):
            raise UserError(f"Nobody is left to compare: {', '.join(self.left_out)} cannot play.")

    @property
    def numbers(self) -> range:
        """The configs."""
        return range(self.config.first_config, self.config.first_config + self.config.configs)

    def games(self, number: int) -> list[Game]:
        """The worlds of one config."""
        config, shape = self.config, self.config.shapes[number % len(self.config.shapes)]
        rng = np.random.default_rng([config.seed, 10, number])
        factories = _factories(shape)
        seated = list(self._seated)
        if factories is None:
            market = draw_market(rng, len(seated), config.processes, config.days, config.fillers)
        else:
            n_steps = int(rng.integers(config.days[0], config.days[1] + 1))
            market = Market(int(rng.integers(2**31)), n_steps, factories, ((),) * len(factories))
            spare = sum(factories) - len(seated)
            seated += [config.fillers[i] for i in rng.integers(0, len(config.fillers), spare)]
        # Places, not names: a filler may carry the name of an agent under test.
        order = rng.permutation(len(seated))
        games: list[Game] = []
        for turn in range(config.turns or len(seated)):
            around = np.roll(order, turn)
            games += self._games_of(number, turn, market, [int(i) for i in around], seated)
        return games

    def _games_of(self, number: int, turn: int, market: Market, around: list[int], seated: list[str]) -> Iterator[Game]:
        """One seating: one world, or one for each player who takes the seat of the replaced agent."""
        config = self.config
        agents, levels, seats, waiting = [], [], [], iter(around)
        for level, (places, fillers) in enumerate(zip(market.places, market.fillers)):
            here = [next(waiting) for _ in range(places)]
            seats += [*here, *(-1 for _ in fillers)]
            agents += [*(seated[i] for i in here), *fillers]
            levels += [level] * (places + len(fillers))
        seed = int(np.random.default_rng([config.seed, 11, number, turn]).integers(2**31))

        def game(player: str | None, agents: list[str], tested: tuple[int, ...]) -> Game:
            world = (market.seed, seed, market.n_steps, tuple(levels), tuple(agents), (False,) * len(agents))
            digest = hashlib.sha256(json.dumps((number, turn, *world)).encode()).hexdigest()[:10]
            return Game(WorldSpec(f"c{number:03d}-t{turn:02d}-{digest}", *world), number, turn, player, tested)

        if config.replace is None:
            tested = tuple(place for place, i in enumerate(seats) if 0 <= i < len(self._seated))
            yield game(None, agents, tested)
            return
        mine = seats.index(0)  # the replaced agent is the first of the seated
        if position(levels[mine], levels[-1] + 1) not in config.levels:
            return
        for player in (config.replace, *self.players):
            yield game(player, [*agents[:mine], player, *agents[mine + 1 :]], (mine,))


def position(level: int, levels: int) -> Level:
    """first, middle or last."""
    return "first" if level == 0 else "last" if level == levels - 1 else "middle"


def _factories(shape: str) -> tuple[int, ...] | None:
    """Factories of each level; None for the official shape."""
    if shape == OFFICIAL:
        return None
    sizes = re.fullmatch(r"([2-9])x([1-9]\d?)", shape)
    if sizes is None:
        raise UserError(f"'{shape}' is not a shape, expected LEVELSxFACTORIES such as 3x4, or official.")
    return (int(sizes[2]),) * int(sizes[1])


def label(name: str) -> str:
    """An agent's name for tables and figures: its alias, or its name without the module."""
    alias, name = split_alias(name)
    if alias:
        return alias
    plain, parenthesis, rest = name.partition("(")
    return re.split("[:.]", plain)[-1] + parenthesis + rest
