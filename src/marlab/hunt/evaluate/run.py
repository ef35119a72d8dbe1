"""The work of `marlab hunt eval`: find the agents, measure what is missing, write the score card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from marlab.hunt.evaluate.agents import Agent, find_agent, find_agents, scripted
from marlab.hunt.evaluate.beliefs import evaluate_beliefs
from marlab.hunt.evaluate.card import Block, Line, ScoreCard, best_reference
from marlab.hunt.evaluate.cells import RANDOM, Cells
from marlab.hunt.evaluate.command import HuntEvalConfig
from marlab.hunt.evaluate.measurements import FOLDER, Measurements
from marlab.hunt.evaluate.play import Cell, Starts
from marlab.hunt.evaluate.scenarios import SEATS, SUITE, TEAMS, Scenario, by_name, check_background, team
from marlab.hunt.evaluate.scores import Score
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import Game
from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.runs.files import read_json, write_json, write_text
from marlab.lab.runs.records import find_run
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions

SCRIPTED = ("NS", "NH", "EXPL", "WAIT(5)", "RAND")
"""Scripted players that may be the reference of a scenario."""
CARD = "scorecard.json"


def evaluate(
    config: HuntEvalConfig, options: RunOptions | None = None, *, preset: Preset | None = None,
    command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Measure what the run has not measured yet and write its score card; `read_card(run.path)` reads it."""
    lineup = _lineup(config)  # refuses what does not fit together before a folder is made
    others = [find_run(str(path)).path / FOLDER for path in config.measured]
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        run.set_device(lineup.game.device)
        measurements = Measurements(run.path / FOLDER, others, lambda: run.leave() if run.should_stop() else None)
        card = _measure(config, lineup, measurements, quiet)
        write_card(card, run, figures=config.figures)
        if not quiet:
            reused = f" ({measurements.reused} measurements were there before)" if measurements.reused else ""
            print(f"{card.text()}\n\nscore card: {run.path / 'scorecard.md'}{reused}")
    return run


def score(config: HuntEvalConfig, measurements: Measurements | None = None) -> ScoreCard:
    """The score card without a run directory."""
    return _measure(config, _lineup(config), measurements or Measurements(), quiet=True)


def read_card(path: Path) -> ScoreCard:
    """The score card of a finished evaluation, by its run directory."""
    return ScoreCard.from_dict(read_json(path / CARD, lambda why: UserError(f"There is no score card: {why}.")))


def write_card(card: ScoreCard, run: Run, *, figures: bool = True) -> None:
    """scorecard.json, scorecard.md, pictures, and the headline for the run's record."""
    if figures:
        from marlab.hunt.evaluate.figures import draw_card

        draw_card(card, run.path)
    write_json(run.path / CARD, card.to_dict())
    write_text(run.path / "scorecard.md", card.markdown())
    run.judge_by(card.judged_by)
    run.add_results(card.results())
    for agent in card.headline:
        run.add_cases(f"{agent}: mean share of the reference", card.cases(agent))


@dataclass(frozen=True)
class _Lineup:
    """Everybody who takes part, and the game they meet in."""

    game: Game
    rngs: Rngs
    agents: list[Agent]
    scenarios: list[Scenario]
    teams: list[Scenario]
    references: dict[tuple[str, ...], Agent]  # by the background that they were trained for


def _lineup(config: HuntEvalConfig) -> _Lineup:
    agents = find_agents(config.all_agents)
    scenarios, teams = _scenarios(config, [agent.name for agent in agents])
    references = _references(config)
    rngs = Rngs(config.seed, choose_device(config.device))
    game = make_game(game_config(config.game), rngs.torch("maps", "cpu"), maps=config.maps, device=rngs.device)
    for agent in [*agents, *references.values()]:
        agent.make(game, agent.seeds[0])  # refuses a network of another size
    return _Lineup(game, rngs, agents, scenarios, teams, references)


