"""One episode told as plain values: what was on the board, what everybody believed, expected, planned and did.

A planning agent tells its own beliefs and its search. Of everybody else an ideal observer tells what could be known:
beliefs from the exact rules of stag hunters and hare catchers, and the moves that those beliefs foretell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from marlab.hunt.evaluate.agents import Agent, restrict_to_seats
from marlab.hunt.game.render import Scene, scene
from marlab.hunt.game.rules import ACTION_NAMES, STAY, Game, Outcome, State
from marlab.hunt.game.views import View
from marlab.hunt.others.belief import GOAL_KINDS, BeliefTracker, ExactLikelihoods
from marlab.hunt.others.config import BeliefConfig
from marlab.hunt.planner.agent import Explanation, HopAgent
from marlab.hunt.players.policy import Memory, Policy
from marlab.hunt.players.rules import RulePlayers, rule_probabilities
from marlab.hunt.players.seats import Kind
from marlab.lab.errors import UserError

SCHEMA = 1


@dataclass(frozen=True)
class BeliefAbout:
    """What a player (or the ideal observer) thinks of another."""

    about: int  # seat
    stag: float  # belief that it wants the stag
    expected: list[float]  # [A] its next action
    follows: float = 0.0  # belief that it comes once somebody else stands on the stag


@dataclass(frozen=True)
class Decision:
    """A player's mind before its decision."""

    source: str  # "own models" of a planning agent, or "ideal observer"
    opinions: list[BeliefAbout]
    policy: list[float] | None  # [A] what it draws from, where it is known
    visits: list[float] | None = None  # [A] of the search
    q: list[float] | None = None  # [A] values of the search, in reward units
    value: float | None = None
    line: list[int] = field(default_factory=list)  # the most visited line of play


@dataclass(frozen=True)
class Moment:
    """A situation and what everybody is about to do in it; the last one has no decisions."""

    scene: Scene
    earned: list[float]  # by everybody so far
    action: list[int | None]  # about to be executed, None for who is gone or at the end
    thoughts: list[Decision | None]


@dataclass(frozen=True)
class Episode:
    """Everything that a film or a replay shows."""

    game: str
    players: list[str]
    episode: int  # its number in the life of the team, from 0
    moments: list[Moment]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        frames = []
        for moment in self.moments:
            shown = moment.scene._asdict()
            frames.append({**asdict(moment), "scene": shown})
        return {"schema": SCHEMA, "game": self.game, "players": self.players, "episode": self.episode,
                "actions": list(ACTION_NAMES), "frames": frames}  # fmt: skip


