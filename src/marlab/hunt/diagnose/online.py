"""How far a model of others carries: from the offline data to players in play, the ones it knows and others.

The floor is the players' own randomness. A model that faces players who act at random looks bad by every score
except its excess over that floor; a model that does not carry over has a large excess.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.data.dataset import NOT_STAY, Part, Rows
from marlab.hunt.diagnose.goals import GoalRun, Judged
from marlab.hunt.diagnose.parts import Section, Table
from marlab.hunt.diagnose.ppo import PPORun
from marlab.hunt.game.build import game_with_blocks, make_game
from marlab.hunt.game.rules import ACTION_NAMES, Game
from marlab.hunt.game.views import View
from marlab.hunt.players.policy import Memory, Policy
from marlab.hunt.players.published import ONLINE_BROKEN
from marlab.hunt.players.rollout import Moment, captures, moments
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, Role
from marlab.hunt.pretraining.answers import predict
from marlab.hunt.pretraining.data import goal_data
from marlab.hunt.pretraining.metrics import score_actions
from marlab.lab.runs.rng import Rngs


class Played(NamedTuple):
    """Rows of players in play, and what they would do at each, where that is known."""

    part: Part
    truth: Tensor | None  # [R, A]


def diagnose_transfer(run: GoalRun, offline: Judged, ppo: Sequence[PPORun], games: int, section: Section) -> None:
    """Score the model on fresh games of several populations, and add the table to the section."""
    game = game_of(run)
    populations: dict[str, Policy] = {
        "NS and NH, fresh games": RulePlayers(game, [Role(Kind.MIX, 0.5)] * game.players),
        "WAIT, who give up": RulePlayers(game, [Kind.WAIT] * game.players),
        "RAND": RulePlayers(game, [Kind.RAND] * game.players),
    }
    for trained in ppo:
        if _same_grid(trained, game):
            populations[f"PPO {trained.name}"] = trained.policy(game, trained.agents.seeds[0])
    by_players = {"offline validation": (offline.scores, offline.free)}
    for name, policy in populations.items():
        played = play_rows(game, policy, games, Rngs(run.config.seed).torch(f"transfer {name}"))
        data = goal_data(game.config, played.part, "type", run.config.horizon, "cpu", paths=run.loaded.spec.paths)
        answer = predict(run.loaded.models, data, run.stage)
        scores = (score_actions(logits, data.action, played.truth) for logits in (answer.logits, answer.free))
        by_players[name] = (next(scores), next(scores))
    base = by_players["offline validation"][0]
    rows: list[tuple[Any, ...]] = [
        (name, s.rows, s.top1, s.top3, s.cross_entropy, s.floor, s.excess, free.excess, base.top1 - s.top1)
        for name, (s, free) in by_players.items()
    ]
    low, high = (tuple(v[i] for v in ONLINE_BROKEN.values()) for i in (0, 1))
    published = tuple(f"{a:g} to {b:g}" for a, b in zip(low, high))
    rows.append(("original, online before its buffer was mended", None, *published, None, None, None, None))
    header = ("players", "rows", "top-1", "top-3", "cross-entropy", "floor", "excess", "excess without goal",
              "top-1 lost to offline")  # fmt: skip
    section.tables.append(Table("From offline data to players in play [nats]", header, rows))
    classes = [(name, *scores.table.recall.tolist()) for name, (scores, _) in by_players.items()]
    section.tables.append(Table("Recall of every action", ("players", *ACTION_NAMES[: game.actions]), classes))
    section.figures["transfer"] = {
        name: {"given": scores.to_dict(), "free": free.to_dict()} for name, (scores, free) in by_players.items()
    }


def game_of(run: GoalRun) -> Game:
    """The game of the data, on its own obstacle maps."""
    config = run.dataset.game
    if not config.max_block_comp:
        return make_game(config)
    return game_with_blocks(config, torch.unique(run.dataset.rows.obs[..., config.players].flatten(1).bool(), dim=0))


def _same_grid(run: PPORun, game: Game) -> bool:
    a, b = run.config.game, game.config
    return (a.rules, a.height, a.width, a.players, a.final_time) == (
        b.rules, b.height, b.width, b.players, b.final_time
    )  # fmt: skip


def play_rows(game: Game, policy: Policy, games: int, generator: torch.Generator) -> Played:
    """Whole episodes of `games` games as rows of living players, sorted by game, player and time.

    NS and NH players keep their type; a player of whom no type is known counts as RAND, so its goal is even.
    """
    start = game.reset(games, generator)
    memory = policy.begin(games, generator)
    played: list[Moment] = []
    chances: list[Tensor | None] = []
    for moment in moments(game, policy, start, memory, generator):
        played.append(moment)
        chances.append(policy.probabilities(moment.view, moment.memory))
    there = torch.stack([m.running.unsqueeze(1) & m.view.state.alive for m in played], 2)  # [B, n, T]
    steps = there.sum(2)
    seats = torch.arange(game.players).expand(games, -1)
    outcome = torch.zeros_like(seats)
    for m in played:
        outcome = torch.where(m.running.unsqueeze(1), captures(game, m.outcome, outcome), outcome)

    def rows(values: list[Tensor]) -> Tensor:
        """[R, ...] from one [B, n, ...] (or [B] for everyone) per step."""
        wide = [v.unsqueeze(1).expand(-1, game.players) if v.dim() == 1 else v for v in values]
        return torch.stack(wide, 2)[there]

    def constant(value: Tensor) -> Tensor:
        return rows([value] * len(played))

    made = Rows(
        obs=rows([m.view.grid for m in played]), mask=rows([m.view.mask for m in played]),
        actions_prev=rows([m.view.actions for m in played]), alive=rows([m.view.alive for m in played]),
        t=rows([m.view.state.t for m in played]), a=rows([m.outcome.executed for m in played]),
        joint_a=rows([m.outcome.executed[:, game.ego] for m in played]), r=rows([m.outcome.reward for m in played]),
        next_obs=rows([View(game, m.after).grid for m in played]), done_i=rows([m.outcome.done for m in played]),
        done_all=rows([m.outcome.over for m in played]), episode=constant(torch.arange(games)),
        player=constant(seats), type=constant(_types(memory, seats)), outcome=constant(outcome),
        steps=constant(steps), cause=constant(torch.full_like(seats, NOT_STAY)),
        first_hunt=rows([m.view.state.first_hunt for m in played]),
    )  # fmt: skip
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), steps.flatten().cumsum(0)])
    known = [c for c in chances if c is not None]
    return Played(Part(made, offsets), rows(known) if len(known) == len(played) else None)


def _types(memory: Memory, seats: Tensor) -> Tensor:
    """[B, n] the players' kinds where they are NS or NH, else RAND."""
    kinds = memory.get("type", torch.full_like(seats, int(Kind.RAND)))
    return torch.where((kinds == Kind.NS) | (kinds == Kind.NH), kinds, int(Kind.RAND))
