"""The measurements of a score card, each by itself: what they are, what decides them, how they are made.

A cell is an agent in a scenario. Its key holds everything that decides its score (game, protocol, identities of all
players in a fixed order), its random numbers come from a generator that is seeded by the key, and it is one batch of
fixed shape on one thread. So the score is the same to the last bit whenever and beside whatever it is measured, on
machines of one kind; a CPU and a GPU agree within the intervals.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import torch

from marlab.hunt.evaluate.agents import Agent, find_agent, scripted
from marlab.hunt.evaluate.beliefs import GAMES, beliefs_of
from marlab.hunt.evaluate.command import DEFAULT_GAME, HuntEvalConfig
from marlab.hunt.evaluate.play import Cell, SharedNoise, Starts, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import Scenario
from marlab.hunt.evaluate.scores import scores_of
from marlab.hunt.exact.best_response import reference_values
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import DEFAULT_MAPS, game_config
from marlab.hunt.game.rules import Game
from marlab.hunt.players.characters import parse_character
from marlab.hunt.players.episodes import episode_report
from marlab.hunt.players.rollout import play
from marlab.lab.config import to_dict
from marlab.lab.device import choose_device, threads
from marlab.lab.errors import UserError
from marlab.lab.runs.identity import code_identity
from marlab.lab.runs.measurements import key_seed
from marlab.lab.runs.rng import Rngs

CODE = (
    "hunt/game", "hunt/players", "hunt/planner", "hunt/exact/best_response.py", "hunt/exact/situations.py",
    "hunt/ppo/config.py", "hunt/ppo/network.py", "hunt/others", "hunt/pretraining/belief_report.py",
    *(f"hunt/world_model/{name}.py" for name in ("config", "data", "model")),
    *(f"hunt/evaluate/{name}.py" for name in ("agents", "beliefs", "cells", "play", "scores")), "lab/ppo", "lab/search",
    "lab/runs/measurements.py", "lab/runs/rng.py", "lab/stats.py",
)  # fmt: skip
"""Where a measurement is computed: a change in any of these files makes it another one."""

Tick = Callable[[int], None]


def no_tick(steps: int) -> None:
    """For work whose progress nobody watches."""


@dataclass(frozen=True)
class Measurement:
    """One measurement, in words that another process understands."""

    kind: Literal["score", "self-play", "best response", "beliefs"]
    agent: str = ""  # how it is found; "" for best responses and for the beliefs of the exact rules
    seed: int = 0  # training seed, for self-play and beliefs
    focal: int = 0  # copies of the agent
    background: tuple[str, ...] = ()  # the other players, as they are found


@dataclass
class Measurer:
    """A game with everybody who plays in it; measures one job at a time."""

    config: HuntEvalConfig
    agents: Mapping[str, Agent]  # by their texts; rules need not be named
    games: int = GAMES  # in which beliefs are measured
    game: Game = field(init=False)

    def __post_init__(self) -> None:
        c = self.config
        config, generator = game_config(c.game or DEFAULT_GAME), Rngs(c.seed).torch("maps")
        self.game = make_game(config, generator, device=choose_device(c.device))

    @cached_property
    def starts(self) -> Starts:
        return Starts(self.game, self.config.runs, self.config.seed)

    def agent(self, text: str) -> Agent:
        return self.agents[text] if text in self.agents else scripted(text)

    # --- what there is to measure ----------------------------------------------------------------------------------

    def cell(self, agent: Agent, scenario: Scenario, cast: Mapping[str, Agent]) -> Measurement:
        """An agent in a scenario whose background players are rules, or of the cast by their names.

        The order in which a team is written does not matter: its players sit in the order of their identities.
        """
        others = [cast[name] if name in cast else scripted(name) for name in scenario.background]
        seated = sorted(others, key=lambda player: player.identity)
        return Measurement("score", agent.text, 0, scenario.focal, tuple(player.text for player in seated))

    def key(self, job: Measurement) -> tuple[Any, ...]:
        """Everything that decides what is measured, except the code."""
        c = self.config
        of = job.kind, to_dict(self.game.config), DEFAULT_MAPS, c.seed
        identity = self.agent(job.agent).identity if job.agent else "exact rules"
        if job.kind == "score":
            others = [self.agent(text).identity for text in job.background]
            return *of, c.runs, c.steps, c.window, identity, job.focal, others
        if job.kind == "self-play":
            return *of, c.episodes, identity, job.seed
        if job.kind == "best response":
            return *of, c.layouts, list(job.background)
        return *of, self.games, identity, job.seed

    def exact_arithmetic(self, job: Measurement) -> bool:
        """Whether a cell is played by rules alone, which compute with whole numbers."""
        players = (job.agent, *job.background)
        return job.kind == "score" and not any(self.agent(text).trained for text in players)

    # --- measuring -------------------------------------------------------------------------------------------------

    def measure(self, job: Measurement, tick: Tick = no_tick) -> Any:
        """What is found, in plain values. `tick` hears of game steps."""
        make = {"score": self._score, "self-play": self._self_play, "best response": self._best_response}
        with threads():
            if job.kind == "beliefs":
                agent = self.agent(job.agent) if job.agent else None
                return beliefs_of(self.game, agent, job.seed, self.config.seed, self.games)
            return make[job.kind](job, tick)

    def _score(self, job: Measurement, tick: Tick) -> dict[str, Any]:
        plan = seat_all(self.game, [self._cell(job)], self.config.runs, self.agents)
        stream = play_stream(self.game, plan, self.starts, self.config.steps, self._generator(job), tick)
        [score] = scores_of(plan, stream, self.config.steps, self.config.window)
        return score.to_dict()

    def rule_scores(self, jobs: Sequence[Measurement], tick: Tick = no_tick) -> list[dict[str, Any]]:
        """The scores of cells of `exact_arithmetic`, all in one batch; each is the same in any company."""
        plan = seat_all(self.game, [self._cell(job) for job in jobs], self.config.runs, self.agents)
        tapes = SharedNoise(plan, [key_seed(*self.key(job)) for job in jobs], self.game.device)
        stream = play_stream(self.game, plan, self.starts, self.config.steps, tapes, tick)
        return [score.to_dict() for score in scores_of(plan, stream, self.config.steps, self.config.window)]

    def _cell(self, job: Measurement) -> Cell:
        agent = self.agent(job.agent)
        agent = replace(agent, name=agent.identity)  # what it is called here is nobody's business elsewhere
        return Cell(agent, Scenario("cell", job.background, job.focal))

    def _self_play(self, job: Measurement, tick: Tick) -> dict[str, Any]:
        """Copies alone, one episode each from fresh memories."""
        games, game = self.config.episodes, self.game
        noise = torch.rand(games, game.cells + game.players + 1, generator=Rngs(self.config.seed).torch("self-play"))
        starts = game.start(noise.to(game.device))  # the same for everybody
        with torch.no_grad():
            episodes = play(game, self.agent(job.agent).make(game, job.seed), games, self._generator(job), starts)
        return episode_report(game.config, episodes)

    def _best_response(self, job: Measurement, tick: Tick) -> list[float]:
        """[layouts] what the best response to rules earns from each of some starts; solved on the CPU."""
        game = type(self.game)(self.game.config, self.game.maps.to("cpu"))
        starts = game.reset(self.config.layouts, Rngs(self.config.seed).torch("layouts"))
        others = [parse_character(name) for name in job.background]
        values: list[float] = reference_values(game, starts, [others[0], *others]).tolist()  # the first is not asked
        return values

    def _generator(self, job: Measurement) -> torch.Generator:
        return torch.Generator(device=self.game.device).manual_seed(key_seed(*self.key(job)))


def code() -> str:
    """The identity of the code that measures."""
    return code_identity(CODE)


def unique(bench: Measurer, jobs: Iterable[Measurement]) -> list[Measurement]:
    """Every measurement once, in the order given; an agent with two names is one."""
    by_key: dict[str, Measurement] = {}
    for job in jobs:
        by_key.setdefault(str(bench.key(job)), job)
    return list(by_key.values())


def players_of(bench: Measurer, job: Measurement) -> dict[str, str]:
    """Who takes part in a job, text -> identity, so that another process knows whether it found the same players."""
    texts = () if job.kind == "best response" else (job.agent, *job.background)
    return {text: bench.agent(text).identity for text in texts if text}


class OutOfTime(Exception):
    """A job was left because the time of the whole evaluation was up."""


def measure_task(
    config: HuntEvalConfig, job: Measurement, games: int, players: Mapping[str, str], until: float = math.inf
) -> Any:
    """A job in a process of its own: finds the trained players, and refuses those that are others by now.

    until: seconds since 1970 after which it is left.
    """

    def tick(steps: int) -> None:
        if time.time() > until:
            raise OutOfTime

    found = {text: find_agent(text) for text, identity in players.items() if text != identity}
    for text, agent in found.items():
        if agent.identity != players[text]:
            raise UserError(f"The agent {text} changed while it was evaluated; evaluate one that has finished.")
    return Measurer(config, found, games).measure(job, tick)
