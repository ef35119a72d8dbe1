"""`marlab hunt check`: does this game behave like the one that was calibrated?

Reproduces the calibration tables (mean rewards of rule-based populations, a focal player against teams), the
prediction ceilings, the payoff ladder, and exact best responses, each with an interval beside the expected figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from marlab.hunt.exact.best_response import start_values
from marlab.hunt.exact.calibration import (
    BELIEF,
    CEILINGS,
    FOCAL,
    FOCAL_TOLERANCE,
    LADDER,
    LENGTH_TOLERANCE,
    MIXTURE_SPLIT,
    POPULATIONS,
    STAY_SHARE,
)
from marlab.hunt.exact.ceilings import TIE_RULE, Score, ceilings
from marlab.hunt.exact.config import CheckConfig
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.rules import HUNT_HARE, HUNT_STAG, STAY, Game, State
from marlab.hunt.players.rollout import play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, parse_roles
from marlab.lab.progress import Progress
from marlab.lab.runs.files import write_json
from marlab.lab.runs.rng import Rngs
from marlab.lab.stats import mean_interval

TEAMS = ("NS,NS,NS", "NS,NS,NH", "NS,NH,NH", "NH,NH,NH")


@dataclass(frozen=True)
class Row:
    """One figure: measured (with its 95 % interval), expected, and how far apart they may be.

    It differs when the whole interval lies outside the tolerance, so that chance alone rarely fails a right game.
    """

    name: str
    value: float
    half: float = 0.0  # half width of the 95 % interval
    expected: float | None = None
    tolerance: float = math.inf

    @property
    def ok(self) -> bool:
        return self.expected is None or abs(self.value - self.expected) <= self.tolerance + self.half

    def text(self, width: int) -> str:
        interval = f" ± {self.half:.3f}" if self.half else ""
        expected = "" if self.expected is None else f"{self.expected:8.3f}  {'ok' if self.ok else 'DIFFERS'}"
        return f"  {self.name:<{width}} {self.value + 0.0:8.3f}{interval:<9} {expected}".rstrip()


@dataclass(frozen=True)
class Section:
    """A table of the report."""

    title: str
    rows: tuple[Row, ...]
    note: str = ""


@dataclass(frozen=True)
class Report:
    """All tables."""

    sections: tuple[Section, ...]

    @property
    def failures(self) -> list[str]:
        return [f"{section.title}: {row.name}" for section in self.sections for row in section.rows if not row.ok]

    @property
    def passed(self) -> bool:
        return not self.failures

    def text(self) -> str:
        """The report for people; the last column is the expected figure."""
        width = max(len(row.name) for section in self.sections for row in section.rows)
        parts = []
        for section in self.sections:
            lines = [section.title, *(row.text(width) for row in section.rows)]
            parts.append("\n".join([*lines, f"  ({section.note})"] if section.note else lines))
        count = sum(row.expected is not None for section in self.sections for row in section.rows)
        verdict = f"all {count} figures agree" if self.passed else f"{len(self.failures)} of {count} figures differ"
        return "\n\n".join([*parts, f"{verdict} with the calibration"])

    def to_json(self) -> list[dict[str, object]]:
        return [
            {"table": s.title, "name": r.name, "value": r.value, "half": r.half, "expected": r.expected, "ok": r.ok}
            for s in self.sections
            for r in s.rows
        ]


def check(
    config: CheckConfig | None = None, *, quiet: bool = True, part_done: Callable[[], None] = lambda: None
) -> Report:
    """Measure everything; nothing is written unless `config.output_dir` names a folder.

    `part_done` is called after every table, and may end it with an exception.
    """
    config = config or CheckConfig()
    rngs = Rngs(0)
    names = ("msh_4x4", "msh_8x8_b5", "msh_4x4_4h2s")
    games = {name: make_game(game_config(name), rngs.torch("maps")) for name in names}
    sections = [_ladder(games["msh_4x4"])]
    with Progress("checking", total=len(FOCAL) + 5, unit="tables", quiet=quiet) as bar:

        def advance() -> None:
            bar.advance(1)
            part_done()

        for name in ("msh_4x4", "msh_8x8_b5"):
            sections.append(_populations(name, games[name], config, rngs))
            advance()
        for (name, team), expected in FOCAL.items():
            sections.append(_focal(name, games[name], team, expected, config, rngs))
            advance()
        for name in ("msh_4x4", "msh_8x8_b5"):
            sections += _ceilings(name, games[name], config, rngs)
            advance()
        sections += _best_responses(games["msh_4x4"], config, rngs)
        advance()
    report = Report(tuple(_merged(sections)))
    if config.output_dir is not None:
        write_json(config.output_dir / "check.json", report.to_json())
    return report


def _merged(sections: list[Section]) -> list[Section]:
    """Sections of one title become one table."""
    tables: dict[str, list[Row]] = {}
    notes = {section.title: section.note for section in sections}
    for section in sections:
        tables.setdefault(section.title, []).extend(section.rows)
    return [Section(title, tuple(rows), notes[title]) for title, rows in tables.items()]


# --- tables -------------------------------------------------------------------------------------------------------


def _ladder(game: Game) -> Section:
    """What a mean reward means, paid out by the game itself."""
    rows = []
    for (stag_hunters, hare_hunters), (name, expected) in LADDER.items():
        state = _gathered(game, stag_hunters, hare_hunters)
        idle = game.players - stag_hunters - hare_hunters
        actions = [HUNT_STAG] * stag_hunters + [HUNT_HARE] * hare_hunters + [STAY] * idle
        reward = game.step(state, torch.tensor([actions]))[1].reward
        rows.append(Row(name, reward.mean().item(), 0.0, expected, 1e-6))
    return Section("payoff ladder (4h1s), mean reward per player", tuple(rows))


def _gathered(game: Game, stag_hunters: int, hare_hunters: int) -> State:
    """One game whose first players stand on the stag and whose next ones each on a hare of their own."""
    state = game.reset(1, torch.Generator().manual_seed(0))
    stag, hares = state.prey_cell[:, :1], state.prey_cell[:, 1 : 1 + hare_hunters]
    rest = state.cell[:, stag_hunters + hare_hunters :]
    return state._replace(cell=torch.cat([stag.expand(1, stag_hunters), hares, rest], 1))


def _mean(values: Tensor) -> tuple[float, float]:
    """Mean and half width of its 95 % interval."""
    mean, low, high = mean_interval(values.double().numpy())
    return float(mean), float(high - low) / 2


def _populations(name: str, game: Game, config: CheckConfig, rngs: Rngs) -> Section:
    rows = []
    for roles, (reward, length, tolerance) in POPULATIONS[name].items():
        result = play(game, RulePlayers(game, parse_roles(roles)), config.episodes, rngs.torch("populations"))
        rows.append(Row(roles, *_mean(result.reward.mean(1)), reward, tolerance))
        rows.append(Row(f"{roles} length", *_mean(result.length), length, LENGTH_TOLERANCE))
        if roles == "RAND,RAND,RAND,RAND":
            means = result.reward.mean(0)
            error = result.reward.std(0).max().item() / math.sqrt(config.episodes)
            spread = (means - means.mean()).abs().max().item()
            rows.append(Row(f"{roles} seat bias, standard errors", spread / error, 0.0, 0.0, 3.0))
    return Section(f"populations, {name}, mean reward and episode length", tuple(rows))


def _focal(name: str, game: Game, team: str, expected: Sequence[float], config: CheckConfig, rngs: Rngs) -> Section:
    rows = []
    for focal, figure in zip(("NS", "NH", "RAND"), expected):
        roles = parse_roles(f"{focal},{team}")
        result = play(game, RulePlayers(game, roles), config.episodes, rngs.torch("focal"))
        symmetric = set(team.split(",")) == {focal}  # the table states the population's mean there
        values = result.reward.mean(1) if symmetric else result.reward[:, 0]
        rows.append(Row(f"{focal} among {team}", *_mean(values), figure, FOCAL_TOLERANCE[name]))
    return Section(f"focal player, {name}, mean reward", tuple(rows))


def _ceilings(name: str, game: Game, config: CheckConfig, rngs: Rngs) -> list[Section]:
    measured = ceilings(game, 4 * config.episodes, rngs)
    labels = {"known": "type known", "mixture": "50/50 mixture", "bayes": "exact Bayes", "uniform": "uniform, RAND"}
    rows: list[Row] = []
    for key, label in labels.items():
        score: Score = getattr(measured, key)
        top1, top3, (low, high) = CEILINGS[name][key]
        half1, half3, half_ce, half_split = (0.0 if math.isnan(half) else half for half in score.halves)
        rows.append(Row(f"{label}: top-1", score.top1, half1, top1, 0.02))
        rows.append(Row(f"{label}: top-3", score.top3, half3, top3, 0.02))
        expected, slack = (low + high) / 2, (high - low) / 2
        rows.append(Row(f"{label}: cross-entropy", score.cross_entropy, half_ce, expected, slack + 0.02))
        if key == "mixture":
            split = MIXTURE_SPLIT.get(name)
            rows.append(Row(f"{label}: top-1, ties split", score.top1_split, half_split, split, 0.02))
    rows.append(Row("always stay: top-1", measured.always_stay, 0.0, STAY_SHARE.get(name), 0.02))
    belief = [
        Row(f"t = {t}", measured.belief[t], 0.0, expected, 0.02)
        for t, expected in BELIEF[name].items()
        if t < len(measured.belief)
    ]
    return [
        Section(f"prediction ceilings, {name}, {4 * config.episodes} episodes", tuple(rows), TIE_RULE),
        Section(f"belief in the true type under exact Bayes, {name}", tuple(belief)),
    ]


def _best_responses(game: Game, config: CheckConfig, rngs: Rngs) -> list[Section]:
    """Exact values beside what NS and NH earn from the very same starts: the difference is their regret."""
    sections = []
    tiny = make_game(game_config("msh_tiny"))
    for name, board, teams in (("msh_4x4", game, TEAMS), ("msh_tiny", tiny, ("NS", "NH", "RAND"))):
        starts = board.reset(config.layouts, rngs.torch("layouts"))
        rows = []
        for team in teams:
            kinds = [Kind.NS, *(Kind[word] for word in team.split(","))]
            best = start_values(board, starts, kinds)
            rows.append(Row(f"against {team}: best response", *_mean(best)))
            for rule in (Kind.NS, Kind.NH):
                earned = _rule_value(board, starts, [rule, *kinds[1:]], rngs)
                rows.append(Row(f"against {team}: regret of {rule.name}", *_mean(best - earned)))
        title = f"exact best responses, {name}, {config.layouts} starts"
        sections.append(
            Section(title, tuple(rows), "intervals over starts; a rule's mean over 64 episodes from each start")
        )
    return sections


def _rule_value(game: Game, starts: State, kinds: Sequence[Kind], rngs: Rngs) -> Tensor:
    """[layouts] mean reward of the first player over 64 episodes from each start."""
    many = State(*(field.repeat_interleave(64, 0) for field in starts))
    result = play(game, RulePlayers(game, kinds), many.batch, rngs.torch("rules"), many)
    return result.reward[:, 0].double().view(starts.batch, 64).mean(1)
