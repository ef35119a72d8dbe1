"""`marlab hunt eval AGENT ...`: the score card of agents: self-play, teams, the scenario suite, cross-play.

Everybody plays the same streams of episodes from the same starts, beside random and scripted players, PPO players
trained for a team (`--references`) and, where it can be computed, the exact best response.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from marlab.hunt.evaluate.agents import Agent, find_agent, find_agents, scripted
from marlab.hunt.evaluate.beliefs import evaluate_beliefs
from marlab.hunt.evaluate.card import Block, Exact, Line, ScoreCard, best_reference
from marlab.hunt.evaluate.kept import FILE, Kept
from marlab.hunt.evaluate.play import Cell, Starts, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import SEATS, SUITE, TEAMS, Scenario, by_name, check_background, team
from marlab.hunt.evaluate.scores import Score, scores_of
from marlab.hunt.exact.best_response import start_values
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import GameConfig, game_config, game_names
from marlab.hunt.game.rules import Game
from marlab.hunt.players.episodes import episode_report, over_seeds
from marlab.hunt.players.rollout import play
from marlab.hunt.players.seats import Kind
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.files import write_json, write_text
from marlab.lab.runs.rng import Rngs
from marlab.lab.stats import mean_interval

Part = Literal["self-play", "scenarios", "teams", "cross-play", "beliefs"]
HELD_OUT_SEED = 20_260_303
"""Starts and obstacle maps that no training uses."""
SCRIPTED = ("NS", "NH", "EXPL", "WAIT(5)", "RAND")
"""Scripted players that may be the reference of a scenario."""
RANDOM = "RAND"
LARGEST_EXACT_RANDOM = 16
"""Cells up to which a best response to a team with one random player is solved; others walk few paths."""
MOST_GAMES = 8192
"""Games that are played at once."""


@dataclass(frozen=True)
class EvalConfig:
    """Which agents to score, and how thoroughly."""

    agent: str = ""
    """The agent: a rule such as NS, or a run directory of trained agents; RUN:3 is one training seed, NAME=RUN gives it
    a name."""
    agents: tuple[str, ...] = ()
    """More agents, compared with the first on the same starts."""
    game: str = "msh_4x4"
    """The game, by the name of its preset."""
    parts: tuple[Part, ...] = ("self-play", "scenarios", "teams", "cross-play", "beliefs")
    """What to play: single episodes of four copies; the frozen suite; the teams of the few-shot protocol; each agent
    among three copies of each; what planning agents believe of rule-based players."""
    scenarios: tuple[str, ...] = ()
    """Only these of the suite; a team such as NS+2NH is a scenario too."""
    teams: tuple[str, ...] = ()
    """More teams, such as 3ppo for three copies of the agent that you named ppo."""
    references: tuple[str, ...] = ()
    """PPO players trained for a team: TEAM=RUN, such as 3NS=runs/hunt/ppo-3ns."""
    runs: int = 64
    """Repetitions of every cell; the focal seat moves on from one to the next."""
    steps: int = 2400
    """Game steps of a run, in which an agent may adapt."""
    window: int = 600
    """The score counts episodes that end in this many last steps."""
    episodes: int = 1000
    """Single episodes of self-play per training seed."""
    layouts: int = 500
    """Starts that are solved exactly for the best response; 0 leaves it out."""
    maps: int = 1024
    """Obstacle maps, in games with obstacles."""
    seed: int = HELD_OUT_SEED
    """Seed of starts, maps and players."""
    out: Path | None = None
    """Folder of the score card; by default `eval` in the first agent's run, or runs/hunt/eval."""
    anew: bool = False
    """Measure everything again; otherwise what the folder has of a killed or smaller evaluation is not played again."""
    figures: bool = True
    """Draw pictures."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        if not self.agent and not self.agents:
            raise UserError("Name an agent: marlab hunt eval AGENT, a rule such as NS or a run directory.")
        if self.game not in game_names():
            raise UserError(f"'{self.game}' is not a game, expected one of {', '.join(game_names())}.")
        for name, least in (("runs", 4), ("steps", 1), ("window", 1), ("episodes", 2), ("layouts", 0), ("maps", 1)):
            if getattr(self, name) < least:
                raise UserError(f"{name} is {getattr(self, name)}, expected {least} or more.")
        longest = game_config(self.game).final_time
        if not longest <= self.window <= self.steps:
            raise UserError(
                f"window is {self.window} of {self.steps} steps, expected from {longest} (an episode) to all of them."
            )
        if not self.parts:
            raise UserError("parts is empty, expected some of self-play, scenarios, teams, cross-play and beliefs.")

    @property
    def all_agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*([self.agent] if self.agent else []), *self.agents]))


@dataclass
class _Table:
    """A game with its starts, and all scores measured in it so far."""

    game: Game
    starts: Starts
    config: EvalConfig
    cast: dict[str, Agent]
    rngs: Rngs
    quiet: bool
    kept: Kept
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
            told = None if key in self.scores else self.kept.get(*self._key(cell))
            known = None if told is None else Score.of(told)
            if known is not None:
                self.scores[key] = replace(known, agent=cell.agent.name)
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
                    self.kept.put(score.to_dict(), *self._key(cell))

    def _key(self, cell: Cell) -> tuple[Any, ...]:
        """Everything that a score depends on."""
        c, (focal, background) = self.config, _seating(cell.scenario)
        others = sorted(self.cast[name].identity if name in self.cast else name for name in background)
        return "score", c.game, c.runs, c.steps, c.window, c.maps, c.seed, cell.agent.identity, focal, others

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
        told: list[float] | None = self.kept.get(*key)
        if told is None:
            game = self.game if self.game.device.type == "cpu" else make_on_cpu(self.game)
            starts = game.reset(c.layouts, Rngs(c.seed).torch("layouts"))
            told = start_values(game, starts, [Kind.NS, *kinds]).tolist()
            self.kept.put(told, *key)
        return told


Seating = tuple[int, tuple[str, ...]]
"""Focal players and their background: what a score depends on beside the agent."""


def _seating(scenario: Scenario) -> Seating:
    return scenario.focal, tuple(sorted(scenario.background))


def make_on_cpu(game: Game) -> Game:
    """The same game on the CPU, where best responses are solved."""
    return type(game)(game.config, game.maps.to("cpu"))


def evaluate(config: EvalConfig, *, quiet: bool = True, kept: Kept | None = None) -> ScoreCard:
    """Play everything that `config.parts` asks for and that is not `kept` from before."""
    kept = Kept() if kept is None else kept
    agents = find_agents(config.all_agents)
    game_rules = game_config(config.game)
    scenarios, teams = _scenarios(config, game_rules, agents)
    references = _references(config)
    device = choose_device(config.device)
    rngs = Rngs(config.seed, device)
    game = make_game(game_rules, rngs.torch("maps", "cpu"), maps=config.maps, device=device)
    for agent in agents:
        agent.make(game, agent.seeds[0])  # a wrong size is refused before any work starts
    cast = {agent.name: agent for agent in agents}
    made = _Table(game, Starts(game, config.runs, config.seed), config, cast, rngs, quiet, kept)
    settings: dict[str, Any] = {"runs": config.runs, "steps": config.steps, "window": config.window,
                                "seed": config.seed, "layouts": config.layouts, "maps": config.maps}  # fmt: skip
    uses = {agent.name: agent.uses for agent in agents}
    card = ScoreCard(config.game, [agent.name for agent in agents], uses, settings)
    if "self-play" in config.parts:
        card.self_play = {agent.name: _self_play(agent, game, config, rngs, kept) for agent in agents}
    if "scenarios" in config.parts and scenarios:
        card.blocks.append(_block("Scenarios", scenarios, agents, references, made))
    if "teams" in config.parts and teams:
        card.blocks.append(_block("Teams", teams, agents, references, made))
    if "cross-play" in config.parts and len(agents) > 1:
        card.cross = _cross_play(agents, made)
    if "beliefs" in config.parts and any(agent.trained for agent in agents):
        card.beliefs = evaluate_beliefs(game, agents, config.seed, kept=kept)
    return card


def _scenarios(config: EvalConfig, game: GameConfig, agents: Sequence[Agent]) -> tuple[list[Scenario], list[Scenario]]:
    """The scenarios of the suite and the teams to play, checked."""
    if game.rules != "hunt" or game.players != SEATS:
        raise UserError(f"The score card is made for stag hunts of {SEATS} players, {config.game} is not one.")
    scenarios = [by_name(name) for name in config.scenarios] if config.scenarios else list(SUITE)
    teams = [*TEAMS, *(team(text) for text in config.teams)]
    names = [agent.name for agent in agents]
    check_background([*scenarios, *teams], names)
    return scenarios, list(dict.fromkeys(teams))


def _references(config: EvalConfig) -> dict[tuple[str, ...], Agent]:
    """PPO players by the background that they were trained for."""
    found: dict[tuple[str, ...], Agent] = {}
    for text in config.references:
        name, equals, run = text.partition("=")
        if not equals or not run:
            raise UserError(f"'{text}' is not a reference, expected TEAM=RUN, such as 3NS=runs/hunt/ppo-3ns.")
        members = by_name(name).background
        found[tuple(sorted(members))] = find_agent(f"ppo-for-{'-'.join(members).translate(_SAFE)}={run}")
    return found


_SAFE = {ord(c): "." for c in "(),"}


def _block(
    title: str,
    scenarios: Sequence[Scenario],
    agents: Sequence[Agent],
    references: dict[tuple[str, ...], Agent],
    made: _Table,
) -> Block:
    rules = [scripted(name) for name in SCRIPTED]
    cells = [Cell(agent, scenario) for scenario in scenarios for agent in rules]
    for scenario in scenarios:
        trained = references.get(tuple(sorted(scenario.background)))
        if trained is not None and scenario.focal == 1:
            cells.append(Cell(trained, scenario))
    made.play([Cell(agent, s) for s in scenarios for agent in agents if not agent.trained] + cells,
              f"{title.lower()}: scripted players")  # fmt: skip
    for agent in agents:
        if agent.trained:
            made.play([Cell(agent, scenario) for scenario in scenarios], f"{title.lower()}: {agent.name}")
    lines = []
    for scenario in scenarios:
        exact = made.best_response(scenario)
        mine = {agent.name: made.score(agent.name, scenario) for agent in agents}
        others = [score for score in made.all_scores(scenario) if score.agent not in mine or score.agent in SCRIPTED]
        random = made.score(RANDOM, scenario)
        lines.append(Line(scenario, random, best_reference(others, exact), exact, mine))
    return Block(title, lines)


def _cross_play(agents: Sequence[Agent], made: _Table) -> dict[str, dict[str, Score]]:
    among = {b.name: Scenario(f"among three {b.name}", (b.name,) * (SEATS - 1)) for b in agents}
    made.play([Cell(a, among[b.name]) for a in agents for b in agents], "cross-play")
    return {a.name: {b.name: made.score(a.name, among[b.name]) for b in agents} for a in agents}


def _self_play(agent: Agent, game: Game, config: EvalConfig, rngs: Rngs, kept: Kept) -> dict[str, Any]:
    """Four copies, one episode each from fresh memories, for every training seed."""
    key = "self-play", config.game, config.episodes, config.maps, config.seed, agent.identity
    told: dict[str, Any] | None = kept.get(*key)
    if told is not None:
        return told
    reports = {}
    for seed in agent.seeds:
        policy = agent.make(game, seed)
        starts = game.start(_noise(game, config))
        with torch.no_grad():
            episodes = play(game, policy, config.episodes, rngs.torch("self-play"), starts)
        reports[str(seed)] = episode_report(game.config, episodes)
    found = {"seeds": reports, "over_seeds": over_seeds(list(reports.values()))}
    kept.put(found, *key)
    return found


def _noise(game: Game, config: EvalConfig) -> torch.Tensor:
    """The same starts of self-play for everybody."""
    generator = torch.Generator().manual_seed(config.seed)
    return torch.rand(config.episodes, game.cells + game.players + 1, generator=generator).to(game.device)


def write_card(card: ScoreCard, out: Path, *, figures: bool = True) -> None:
    """scorecard.json, scorecard.md and pictures."""
    out.mkdir(parents=True, exist_ok=True)
    if figures:
        from marlab.hunt.evaluate.figures import draw_card

        draw_card(card, out)
    write_json(out / "scorecard.json", card.to_dict())
    write_text(out / "scorecard.md", card.markdown())


def main(argv: Sequence[str]) -> int:
    """`marlab hunt eval AGENT ...`"""
    from marlab.lab.flags import parse

    config = parse(EvalConfig, argv, prog="marlab hunt eval", positional=("agent", "agents..."))
    first = find_agent(config.all_agents[0])
    out = config.out or (first.path / "eval" if first.path else Path("runs/hunt/eval"))
    kept = Kept(out / FILE, anew=config.anew)
    card = evaluate(config, quiet=False, kept=kept)
    write_card(card, out, figures=config.figures)
    print(card.text())
    before = f"; {kept.found} measurements were there before (--anew makes them again)" if kept.found else ""
    print(f"\nwritten to {out}{before}")
    return 0
