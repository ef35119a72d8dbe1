"""Streams of episodes: many agents, scenarios, seats and repetitions side by side, each going on for a number of steps.

A run is one focal agent among one background for `steps` game steps, episode after episode with the same players, so
that whoever keeps beliefs from one episode to the next can adapt. The k-th episode of the r-th run begins in the same
situation for every agent and scenario, so that differences can be paired.

Cells with networks in them are played one at a time where their scores must not depend on others: matrix products round
differently in batches of another size. Rule-based players compute with whole numbers; with `SharedNoise` any number of
their cells can share a batch, and each is the same as alone.

Letters: B games (cells x R runs), n players, E episodes that ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.evaluate.agents import Agent, restrict_to_seats, scripted
from marlab.hunt.evaluate.scenarios import Scenario
from marlab.hunt.game.rules import STAY, Game, Outcome, State
from marlab.hunt.game.views import View
from marlab.hunt.players.policy import Memory, Policy
from marlab.hunt.players.rollout import captures
from marlab.lab.runs.rng import stream_seed


class Starts:
    """The situations in which episodes begin: number k of run r is the same whoever plays."""

    def __init__(self, game: Game, runs: int, seed: int) -> None:
        self.game, self.runs, self.seed = game, runs, seed
        self._width = game.cells + game.players + 1
        self._noise = torch.empty(0, runs, self._width, device=game.device)  # [episodes drawn so far, R, width]

    def at(self, run: Tensor, episode: Tensor) -> State:
        """Fresh games for runs [E] at episode numbers [E]."""
        known, needed = len(self._noise), int(episode.max()) + 1
        if needed > known:  # draw some in advance: every number has a stream of its own
            more = [self._draw(k) for k in range(known, max(needed, 2 * known, 32))]
            self._noise = torch.cat([self._noise, torch.stack(more).to(self.game.device)])
        return self.game.start(self._noise[episode, run])

    def lasting(self, run: Tensor) -> Tensor:
        """[E, n] numbers from 0 to 1 by which the players of runs [E] draw once for all their episodes.

        They are the same whoever plays, and evenly spread over the runs for every place in a team: else chance would
        decide who looks good among strangers who keep what they want.
        """
        players, generator = self.game.players, torch.Generator().manual_seed(self.seed)
        order = torch.stack([torch.randperm(self.runs, generator=generator) for _ in range(players)], 1)
        spread = ((order + 0.5) / self.runs).to(run.device)  # [R, n] by place in the list of members
        return spread[run.unsqueeze(1), places(run, players)]

    def _draw(self, episode: int) -> Tensor:
        generator = torch.Generator().manual_seed(stream_seed(self.seed, f"start {episode}"))
        return torch.rand(self.runs, self._width, generator=generator)


def places(run: Tensor, players: int) -> Tensor:
    """[E, n] who of the list of members sits in each seat in runs [E]: seats rotate from run to run."""
    return (torch.arange(players, device=run.device) - run.unsqueeze(1)) % players


class Seat(NamedTuple):
    """A policy with the games that it plays in."""

    player: str  # its identity
    policy: Policy
    games: Tensor  # [K] which games
    seats: Tensor  # [K, n] bool: its seats there
    whole: bool  # all games, in their order


class Cell(NamedTuple):
    """An agent in a scenario."""

    agent: Agent
    scenario: Scenario


class SeatingPlan(NamedTuple):
    """Who sits where in B games: R runs of every cell, one cell after the other."""

    cells: tuple[Cell, ...]
    runs: int
    seats: list[Seat]
    focal: Tensor  # [B, n] bool
    run: Tensor  # [B] number of the run within its cell
    seed: Tensor  # [B] training seed of the focal agent


class Stream(NamedTuple):
    """All episodes that ended, in the order of time."""

    game: Tensor  # [E] which of the B games
    episode: Tensor  # [E] its number in the run, from 0
    end: Tensor  # [E] steps of the run when it ended
    length: Tensor  # [E]
    reward: Tensor  # [E, n]
    outcome: Tensor  # [E, n] NONE, STAG or HARE
    hunters: Tensor  # [E, n]


def seat_all(game: Game, cells: Sequence[Cell], runs: int, cast: Mapping[str, Agent]) -> SeatingPlan:
    """Seat the agent of every cell as focal player of its scenario, the seats rotated from run to run.

    cast: trained agents that may be background players, by name. With several training seeds a run uses one of them,
    changed only after all seats had their turn, so that every seed plays every seat. The same player is one policy,
    whatever it is called and whichever side it plays on: the fewer calls, the faster.
    """
    n, device = game.players, game.device
    run = torch.arange(runs, device=device).repeat(len(cells))
    place = places(run[:runs], n)  # [R, n]
    turn = torch.div(run[:runs], n, rounding_mode="floor")  # [R]
    focal = torch.zeros(len(run), n, dtype=torch.bool, device=device)
    seed = torch.zeros(len(run), dtype=torch.int64, device=device)
    where: dict[tuple[str, int], Tensor] = {}  # (identity of a player, training seed) -> [B, n] its seats
    players: dict[str, Agent] = {}
    for c, (agent, scenario) in enumerate(cells):
        here = slice(c * runs, (c + 1) * runs)
        focal[here] = place < scenario.focal
        seed[here] = torch.tensor(agent.seeds, device=device)[turn % len(agent.seeds)]
        others = [cast[name] if name in cast else scripted(name) for name in scenario.background]
        for k, player in enumerate([agent] * scenario.focal + others):
            players.setdefault(player.identity, player)
            for i, number in enumerate(player.seeds):
                seats = where.setdefault((player.identity, number), torch.zeros_like(focal))
                seats[here] |= (place == k) & (turn % len(player.seeds) == i).unsqueeze(1)
    seated = []
    for identity, player in players.items():
        by_seed = {number: where[identity, number] for number in player.seeds}
        seated += _seated(game, player, {k: s for k, s in by_seed.items() if bool(s.any())})
    return SeatingPlan(tuple(cells), runs, seated, focal, run, seed)


def _seated(game: Game, player: Agent, by_seed: Mapping[int, Tensor]) -> list[Seat]:
    """The policies of a player's training seeds with their seats [B, n]: one for all seeds where that is possible."""
    games = {number: seats.any(1).nonzero().squeeze(1) for number, seats in by_seed.items()}
    seats_there = {number: by_seed[number][where] for number, where in games.items()}
    if player.together is not None and len({len(where) for where in games.values()}) == 1:
        blocks, seats_of_all = (torch.cat(list(parts.values())) for parts in (games, seats_there))
        policies = [(player.together(game, list(games)), blocks, seats_of_all)]
    else:
        policies = [(player.make(game, number), where, seats_there[number]) for number, where in games.items()]
    seated = []
    for policy, where, seats in policies:
        if player.trained:
            restrict_to_seats(policy, seats)
        everything = torch.arange(len(next(iter(by_seed.values()))), device=where.device)
        seated.append(Seat(player.identity, policy, where, seats, torch.equal(where, everything)))
    return seated