class SeatedPlayers:
    """The players of one game, each behind its own policy, the ideal observer beside them, and their episode so far."""

    def __init__(self, game: Game, agents: Sequence[Agent], generator: torch.Generator) -> None:
        self.game, self.agents, self.generator = game, agents, generator
        self.policies: list[Policy] = []
        for seat, agent in enumerate(agents):
            policy = agent.make(game, agent.seeds[0])
            mine = torch.zeros(1, game.players, dtype=torch.bool, device=game.device)
            mine[0, seat] = True
            restrict_to_seats(policy, mine)
            self.policies.append(policy)
        self.memories: list[Memory] = [policy.begin(1, generator) for policy in self.policies]
        self.observer = BeliefTracker(game, ExactLikelihoods(game), BeliefConfig())
        self.rules = RulePlayers(game, [Kind.RAND] * game.players)
        self.seen = self.observer.begin(1)
        self.state: State | None = None

    def begin(self, start: State) -> None:
        """An episode from `start` (one game); those who have played together before remember it."""
        if self.state is not None:
            again = torch.ones(1, dtype=torch.bool, device=self.game.device)
            self.memories = [p.reset(m, again, self.generator) for p, m in zip(self.policies, self.memories)]
            self.seen = self.observer.reset(self.seen, again)
        self.state, self.outcome, self.moments = start, None, list[Moment]()
        self.earned = torch.zeros(self.game.players, device=self.game.device)

    outcome: Outcome | None
    moments: list[Moment]

    @property
    def over(self) -> bool:
        assert self.state is not None
        return bool(self.game.over(self.state)[0])

    @torch.no_grad()
    def think(self, tell: bool = True) -> None:
        """Everybody decides: `actions` [1, n]; and where it is to be told, `thoughts` behind them."""
        assert self.state is not None
        self.view, before = View(self.game, self.state), list(self.memories)
        self.actions = torch.full((1, self.game.players), STAY, device=self.game.device)
        for seat, policy in enumerate(self.policies):
            chosen, self.memories[seat] = policy.act(self.view, self.memories[seat], self.generator)
            self.actions[:, seat] = chosen[:, seat]
        self.thoughts = self._thoughts(self.view, before) if tell else [None] * self.game.players

    @torch.no_grad()
    def step(self, hidden: int | None = None) -> None:
        """The decisions are executed, and told but for those of the `hidden` seat."""
        after, done = self.game.step(self.view.state, self.actions)
        alive = self.view.state.alive[0].tolist()
        doing = [a if there else None for a, there in zip(done.executed[0].tolist(), alive)]
        told = [None if seat == hidden else thought for seat, thought in enumerate(self.thoughts)]
        self.moments.append(Moment(self.scene, self.earned.tolist(), doing, told))
        for seat, policy in enumerate(self.policies):
            self.memories[seat] = policy.observe(self.view, done, self.memories[seat])
        self.seen = self.observer.observe(self.view, done, self.seen)
        self.earned = self.earned + done.reward[0]
        self.state, self.outcome = after, done

    @property
    def scene(self) -> Scene:
        assert self.state is not None
        return scene(self.game, self.state, 0, self.outcome)

    def told(self) -> list[Moment]:
        """The episode so far, with the situation now as its last moment."""
        nobody: list[int | None] = [None] * self.game.players
        return [*self.moments, Moment(self.scene, self.earned.tolist(), nobody, [None] * self.game.players)]

    def _thoughts(self, view: View, memories: list[Memory]) -> list[Decision | None]:
        """What everybody thinks who decided in `view`, from the memories before."""
        expected = self._expected(view)
        thoughts: list[Decision | None] = []
        for seat, policy in enumerate(self.policies):
            if not bool(view.state.alive[0, seat]):
                thoughts.append(None)
            elif isinstance(policy, HopAgent):
                thoughts.append(_planned(policy.explain(), seat, view))
            else:
                known = policy.probabilities(view, memories[seat])
                opinions = [
                    BeliefAbout(other, float(self.seen["belief"][0, other, 0]), expected[other])
                    for other in _others(view, seat)
                ]
                thoughts.append(
                    Decision("ideal observer", opinions, None if known is None else known[0, seat].tolist())
                )
        return thoughts

    def _expected(self, view: View) -> list[list[float]]:
        """[n][A] next moves by the observer's beliefs."""
        by_goal = rule_probabilities(self.rules, view, GOAL_KINDS)  # [1, n, G, A]
        return (by_goal * self.seen["belief"].unsqueeze(-1)).sum(2)[0].tolist()


def _others(view: View, seat: int) -> list[int]:
    """The others who are still there, as the player sees them around the table."""
    order = view.game.ego[seat, 1:].tolist()
    return [other for other in order if bool(view.state.alive[0, other])]


def _planned(explanation: Explanation, seat: int, view: View) -> Decision:
    n = view.game.players
    opinions = []
    for other in _others(view, seat):
        slot = (other - seat - 1) % n
        opinions.append(
            BeliefAbout(
                other,
                float(explanation.stag[0, seat, slot]),
                explanation.expected[0, seat, slot].tolist(),
                float(explanation.follows[0, seat, slot]),
            )
        )
    plan = explanation.plan
    line = [a for a in explanation.line[0, seat].tolist() if a >= 0]
    return Decision(
        "own models",
        opinions,
        plan.policy[0, seat].tolist(),
        plan.visits[0, seat].tolist(),
        plan.q[0, seat].tolist(),
        float(plan.value[0, seat]),
        line,
    )


@torch.no_grad()
def record(
    game: Game,
    agents: Sequence[Agent],
    starts: Sequence[State],
    generator: torch.Generator,
    name: str,
    over: Callable[[], bool] = lambda: False,
) -> Episode:
    """Play an episode from each of `starts` (one game each) with the same players, and tell the last one.

    `over` is asked after every step; where it says so, what was told until then is the episode.
    """
    players = SeatedPlayers(game, agents, generator)
    for number, start in enumerate(starts):
        players.begin(start)
        last = number == len(starts) - 1
        while not players.over:
            players.think(tell=last)
            players.step()
            if over():
                break
        if not last and over():
            raise UserError("It was stopped before the episode began that was to be shown; give it more time.")
    return Episode(name, [agent.name for agent in agents], len(starts) - 1, players.told())
