"""The score card: everything an evaluation found, as a table for terminals, a page and plain data.

A reference is the best that is known in a scenario: a PPO player trained for it, the best scripted player, or the
exact best response. Scores are shown raw and as a share of the way from a random player to that reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from marlab.hunt.evaluate.beliefs import HEADER, belief_rows
from marlab.hunt.evaluate.proximity import HEADER as HEADER_OF_PROXIMITY
from marlab.hunt.evaluate.proximity import Played, proximity_rows
from marlab.hunt.evaluate.scenarios import SUITE_VERSION, Scenario, suite_of
from marlab.hunt.evaluate.scores import Score, difference, normalised
from marlab.hunt.game.config import game_config
from marlab.lab.errors import UserError
from marlab.lab.report.markdown import image, plain, table
from marlab.lab.runs.judged import Judged
from marlab.lab.stats import Measured, mean_interval
from marlab.lab.verdict import Sentence, say, side

BEST_RESPONSE = "best response"
"""What an exact reference is called."""


@dataclass(frozen=True)
class Exact:
    """What the exact best response earns, and how uncertain that is."""

    score: Score
    half: float  # half width of the 95 % interval, from the starts that were solved

    @property
    def measured(self) -> Measured:
        return _wider(self.score.measured(), self.half)


@dataclass(frozen=True)
class Line:
    """One scenario: the two ends of its scale, and every agent's score."""

    scenario: Scenario
    random: Score
    reference: Score  # the best known focal player
    exact: Exact | None
    scores: dict[str, Score]  # by agent, the first is the one that others are compared with

    def share(self, agent: str) -> Measured | None:
        """Where the agent stands between random (0) and reference (1)."""
        return normalised(self.scores[agent], self.random, self.reference)

    def shares_by_run(self, agent: str) -> NDArray[np.float64]:
        """[R] the same of every run by itself."""
        return (self.scores[agent].per_run - self.random.mean) / (self.reference.mean - self.random.mean)

    def regret(self, agent: str) -> Measured | None:
        """What the best response earns more."""
        if self.exact is None:
            return None
        return _wider(difference(self.exact.score, self.scores[agent]), self.exact.half)


@dataclass(frozen=True)
class Block:
    """A group of scenarios with a title."""

    title: str
    lines: list[Line]

    def mean_share(self, agent: str) -> float | None:
        shares = [share.value for line in self.lines if (share := line.share(agent)) is not None]
        return sum(shares) / len(shares) if shares else None