def _measure(config: HuntEvalConfig, lineup: _Lineup, measurements: Measurements, quiet: bool) -> ScoreCard:
    agents, game = lineup.agents, lineup.game
    cast = {agent.name: agent for agent in agents}
    cells = Cells(game, Starts(game, config.runs, config.seed), config, cast, lineup.rngs, quiet, measurements)
    settings = {name: getattr(config, name) for name in ("runs", "steps", "window", "seed", "layouts", "maps")}
    card = ScoreCard(config.game, list(cast), {agent.name: agent.uses for agent in agents}, settings)
    if "self-play" in config.parts:
        card.self_play = {agent.name: cells.self_play(agent) for agent in agents}
    if "scenarios" in config.parts and lineup.scenarios:
        card.blocks.append(_block("Scenarios", lineup.scenarios, agents, lineup.references, cells))
    if "teams" in config.parts and lineup.teams:
        card.blocks.append(_block("Teams", lineup.teams, agents, lineup.references, cells))
    if "cross-play" in config.parts and len(agents) > 1:
        card.cross = _cross_play(agents, cells)
    if "beliefs" in config.parts and any(agent.trained for agent in agents):
        card.beliefs = evaluate_beliefs(game, agents, config.seed, measurements)
    return card


def _scenarios(config: HuntEvalConfig, agents: Sequence[str]) -> tuple[list[Scenario], list[Scenario]]:
    """The scenarios of the suite and the teams to play, checked."""
    game = game_config(config.game)
    if game.rules != "hunt" or game.players != SEATS:
        raise UserError(f"The score card is made for stag hunts of {SEATS} players, {config.game} is not one.")
    scenarios = [by_name(name) for name in config.scenarios] if config.scenarios else list(SUITE)
    teams = [*TEAMS, *(team(text) for text in config.teams)]
    check_background([*scenarios, *teams], agents)
    return scenarios, list(dict.fromkeys(teams))


def _references(config: HuntEvalConfig) -> dict[tuple[str, ...], Agent]:
    """PPO players by the background that they were trained for."""
    by_team: dict[tuple[str, ...], Agent] = {}
    for text in config.references:
        name, equals, run = text.partition("=")
        if not equals or not run:
            raise UserError(f"'{text}' is not a reference, expected TEAM=RUN, such as 3NS=runs/hunt/ppo-3ns.")
        members = by_name(name).background
        by_team[tuple(sorted(members))] = find_agent(f"ppo-for-{'-'.join(members).translate(_SAFE)}={run}")
    return by_team


_SAFE = {ord(c): "." for c in "(),"}


def _block(
    title: str, scenarios: Sequence[Scenario], agents: Sequence[Agent], references: dict[tuple[str, ...], Agent],
    cells: Cells,
) -> Block:  # fmt: skip
    rules = [scripted(name) for name in SCRIPTED]
    beside = [Cell(agent, scenario) for scenario in scenarios for agent in rules]
    for scenario in scenarios:
        trained = references.get(tuple(sorted(scenario.background)))
        if trained is not None and scenario.focal == 1:
            beside.append(Cell(trained, scenario))
    cells.play([Cell(agent, s) for s in scenarios for agent in agents if not agent.trained] + beside,
              f"{title.lower()}: scripted players")  # fmt: skip
    for agent in agents:
        if agent.trained:
            cells.play([Cell(agent, scenario) for scenario in scenarios], f"{title.lower()}: {agent.name}")
    lines = []
    for scenario in scenarios:
        exact = cells.best_response(scenario)
        mine = {agent.name: cells.score(agent.name, scenario) for agent in agents}
        others = [score for score in cells.all_scores(scenario) if score.agent not in mine or score.agent in SCRIPTED]
        random = cells.score(RANDOM, scenario)
        lines.append(Line(scenario, random, best_reference(others, exact), exact, mine))
    return Block(title, lines)


def _cross_play(agents: Sequence[Agent], cells: Cells) -> dict[str, dict[str, Score]]:
    among = {b.name: Scenario(f"among three {b.name}", (b.name,) * (SEATS - 1)) for b in agents}
    cells.play([Cell(a, among[b.name]) for a in agents for b in agents], "cross-play")
    return {a.name: {b.name: cells.score(a.name, among[b.name]) for b in agents} for a in agents}
