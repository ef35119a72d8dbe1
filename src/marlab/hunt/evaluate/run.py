"""The work of `marlab hunt eval`: find the agents, measure what is missing, write the score card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from marlab.hunt.evaluate.agents import Agent, find_agent, find_agents, scripted
from marlab.hunt.evaluate.beliefs import EXACT, believes
from marlab.hunt.evaluate.card import BEST_RESPONSE, Block, Exact, Line, ScoreCard, best_reference
from marlab.hunt.evaluate.cells import Measurement, Measurer, code
from marlab.hunt.evaluate.command import DEFAULT_GAME, HuntEvalCommand, HuntEvalConfig
from marlab.hunt.evaluate.families import scored
from marlab.hunt.evaluate.scenarios import Scenario, by_name, check_background, suite_of, team, teams_of
from marlab.hunt.evaluate.scores import Score
from marlab.hunt.evaluate.work import measure_all
from marlab.hunt.exact.best_response import solvable
from marlab.hunt.game.config import game_config, game_names
from marlab.hunt.players.episodes import over_seeds
from marlab.lab.config import Preset
from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.lab.progress import stage
from marlab.lab.runs.files import read_table, trusting, write_json, write_text
from marlab.lab.runs.measurements import FOLDER, Measurements
from marlab.lab.runs.records import find_run
from marlab.lab.runs.run import Interrupted, Run, RunOptions
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import say

RANDOM = "RAND"
SCRIPTED = ("NS", "NH", "EXPL", "WAIT(5)", "RAND")
"""Scripted players that may be the reference of a scenario."""
CARD = "scorecard.json"
CARD_S = 6.0
"""Seconds that are kept back of a time limit for the card and its figures."""


def evaluate(
    config: HuntEvalConfig,
    options: RunOptions | None = None,
    *,
    engine: EngineConfig | str | None = None,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Measure what the run has not measured yet and write its score card; `read_card(run.path)` reads it."""
    asked = HuntEvalCommand.of(config)
    config, where, quiet = asked.run_config(), asked.engine_config(engine), quiet or asked.quiet
    lineup = EvaluationPlan(config)  # refuses what does not fit together before a folder is made
    others = [find_run(str(path)).path / FOLDER for path in config.measured]
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        run.set_device(lineup.bench.game.device)
        run.budget.expect("score card", CARD_S if config.figures else 1.0)
        run.set_verdict(say("hunt.card_cut"), say("lab.go_on"))  # until there is a card
        measurements = Measurements(run.path / FOLDER, others, partial(_leave_if, run, run.should_stop), code())
        kept = partial(_conclude, lineup, run, measurements, quiet=quiet)
        try:
            measure_all(
                lineup.bench,
                lineup.jobs(),
                measurements,
                where,
                cut=partial(_leave_if, run, run.must_stop),
                left_s=run.budget.left,
                quiet=quiet,
            )
        except Interrupted:  # what was stopped has the card of what is measured
            kept()
            raise
        kept()
    return run


def _leave_if(run: Run, asked: Callable[[], bool]) -> None:
    if asked():
        run.leave()


def _conclude(lineup: EvaluationPlan, run: Run, measurements: Measurements, *, quiet: bool) -> None:
    """The card of what is measured, if that is anything, and the verdict."""
    card = lineup.card(measurements)
    if not card.blocks and not card.self_play:
        return
    with stage("score card", quiet):
        write_card(card, run, figures=lineup.config.figures)
    run.set_verdict(*[*card.verdict()[:2], say("lab.go_on")] if run.unfinished else card.verdict())
    if not quiet:
        print(f"{card.text()}\n\nscore card: {run.path / 'scorecard.md'}{_remarks(measurements)}")


def _remarks(measurements: Measurements) -> str:
    reused, unused = measurements.reused, measurements.unused()
    there = f" ({reused} measurements were there before)" if reused else ""
    return f"{there} ({unused} of other code were measured again)" if unused else there


def score(config: HuntEvalConfig, measurements: Measurements | None = None) -> ScoreCard:
    """The score card without a run directory, measured in this process."""
    lineup, kept = EvaluationPlan(config), measurements or Measurements()
    measure_all(lineup.bench, lineup.jobs(), kept, quiet=True)
    return lineup.card(kept)


def read_card(path: Path) -> ScoreCard:
    """The score card of a finished evaluation, by its run directory."""
    stored = read_table(path / CARD, lambda why: UserError(f"There is no score card: {why}."))
    with trusting(f"{path / CARD} is not a score card"):
        return ScoreCard.from_dict(stored)


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


