"""Whole episodes in lockstep: every game plays exactly one, so short episodes are not over-represented."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.rules import Game, Outcome, State
from marlab.hunt.game.views import View
from marlab.hunt.players.policy import Memory, Policy

NONE, STAG, HARE = 0, 1, 2
OUTCOMES = ("none", "stag", "hare")
"""How an episode ended for a player, by number."""


class Moment(NamedTuple):
    """One step of all games; games that are over already are not `running` and must not be counted."""

    running: Tensor  # [B] bool
    view: View  # before the step
    memory: Memory  # of the policy, before the step
    asked: Tensor  # [B, n] the actions the policy asked for
    outcome: Outcome
    after: State


class Episodes(NamedTuple):
    """Results of B finished episodes."""

    reward: Tensor  # [B, n] float32, sum over the episode
    length: Tensor  # [B] int64
    steps: Tensor  # [B, n] int64, steps this player took part in
    outcome: Tensor  # [B, n] int64: NONE, STAG or HARE
    hunters: Tensor  # [B, n] int64: how many shared the player's capture
    first_hunt: Tensor  # [B] int64: step of the first capture, -1 without


def moments(game: Game, policy: Policy, start: State, memory: Memory, generator: torch.Generator) -> Iterator[Moment]:
    """Play `start` to the end of every episode, step by step. Games that are over keep their final state."""
    state = start
    running = ~game.over(state)
    for _ in range(game.config.final_time):
        view = View(game, state)
        actions, after_memory = policy.act(view, memory, generator)
        after, outcome = game.step(state, actions)
        yield Moment(running, view, memory, actions, outcome, after)
        memory = policy.observe(view, outcome, after_memory)
        state = after.where(~running, state)
        running = running & ~outcome.over
        if game.device.type == "cpu" and not bool(running.any()):
            return  # on an accelerator asking would cost more than the steps that are left


def play(
    game: Game,
    policy: Policy,
    games: int,
    generator: torch.Generator,
    start: State | None = None,
    tick: Callable[[], None] = lambda: None,
) -> Episodes:
    """One episode in each of `games` games, from fresh starts or from `start` [games]; `tick` is called after every
    step."""
    if start is None:
        start = game.reset(games, generator)
    shape = start.cell.shape
    zeros = torch.zeros(shape, dtype=torch.int64, device=game.device)
    reward, length, first = zeros.float(), zeros[:, 0], start.first_hunt
    steps, outcome, hunters = zeros, zeros, zeros
    for moment in moments(game, policy, start, policy.begin(games, generator), generator):
        on, done = moment.running.unsqueeze(1), moment.outcome
        reward = reward + done.reward * on
        length = length + moment.running
        steps = steps + (moment.view.state.alive & on)
        outcome = torch.where(on, captures(game, done, outcome), outcome)
        hunters = torch.where(on & (done.hunters > 0), done.hunters, hunters)
        first = torch.where(moment.running, moment.after.first_hunt, first)
        tick()
    return Episodes(reward, length, steps, outcome, hunters, first)


def captures(game: Game, step: Outcome, before: Tensor) -> Tensor:
    """[B, n] outcomes so far: NONE until a player captures, then STAG or HARE (in the snowdrift game always NONE)."""
    if game.config.rules == "snowdrift":
        return before
    return torch.where(step.hunters > 0, step.executed - 4, before)  # HUNT_STAG 5 -> STAG 1, HUNT_HARE 6 -> HARE 2
