"""The cells of a score card: every agent in every scenario, measured once, and the exact best response beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from marlab.hunt.evaluate.agents import Agent
from marlab.hunt.evaluate.card import Exact
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.measurements import Measurements
from marlab.hunt.evaluate.play import Cell, Starts, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import Scenario
from marlab.hunt.evaluate.scores import Score, scores_of
from marlab.hunt.exact.best_response import start_values
from marlab.hunt.game.rules import Game
from marlab.hunt.players.episodes import episode_report, over_seeds
from marlab.hunt.players.rollout import play
from marlab.hunt.players.seats import Kind
from marlab.lab.progress import Progress
from marlab.lab.runs.rng import Rngs
from marlab.lab.stats import mean_interval

RANDOM = "RAND"
LARGEST_EXACT_RANDOM = 16
"""Grid cells up to which a best response to a team with one random player is solved; others walk few paths."""
MOST_GAMES = 8192
"""Games that are played at once."""

Seating = tuple[int, tuple[str, ...]]
"""Focal players and their background: what a score depends on beside the agent."""


@dataclass
class Cells:
    """A game with its starts, and all scores measured in it so far."""

    game: Game
    starts: Starts
    config: HuntEvalConfig
    cast: dict[str, Agent]
    rngs: Rngs
    quiet: bool
    measurements: Measurements
    scores: dict[tuple[str, Seating], Score] = field(default_factory=dict)  # by agent and whom it plays with
    exact: dict[Seating, Exact] = field(default_factory=dict)

    def score(self, agent: str, scenario: Scenario) -> Score:
        """What was measured; a team and a scenario with the same players share it."""
        return replace(self.scores[agent, _seating(scenario)], scenario=scenario.name)

    def all_scores(self, scenario: Scenario) -> list[Score]:
        return [self.score(agent, scenario) for agent, seating in self.scores if seating == _seating(scenario)]

    def play(self, cells: Sequence[Cell], label: str) -> None:
        """Measure the cells that are not known yet, as many at once as fit."""
        wanted = {(c.agent.name, _seating(c.scenario)): c for c in cells}
        for key, cell in wanted.items():
            stored = None if key in self.scores else self.measurements.get(*self._key(cell))
            if stored is not None:
                self.scores[key] = replace(Score.from_dict(stored), agent=cell.agent.name)
        left = [cell for key, cell in wanted.items() if key not in self.scores]
        size = max(1, MOST_GAMES // self.config.runs)
        chunks = [left[i : i + size] for i in range(0, len(left), size)]
        if not chunks:
            return
        with Progress(label, total=len(chunks) * self.config.steps, unit="steps", quiet=self.quiet) as bar:
            for chunk in chunks:
                plan = seat_all(self.game, chunk, self.config.runs, self.cast)
                stream = play_stream(
                    self.game, plan, self.starts, self.config.steps, self.rngs.torch("streams"), bar.advance
                )
                for cell, score in zip(chunk, scores_of(plan, stream, self.config.steps, self.config.window)):
                    self.scores[cell.agent.name, _seating(cell.scenario)] = score
                    self.measurements.put(score.to_dict(), *self._key(cell))
                self.measurements.safe_point()

    def _key(self, cell: Cell) -> tuple[Any, ...]:
        """What a score is found again by. Which cells shared its batch is not part of it: they draw from one stream,
        so a score that is measured in other company differs by chance, as its interval says."""
        c, (focal, background) = self.config, _seating(cell.scenario)
        others = sorted(self.cast[name].identity if name in self.cast else name for name in background)
        return "score", c.game, c.runs, c.steps, c.window, c.maps, c.seed, cell.agent.identity, focal, others

    def self_play(self, agent: Agent) -> dict[str, Any]:
        """Four copies, one episode each from fresh memories, for every training seed."""
        c = self.config
        key = "self-play", c.game, c.episodes, c.maps, c.seed, agent.identity
        stored: dict[str, Any] | None = self.measurements.get(*key)
        if stored is not None:
            return stored
        reports = {}
        for seed in agent.seeds:
            starts = self.game.start(_noise(self.game, c))  # the same for everybody
            with torch.no_grad():
                episodes = play(
                    self.game, agent.make(self.game, seed), c.episodes, self.rngs.torch("self-play"), starts
                )
            reports[str(seed)] = episode_report(self.game.config, episodes)
        result = {"seeds": reports, "over_seeds": over_seeds(list(reports.values()))}
        self.measurements.put(result, *key)
        self.measurements.safe_point()
        return result

    def best_response(self, scenario: Scenario) -> Exact | None:
        """What the exact best response earns on average, where it can be solved, from `config.layouts` starts."""
        kinds = scenario.kinds
        if kinds is None or scenario.focal != 1 or self.config.layouts < 2:
            return None
        randoms = sum(kind == Kind.RAND for kind in kinds)
        if randoms > 1 or (randoms and self.game.cells > LARGEST_EXACT_RANDOM):
            return None
        key = _seating(scenario)
        if key not in self.exact:
            mean, low, high = (float(x) for x in mean_interval(self._solved(kinds)))
            base = self.score(RANDOM, scenario)  # lends its runs; the level is the same in all of them
            level = replace(base, agent="best response", per_run=np.full_like(base.per_run, mean))
            self.exact[key] = Exact(level, (high - low) / 2)
        return self.exact[key]

    def _solved(self, kinds: Sequence[Kind]) -> list[float]:
        """[layouts] what the best response to `kinds` earns from each of some starts."""
        c = self.config
        key = "best response", c.game, c.layouts, c.maps, c.seed, [kind.name for kind in kinds]
        values: list[float] | None = self.measurements.get(*key)
        if values is None:
            game = type(self.game)(self.game.config, self.game.maps.to("cpu"))  # best responses are solved on the CPU
            starts = game.reset(c.layouts, Rngs(c.seed).torch("layouts"))
            values = start_values(game, starts, [Kind.NS, *kinds]).tolist()
            self.measurements.put(values, *key)
            self.measurements.safe_point()
        return values


def _seating(scenario: Scenario) -> Seating:
    return scenario.focal, tuple(sorted(scenario.background))


def _noise(game: Game, config: HuntEvalConfig) -> torch.Tensor:
    generator = torch.Generator().manual_seed(config.seed)
    return torch.rand(config.episodes, game.cells + game.players + 1, generator=generator).to(game.device)