class EvaluationPlan:
    """Everybody who takes part and whom they meet: what is to be measured, and the card that is made of it."""

    def __init__(self, config: HuntEvalConfig) -> None:
        self.agents = find_agents(config.all_agents)
        self.config = config = replace(config, game=config.game or home_of(self.agents))
        config.check_window()
        self.scenarios, self.teams = _scenarios(config, [agent.name for agent in self.agents])
        self.references = _references(config, game_config(config.game).players)
        met = find_agents(config.populations)
        self.cast = {agent.name: agent for agent in [*self.agents, *met]}
        self.strangers: list[Scenario] = []
        if config.scored_seed is not None and "scored" in config.parts:
            self.strangers = scored(config.scored_seed, [agent.name for agent in met])
        everybody = [*self.agents, *met, *self.references.values()]
        self.bench = Measurer(config, {agent.text: agent for agent in everybody if agent.trained})
        for agent in everybody:
            agent.make(self.bench.game, agent.seeds[0])  # refuses a network of another size

    # --- what is measured -----------------------------------------------------------------------------------------

    def jobs(self) -> list[Measurement]:
        """Every measurement of the card; the same may be named more than once."""
        jobs: list[Measurement] = []
        for scenario in [scenario for _, block in self._blocks() for scenario in block]:
            jobs += self._line(scenario)
        if "self-play" in self.config.parts:
            jobs += [self._self_play(agent, seed) for agent in self.agents for seed in agent.seeds]
        if self._crossed():
            jobs += self._pairs()
        if self._believers():
            jobs += self._beliefs()
        return jobs

    def _line(self, scenario: Scenario) -> list[Measurement]:
        everybody = [*self.agents, *self._beside(scenario)]
        return [*(self._cell(agent, scenario) for agent in everybody), *self._solved(scenario)]

    def _pairs(self) -> list[Measurement]:
        return [self._cell(a, self._among(b)) for a in self.agents for b in self.agents]

    def _beliefs(self) -> list[Measurement]:
        return [
            Measurement("beliefs"),
            *(Measurement("beliefs", agent.text, seed) for agent, seed in self._believers()),
        ]

    def _blocks(self) -> list[tuple[str, list[Scenario]]]:
        asked = (
            ("scored", "Scored", self.strangers),
            ("scenarios", "Scenarios", self.scenarios),
            ("teams", "Teams", self.teams),
        )
        return [(title, scenarios) for part, title, scenarios in asked if part in self.config.parts and scenarios]

    def _beside(self, scenario: Scenario) -> list[Agent]:
        """Who sets the scale of a scenario: scripted players, and a PPO player that was trained for it."""
        trained = self.references.get(tuple(sorted(scenario.background)))
        rules = [scripted(name) for name in SCRIPTED]
        return [*rules, trained] if trained is not None and scenario.focal == 1 else rules

    def _cell(self, agent: Agent, scenario: Scenario) -> Measurement:
        return self.bench.cell(agent, scenario, self.cast)

    def _self_play(self, agent: Agent, seed: int) -> Measurement:
        return Measurement("self-play", agent.text, seed)

    def _solved(self, scenario: Scenario) -> list[Measurement]:
        """The exact best response, where it can be solved."""
        named = [name for name, agent in self.cast.items() if agent.trained or agent.text != name]
        characters = scenario.characters(named)  # a rule under its own name is what it is called
        if characters is None or scenario.focal != 1 or self.config.layouts < 2:
            return []
        if not solvable(characters, self.bench.game.config):
            return []
        return [Measurement("best response", background=tuple(sorted(map(str, characters))))]

    def _among(self, agent: Agent) -> Scenario:
        """One focal player among copies of an agent."""
        others = self.bench.game.players - 1
        return Scenario(f"among {others} {agent.name}", (agent.name,) * others)

    def _crossed(self) -> bool:
        return "cross-play" in self.config.parts and len(self.agents) > 1

    @cached_property
    def _with_beliefs(self) -> list[tuple[Agent, int]]:
        pairs = [(agent, seed) for agent in self.agents if agent.trained for seed in agent.seeds]
        return [(agent, seed) for agent, seed in pairs if believes(agent.make(self.bench.game, seed))]

    def _believers(self) -> list[tuple[Agent, int]]:
        """Agents with beliefs that can be measured, and their training seeds."""
        return self._with_beliefs if "beliefs" in self.config.parts else []

    # --- what comes out -------------------------------------------------------------------------------------------

    def card(self, measurements: Measurements) -> ScoreCard:
        """The score card of what is measured: a scenario stands on it once everybody in it is."""

        def found(job: Measurement) -> Any:
            return measurements.get(*self.bench.key(job))

        def known(jobs: Iterable[Measurement]) -> bool:
            return all(found(job) is not None for job in jobs)

        def score(agent: Agent, scenario: Scenario) -> Score:
            stored = Score.from_dict(found(self._cell(agent, scenario)))
            return replace(stored, agent=agent.name, scenario=scenario.name)

        c = self.config
        settings = {name: getattr(c, name) for name in ("runs", "steps", "window", "seed", "layouts")}
        settings |= {} if c.scored_seed is None else {"scored_seed": c.scored_seed}
        names = [agent.name for agent in self.agents]
        card = ScoreCard(c.game, names, settings)
        if "self-play" in c.parts:
            for agent in self.agents:
                if not known(self._self_play(agent, seed) for seed in agent.seeds):
                    continue
                reports = {str(seed): found(self._self_play(agent, seed)) for seed in agent.seeds}
                card.self_play[agent.name] = {"seeds": reports, "over_seeds": over_seeds(list(reports.values()))}
        for title, scenarios in self._blocks():
            lines = []
            for scenario in scenarios:
                if not known(self._line(scenario)):
                    continue
                beside = [score(agent, scenario) for agent in self._beside(scenario)]
                random = beside[SCRIPTED.index(RANDOM)]
                solved = [found(job) for job in self._solved(scenario)]
                exact = exact_level(solved[0], random) if solved else None
                mine = {agent.name: score(agent, scenario) for agent in self.agents}
                lines.append(Line(scenario, random, best_reference(beside, exact), exact, mine))
            card.blocks += [Block(title, lines)] if lines else []
        if self._crossed() and known(self._pairs()):
            card.cross = {a.name: {b.name: score(a, self._among(b)) for b in self.agents} for a in self.agents}
        if self._believers() and known(self._beliefs()):
            card.beliefs[EXACT] = {"0": found(Measurement("beliefs"))}
            for agent, seed in self._believers():
                card.beliefs.setdefault(agent.name, {})[str(seed)] = found(Measurement("beliefs", agent.text, seed))
        return card