@dataclass
class ScoreCard:
    """The whole result of `marlab hunt eval`."""

    game: str
    agents: list[str]
    settings: dict[str, Any]
    blocks: list[Block] = field(default_factory=list)
    cross: dict[str, dict[str, Score]] = field(default_factory=dict)  # focal agent -> the others -> score
    self_play: dict[str, dict[str, Any]] = field(default_factory=dict)
    beliefs: dict[str, Any] = field(default_factory=dict)  # see `evaluate_beliefs`
    figures: dict[str, str] = field(default_factory=dict)  # caption -> file

    @property
    def headline(self) -> dict[str, float]:
        """Mean share over the scenario suite (or the first block)."""
        if not self.blocks:
            return {}
        shares = {a: self.blocks[0].mean_share(a) for a in self.agents}
        return {a: share for a, share in shares.items() if share is not None}

    def results(self) -> dict[str, Any]:
        """The figures of the run's record."""
        rewards = {f"{a}: self-play reward": report["over_seeds"]["reward"] for a, report in self.self_play.items()}
        return {**{f"{a}: mean share of the reference": share for a, share in self.headline.items()}, **rewards}

    def cases(self, agent: str) -> dict[int, dict[str, float]]:
        """The headline start by start: training seed -> start -> mean share over the suite."""
        lines = [line for line in self.blocks[0].lines if line.share(agent) is not None]
        shares = np.mean([line.shares_by_run(agent) for line in lines], axis=0)  # [R]
        found: dict[int, dict[str, float]] = {}
        for run, (seed, share) in enumerate(zip(lines[0].scores[agent].seeds.tolist(), shares.tolist())):
            found.setdefault(seed, {})[f"start {run} of seed {self.settings.get('seed')}, {self.game}"] = share
        return found

    def verdict(self) -> list[Sentence]:
        """How far the first agent is from the best that is known, how it compares with the next, where it is weakest.

        Intervals are over starts: they say nothing about agents that would be trained anew.
        """
        first = self.agents[0]
        lines = [line for line in self.blocks[0].lines if line.share(first) is not None] if self.blocks else []
        if not lines:
            return [say("lab.look")]
        shares = {a: self._by_start(a) for a in self.agents if all(line.share(a) is not None for line in lines)}
        mean, low, high = (float(x) for x in mean_interval(shares[first]))
        said = [say("hunt.scored", agent=first, share=mean, interval=(low, high), count=len(lines))]
        other = next((a for a in shares if a != first and len(shares[a]) == len(shares[first])), None)
        if other is not None:
            gain, low, high = (float(x) for x in mean_interval(shares[first] - shares[other]))
            key = {"above": "better_than", "below": "worse_than", "unclear": "like_other"}[side((low, high))]
            said.append(say(f"hunt.{key}", agent=first, other=other, gain=gain, interval=(low, high)))
        worst = min(lines, key=lambda line: cast(Measured, line.share(first)).value)
        weakest = cast(Measured, worst.share(first)).value
        return [*said, say("hunt.weakest", scenario=worst.scenario.name, share=weakest)]

    def _by_start(self, agent: str) -> np.ndarray:
        """[R] mean share over the first block of every start."""
        return np.array([share for starts in self.cases(agent).values() for share in starts.values()])

    @property
    def judged_by(self) -> Judged:
        """The first agent is the one that was asked about."""
        first = self.agents[0]
        return Judged((f"{first}: mean share of the reference", f"{first}: self-play reward"))

    @property
    def whole_suite(self) -> bool:
        """Whether the first block is all of the scenario suite: only then its mean is a headline."""
        played = {line.scenario.name for line in self.blocks[0].lines} if self.blocks else set()
        return {scenario.name for scenario in suite_of(self.players)} <= played

    @property
    def players(self) -> int:
        """Players of the card's game."""
        return game_config(self.game).players

    def _headline_text(self, agent: str) -> str:
        lines = self.blocks[0].lines
        exact = Block("", [line for line in lines if line.reference.agent == BEST_RESPONSE])
        among = exact.mean_share(agent)
        beside = "" if among is None else f"; {among:.3f} in the {len(exact.lines)} whose reference is exact"
        what = "headline" if self.whole_suite else f"mean share of {len(lines)} scenarios, no headline"
        return f"{what}, {agent}: {self.headline[agent]:.3f} of the way from random to the reference{beside}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "suite_version": SUITE_VERSION, "game": self.game, "settings": self.settings,
            "agents": [{"name": a} for a in self.agents],
            "headline": self.headline if self.whole_suite else {},
            "blocks": [{"title": b.title, "scenarios": [_line_dict(line) for line in b.lines],
                        "mean_share": {a: b.mean_share(a) for a in self.agents}} for b in self.blocks],
            "cross_play": {a: {b: s.to_dict() for b, s in row.items()} for a, row in self.cross.items()},
            "self_play": self.self_play, "beliefs": self.beliefs, "figures": self.figures,
        }  # fmt: skip

    @staticmethod
    def from_dict(stored: dict[str, Any]) -> ScoreCard:
        """The card behind a `to_dict`."""
        if stored.get("suite_version") != SUITE_VERSION:
            raise UserError(
                f"The score card is of scenario suite {stored.get('suite_version')}, expected {SUITE_VERSION}."
            )
        return ScoreCard(
            stored["game"],
            [agent["name"] for agent in stored["agents"]],
            stored["settings"],
            [Block(b["title"], [_line_from(line) for line in b["scenarios"]]) for b in stored["blocks"]],
            {a: {b: Score.from_dict(s) for b, s in row.items()} for a, row in stored["cross_play"].items()},
            stored["self_play"],
            stored["beliefs"],
            stored["figures"],
        )

    # --- for people -----------------------------------------------------------------------------------------------

    def tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """(title, header, rows) of every table."""
        shown = []
        if self.self_play:
            shown.append(self._self_play_table())
        for block in self.blocks:
            shown.append(
                (
                    block.title,
                    ["scenario", "random", "reference", *self.agents],
                    [self._row(line) for line in block.lines] + [self._mean_row(block)],
                )
            )
            if len(self.agents) > 1:
                shown.append(self._difference_table(block))
            if any(line.exact for line in block.lines):
                shown.append(self._regret_table(block))
            shown.append(self._proximity_table(block))
        if self.cross:
            header = ["focal", *(f"{self.players - 1} {name}" for name in self.agents)]
            rows = [[a, *(_number(self.cross[a][b].measured()) for b in self.agents)] for a in self.agents]
            shown.append(("Cross-play: focal reward among copies of another agent", header, rows))
        if len(self.beliefs) > 1:  # the exact rules are always there
            title = "Beliefs about stag hunters (NS) and hare catchers (NH) by the agent's own models"
            shown.append((title, HEADER, belief_rows(self.beliefs)))
        return shown

    def _row(self, line: Line) -> list[str]:
        ends = [f"{line.random.mean:.2f}", f"{line.reference.mean:.2f} {line.reference.agent}"]
        return [line.scenario.name, *ends, *(self._cell(line, agent) for agent in self.agents)]

    def _cell(self, line: Line, agent: str) -> str:
        share = line.share(agent)
        scaled = "" if share is None else f" = {share.value:.2f}"
        quick = line.scores[agent].episodes_to_adapt
        return f"{_number(line.scores[agent].measured())}{scaled}" + ("" if quick is None else f" @{quick}")

    def _mean_row(self, block: Block) -> list[str]:
        means = [block.mean_share(agent) for agent in self.agents]
        return ["mean share", "0", "1", *("" if mean is None else f"{mean:.3f}" for mean in means)]

    def _difference_table(self, block: Block) -> tuple[str, list[str], list[list[str]]]:
        first, rest = self.agents[0], self.agents[1:]
        rows = []
        for line in block.lines:
            gaps = [difference(line.scores[agent], line.scores[first]) for agent in rest]
            rows.append([line.scenario.name, *(_signed(gap) for gap in gaps)])
        title = f"{block.title}: difference to {first}, paired; * where the interval excludes 0"
        return title, ["scenario", *rest], rows

    def _regret_table(self, block: Block) -> tuple[str, list[str], list[list[str]]]:
        rows = []
        for line in block.lines:
            if line.exact is not None:
                gaps = [line.regret(agent) for agent in self.agents]
                regrets = ["" if gap is None else _number(gap) for gap in gaps]
                rows.append([line.scenario.name, _number(line.exact.measured), *regrets])
        header = ["scenario", "best response", *self.agents]
        return f"{block.title}: regret against the exact best response", header, rows

    def _proximity_table(self, block: Block) -> tuple[str, list[str], list[list[str]]]:
        lines = [line for line in block.lines if line.reference.mean > 0]
        played = {
            agent: {line.scenario.name: _played(line, line.scores[agent]) for line in lines} for agent in self.agents
        }
        title = f"{block.title}: reward as a share of the reference's, stratified bootstraps, and the largest regret"
        return title, HEADER_OF_PROXIMITY, proximity_rows(played)

    def _self_play_table(self) -> tuple[str, list[str], list[list[str]]]:
        rows = []
        for agent, report in self.self_play.items():
            over_seeds = report["over_seeds"]
            mean = over_seeds["reward"]
            low_high = "" if mean["low"] is None else f" [{mean['low']:.3f}, {mean['high']:.3f}]"
            seats = " ".join(f"{seat['value']:.2f}" for seat in over_seeds["reward_player"])
            shares = over_seeds["outcomes"]
            stag = sum(v for k, v in shares.items() if k.startswith("stag"))
            rows.append([agent, str(over_seeds["seeds"]), f"{mean['value']:.3f}{low_high}", seats,
                         f"{stag:.2f}", f"{shares['hare']:.2f}", f"{shares['none']:.2f}",
                         f"{over_seeds['length']:.1f}"])  # fmt: skip
        header = ["agent", "seeds", "mean reward", "by seat", "left with stag", "hare", "nothing", "length"]
        return f"Self-play: {self.players} copies, single episodes", header, rows

    def text(self) -> str:
        """The card for a terminal."""
        parts = [
            f"{self.game}, scenario suite {SUITE_VERSION}; a cell: score ± half its interval = share of the way "
            "from random to the reference @ episodes to 90 %"
        ]
        for title, header, rows in self.tables():
            wide = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
            lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, wide)).rstrip() for row in [header, *rows]]
            parts.append("\n".join([title, *(f"  {line}" for line in lines)]))
        if self.headline:
            parts.append("\n".join(self._headline_text(agent) for agent in self.headline))
        return "\n\n".join(parts)

    def markdown(self) -> str:
        """The card as a page."""
        settings = ", ".join(f"{key} {value}" for key, value in self.settings.items())
        parts = [
            f"# Score card: {plain(self.game)}",
            f"Scenario suite version {SUITE_VERSION}; {plain(settings)}.",
            "A cell is the mean focal reward per episode ± half its 95 % interval = the share of the way from a "
            "random player (0) to the reference (1), @ the episodes until 90 % of the score.",
        ]
        if self.headline:
            shares = ", ".join(f"**{plain(a)} {v:.3f}**" for a, v in self.headline.items())
            some = f"Mean share of {len(self.blocks[0].lines)} scenarios, no headline"
            parts.append(f"{'Headline (mean share)' if self.whole_suite else some}: {shares}")
        parts += [f"{image(caption, file)}\n\n*{plain(caption)}*" for caption, file in self.figures.items()]
        for title, header, rows in self.tables():
            parts += [f"## {plain(title)}", table([plain(h) for h in header], [[plain(c) for c in r] for r in rows])]
        return "\n\n".join(parts) + "\n"