TAPE = 64
"""Steps for which uniform numbers are drawn at a time."""


class SharedNoise:
    """Uniform numbers for rule-based players. Those of a player in a cell depend on the cell's seed, the player and the
    step alone, and not on the cells beside it; they are drawn on the CPU wherever the game is played."""

    def __init__(self, plan: SeatingPlan, seeds: Sequence[int], device: torch.device) -> None:
        """seeds: of every cell of the plan."""
        self._plan, self._seeds, self._device = plan, tuple(seeds), device
        self._shape = TAPE, plan.runs, plan.focal.shape[1]
        self._cells = [torch.unique(seat.games // plan.runs).tolist() for seat in plan.seats]
        self._drawn: dict[tuple[int, str], tuple[int, Tensor]] = {}  # (seat, purpose) -> which piece, [TAPE, K, n]

    def act(self, seat: int, step: int) -> Tensor:
        """[K, n] what a seat's policy chooses its actions by."""
        return self._at(seat, "act", step)

    def start(self, seat: int, step: int) -> Tensor:
        """[K, n] what it draws its rule of an episode by, if it does."""
        draws = self._plan.seats[seat].policy.draws_at_start
        return self._at(seat, "start", step) if draws else torch.empty(0)

    def _at(self, seat: int, purpose: str, step: int) -> Tensor:
        piece, place = divmod(step, TAPE)
        if self._drawn.get((seat, purpose), (-1,))[0] != piece:
            player = self._plan.seats[seat].player
            parts = [self._draw(self._seeds[cell], f"{player}/{purpose}/{piece}") for cell in self._cells[seat]]
            self._drawn[seat, purpose] = piece, torch.cat(parts, 1).to(self._device)
        return self._drawn[seat, purpose][1][place]

    def _draw(self, seed: int, name: str) -> Tensor:
        return torch.rand(*self._shape, generator=torch.Generator().manual_seed(stream_seed(seed, name)))


class _OneGenerator:
    """All players of a plan draw from one generator, one after the other."""

    def __init__(self, generator: torch.Generator) -> None:
        self._generator = generator

    def act(self, seat: int, step: int) -> torch.Generator:
        return self._generator

    start = act


@torch.no_grad()
def play_stream(
    game: Game,
    plan: SeatingPlan,
    starts: Starts,
    steps: int,
    chance: torch.Generator | SharedNoise,
    tick: Callable[[int], None] = lambda steps: None,
) -> Stream:
    """Play every run of the plan for `steps` steps; `tick` hears of the progress."""
    draws: Any = chance if isinstance(chance, SharedNoise) else _OneGenerator(chance)
    batch, device = len(plan.run), game.device
    episode = torch.zeros(batch, dtype=torch.int64, device=device)
    state = starts.at(plan.run, episode)

    def first(i: int, seat: Seat) -> Any:
        """What a policy draws by when its team meets."""
        return starts.lasting(plan.run[seat.games]) if seat.policy.draws_once else draws.start(i, 0)

    memories = [seat.policy.begin(len(seat.games), first(i, seat)) for i, seat in enumerate(plan.seats)]
    reward = torch.zeros(batch, game.players, device=device)
    result = torch.zeros(batch, game.players, dtype=torch.int64, device=device)
    hunters, length = result.clone(), result[:, 0].clone()
    ended: list[tuple[Tensor, ...]] = []
    for t in range(steps):
        outcome, after = _step(game, plan, state, memories, partial(draws.act, step=t))
        reward, length = reward + outcome.reward, length + 1
        result = captures(game, outcome, result)
        hunters = torch.where(outcome.hunters > 0, outcome.hunters, hunters)
        over = outcome.over.nonzero().squeeze(1)
        if len(over):
            ended.append((over, episode[over], torch.full_like(over, t + 1), length[over], reward[over], result[over],
                          hunters[over]))  # fmt: skip
            episode = episode.index_add(0, over, torch.ones_like(over))
            fresh = starts.at(plan.run[over], episode[over])
            after = State(*(field.index_copy(0, over, new) for field, new in zip(after, fresh)))
            going = ~outcome.over
            reward, result, hunters = (x * going.unsqueeze(1) for x in (reward, result, hunters))
            length = length * going
            for i, seat in enumerate(plan.seats):
                memories[i] = seat.policy.reset(memories[i], outcome.over[seat.games], draws.start(i, t + 1))
        state = after
        tick(1)
    if not ended:
        raise ValueError(f"no episode ended in {steps} steps")
    return Stream(*(torch.cat(parts).cpu() for parts in zip(*ended)))


def _step(
    game: Game, plan: SeatingPlan, state: State, memories: list[Memory], draws: Callable[[int], Any]
) -> tuple[Outcome, State]:
    """One step of all games; `memories` are replaced in place. draws: what each seat's policy chooses by."""
    actions = torch.full(state.cell.shape, STAY, dtype=torch.int64, device=game.device)
    views = []
    for i, (_, policy, games, seats, whole) in enumerate(plan.seats):
        view = View(game, state if whole else state.select(games))
        chosen, memories[i] = policy.act(view, memories[i], draws(i))
        actions[games] = torch.where(seats, chosen, actions[games])
        views.append(view)
    after, outcome = game.step(state, actions)
    for i, (_, policy, games, _, whole) in enumerate(plan.seats):
        mine = outcome if whole else Outcome(*(field[games] for field in outcome))
        memories[i] = policy.observe(views[i], mine, memories[i])
    return outcome, after