def home_of(agents: Iterable[Agent]) -> str:
    """The game that the first trained agent learnt in, if it has a name."""
    trained = next((agent.game for agent in agents if agent.game is not None), None)
    return next((name for name in game_names() if game_config(name) == trained), DEFAULT_GAME)


def exact_level(values: Sequence[float], random: Score) -> Exact:
    """What the best response earns on average; a random player lends its runs, the level is the same in all of them."""
    mean, low, high = (float(x) for x in mean_interval(values))
    level = replace(random, agent=BEST_RESPONSE, per_run=np.full_like(random.per_run, mean))
    return Exact(level, (high - low) / 2)


def _scenarios(config: HuntEvalConfig, agents: Sequence[str]) -> tuple[list[Scenario], list[Scenario]]:
    """The scenarios of the suite and the teams to play, checked."""
    game = game_config(config.game)
    if game.rules != "hunt":
        raise UserError(f"The score card is made for stag hunts, {config.game} is not one.")
    players, named = game.players, config.scenarios
    scenarios = [by_name(name, players) for name in named] if named else list(suite_of(players))
    teams = [*teams_of(players), *(team(text, players) for text in config.teams)]
    check_background([*scenarios, *teams], agents)
    return scenarios, list(dict.fromkeys(teams))


def _references(config: HuntEvalConfig, players: int) -> dict[tuple[str, ...], Agent]:
    """PPO players by the background that they were trained for."""
    by_team: dict[tuple[str, ...], Agent] = {}
    for text in config.references:
        name, equals, run = text.partition("=")
        if not equals or not run:
            raise UserError(f"'{text}' is not a reference, expected TEAM=RUN, such as 3NS=runs/hunt/ppo-3ns.")
        members = by_name(name, players).background
        by_team[tuple(sorted(members))] = find_agent(f"ppo-for-{'-'.join(members).translate(_SAFE)}={run}")
    return by_team


_SAFE = {ord(c): "." for c in "(),"}