def best_reference(scores: Sequence[Score], exact: Exact | None) -> Score:
    """The highest of the given players and the exact best response, which wins where they are equal."""
    candidates = [*([exact.score] if exact else []), *scores]
    return max(candidates, key=lambda score: score.mean)


def _played(line: Line, score: Score) -> Played:
    return Played(score.per_run, score.seeds, score.by_episode, line.reference.mean)


def _wider(value: Measured, half: float) -> Measured:
    """The same value when another, independent uncertainty is added."""
    assert value.low is not None and value.high is not None
    low, high = (((value.value - value.low) ** 2 + half**2) ** 0.5, ((value.high - value.value) ** 2 + half**2) ** 0.5)
    return Measured(value.value, value.value - low, value.value + high)


def _line_dict(line: Line) -> dict[str, Any]:
    agents = {}
    for name, score in line.scores.items():
        share, regret = line.share(name), line.regret(name)
        agents[name] = {**score.to_dict(), "share": _plain(share), "regret": _plain(regret)}
    s = line.scenario
    return {
        "name": s.name,
        "focal": s.focal,
        "background": list(s.background),
        "tags": list(s.tags),
        "description": s.description,
        "random": line.random.to_dict(),
        "reference": line.reference.to_dict(),
        "exact": None if line.exact is None else {"score": line.exact.score.to_dict(), "half": line.exact.half},
        "agents": agents,
    }


def _line_from(stored: dict[str, Any]) -> Line:
    scenario = Scenario(
        stored["name"], tuple(stored["background"]), stored["focal"], stored["description"], tuple(stored["tags"])
    )
    exact = stored["exact"]
    return Line(
        scenario,
        Score.from_dict(stored["random"]),
        Score.from_dict(stored["reference"]),
        None if exact is None else Exact(Score.from_dict(exact["score"]), exact["half"]),
        {name: Score.from_dict(score) for name, score in stored["agents"].items()},
    )


def _plain(value: Measured | None) -> dict[str, Any] | None:
    return None if value is None else {"value": value.value, "low": value.low, "high": value.high}


def _number(value: Measured) -> str:
    if value.low is None or value.high is None:
        return f"{value.value:.2f}"
    return f"{value.value:.2f} ± {(value.high - value.low) / 2:.2f}"


def _signed(value: Measured) -> str:
    sure = value.low is not None and value.high is not None and not value.low <= 0 <= value.high
    half = 0.0 if value.low is None or value.high is None else (value.high - value.low) / 2
    return f"{value.value:+.2f} ± {half:.2f}{' *' if sure else ''}"
