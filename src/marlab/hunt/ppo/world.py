"""The game as a world that PPO can learn in (`marlab.lab.ppo.ppo.World`): B games, L learning seats each.

It resets one step late: after an episode's last step it still shows the final situation, and the next `step` ignores
that game's actions and brings a new start. Seats that do not learn are played by a fixed policy, so one learner may
sit among rule-based players in any seat. Nothing is read back to the host before `pop_stats`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.rules import Game, Outcome, State
from marlab.hunt.game.views import FlatFields, View, flat_fields, flat_observation
from marlab.hunt.game.ways import ways
from marlab.hunt.players.guests import GuestConfig
from marlab.hunt.players.policy import Memory, Policy
from marlab.hunt.players.rollout import HARE, NONE, STAG
from marlab.hunt.ppo.guests import RuleGuests
from marlab.lab.errors import UserError
from marlab.lab.ppo import ppo


class WorldStep(NamedTuple):
    """What a step gave to the learning seats: each [B, L]."""

    reward: Tensor
    terminated: Tensor  # left the game, or the episode ended
    truncated: Tensor  # never: the time limit is part of what players see


class Tally(NamedTuple):
    """Statistics of the episodes under way and sums over those that ended."""

    reward: Tensor  # [B, n] so far in this episode
    outcome: Tensor  # [B, n] uint8: NONE, STAG or HARE so far
    hunters: Tensor  # [B, n] uint8: how many shared the capture
    sums: Tensor  # [K] float64, in the order of `HuntWorld.stat_names`


class HuntWorld:
    """B games that restart by themselves."""

    def __init__(
        self, game: Game, games: int, generator: torch.Generator, *, seats: Sequence[int] | None = None,
        rotate: bool = False, others: Policy | None = None, stay: float = 1.0, guests: GuestConfig | None = None,
        paths: bool = False, compile: bool = False,
    ) -> None:  # fmt: skip
        """`generator` lives on the game's device and draws everything that is random here.

        seats: the learning seats, all of them by default. rotate: game b moves them on by b, so that a learner meets
        every seat. others: who plays the remaining seats; with the probability `stay` they stay for another episode,
        otherwise new ones come. guests: where every seat learns, rule-based players in some of the seats. paths: show
        the shortest ways, too. compile: fuse the step with torch.compile.
        """
        chosen = tuple(range(game.players)) if seats is None else tuple(seats)
        _check_seats(game, chosen, others)
        self.game, self.games, self.generator, self.others = game, games, generator, others
        self._everyone = chosen == tuple(range(game.players)) and not rotate
        self.seats = torch.tensor(chosen, device=game.device).expand(games, -1)  # [B, L]
        if rotate:
            self.seats = (self.seats + torch.arange(games, device=game.device).unsqueeze(1)) % game.players
        self._flat_seats = None if self._everyone else self.seats if rotate else self.seats[0]
        self.stay, self.paths = stay, paths
        self.guests: RuleGuests | None = None
        if guests is not None and guests.share:
            if not self._everyone:
                raise UserError("There are guests where every seat learns; here some seats belong to others.")
            self.guests = RuleGuests(guests, game, games, generator)
        self.state = game.reset(games, generator)
        self.over = torch.zeros(games, dtype=torch.bool, device=game.device)  # [B] waiting for a restart
        self.memory: Memory = {} if others is None else others.begin(games, generator)
        self.stat_names = _stat_names(game.players)
        zeros = torch.zeros(game.players, games, dtype=torch.uint8, device=game.device).t()
        sums = torch.zeros(len(self.stat_names), dtype=torch.float64, device=game.device)
        self.tally = Tally(zeros.float(), zeros, zeros.clone(), sums)
        self.view = View(game, self.state)
        # On a CPU it is free to ask how many games wait; on an accelerator all are restarted and most are dropped.
        self._fixed_shapes = game.device.type != "cpu"
        self._may_ask = not self._fixed_shapes and not compile
        self._advance = self._advance_fused if compile else self._advance_all
        self._advance_flat = torch.compile(self._advance_tensors, dynamic=False, fullgraph=True)
        self._show = torch.compile(self._show_view, dynamic=False, fullgraph=True) if compile else self._show_view

    # --- the PPO contract -----------------------------------------------------------------------------------------

    @property
    def fields(self) -> FlatFields:
        """Where the fields of an observation lie."""
        return flat_fields(self.game)

    @property
    def acting(self) -> Tensor:
        """[B, L] bool: learning seats whose next action counts."""
        acting = self.state.alive & ~self.over.unsqueeze(1)
        return self._mine(acting if self.guests is None else acting & ~self.guests.seats)

    def observe(self) -> ppo.View:
        """Flat observations [B, L, D] (see `fields`) and action masks [B, L, A] of the learning seats."""
        return ppo.View(*self._show(self.state))

    def step(self, actions: Tensor) -> WorldStep:
        """One step with the learners' actions [B, L]."""
        joint, memory = self._joint(actions)
        view, waiting = self.view, self.over
        noise = self.game.draw(self.games, self.generator) if self._fixed_shapes else None
        after, outcome, over, tally = self._advance(self.state, waiting, self.tally, joint, noise)
        if not self._fixed_shapes:
            after = self._restart_some(after, waiting)
        if self.others is not None:
            memory = self.others.observe(view, outcome, memory)
            self.memory = self._met(self.others, self.others.reset(memory, waiting, self.generator), waiting)
        if self.guests is not None:
            self.guests.next_episode(waiting)
        self.state, self.over, self.tally = after, over, tally
        self.view = View(self.game, self.state)
        counts = ~waiting.unsqueeze(1)
        done = self._mine(outcome.done & counts)
        return WorldStep(self._mine(outcome.reward * counts), done, torch.zeros_like(done))

    # --- inside a step --------------------------------------------------------------------------------------------

    def _joint(self, actions: Tensor) -> tuple[Tensor, Memory]:
        """All players' actions [B, n], and the other players' memory after theirs."""
        if self.guests is not None:
            return torch.where(self.guests.seats, self.guests.act(self.view), actions), {}
        if self.others is None:  # then every seat learns, perhaps in another order
            return (actions if self._everyone else torch.empty_like(actions).scatter(1, self.seats, actions)), {}
        theirs, memory = self.others.act(self.view, self.memory, self.generator)
        return theirs.scatter(1, self.seats, actions), memory

    def _met(self, others: Policy, memory: Memory, starting: Tensor) -> Memory:
        """Memory of the others at the next step: in some of the games [B] that are `starting` they are new ones."""
        if self.stay == 1:
            return memory
        new = starting & (torch.rand(self.games, generator=self.generator, device=starting.device) >= self.stay)
        fresh = others.begin(self.games, self.generator)
        return {k: torch.where(new.view(-1, *[1] * (old.dim() - 1)), fresh[k], old) for k, old in memory.items()}

    def _advance_all(
        self, state: State, waiting: Tensor, tally: Tally, joint: Tensor, noise: Tensor | None
    ) -> tuple[State, Outcome, Tensor, Tally]:
        """Step every game; with noise also restart those that waited. Pure, and of fixed shape."""
        after, outcome = self.game.step(state, joint)
        over = outcome.over & ~waiting
        tally = self._count(tally, outcome, over, waiting, after.t)
        if noise is not None:
            after = after.where(waiting, self.game.start(noise))
        return after, outcome, over, tally

    def _advance_tensors(self, *flat: Tensor | None) -> tuple[Tensor, ...]:
        """`_advance_all` from tensors to tensors: not every compiler can build named tuples in a fused function."""
        fields = iter(flat)
        state = State(*islice(fields, len(State._fields)))  # type: ignore[arg-type]
        waiting = next(fields)
        tally = Tally(*islice(fields, len(Tally._fields)))  # type: ignore[arg-type]
        assert waiting is not None
        after, outcome, over, tally = self._advance_all(state, waiting, tally, *fields)  # type: ignore[arg-type]
        return *after, *outcome, over, *tally

    def _advance_fused(
        self, state: State, waiting: Tensor, tally: Tally, joint: Tensor, noise: Tensor | None
    ) -> tuple[State, Outcome, Tensor, Tally]:
        fields = iter(self._advance_flat(*state, waiting, *tally, joint, noise))
        after, outcome = State(*islice(fields, len(State._fields))), Outcome(*islice(fields, len(Outcome._fields)))
        return after, outcome, next(fields), Tally(*fields)

    def _restart_some(self, state: State, waiting: Tensor) -> State:
        """Fresh starts where they are needed only: on a CPU counting them costs nothing."""
        index = waiting.nonzero().squeeze(1)
        if index.numel() == 0:
            return state
        return state.renewed(index, self.game.reset(index.numel(), self.generator))

    def _show_view(self, state: State) -> tuple[Tensor, Tensor]:
        flat, mask = flat_observation(self.game, state, self._flat_seats)
        return (torch.cat([flat, ways(self.game, state, self._flat_seats)], 2) if self.paths else flat), mask

    def _mine(self, field: Tensor) -> Tensor:
        """Rows [B, L, ...] of the learning seats."""
        if self._everyone:
            return field
        if field.dim() == 2:
            return field.gather(1, self.seats)
        return field.gather(1, self.seats.unsqueeze(2).expand(-1, -1, field.shape[2]))

    # --- statistics -------------------------------------------------------------------------------------------------

    def _count(self, tally: Tally, step: Outcome, over: Tensor, waiting: Tensor, t: Tensor) -> Tally:
        live = ~waiting.unsqueeze(1)  # a game that waited starts anew: its episode so far is empty
        reward = (tally.reward + step.reward) * live
        # A player captures once at most, so adding is the same as replacing a zero.
        hunters = (tally.hunters + step.hunters.to(torch.uint8)) * live
        kind = (step.executed.to(torch.uint8) - 4) * (step.hunters > 0)  # HUNT_STAG 5 -> STAG 1, HUNT_HARE 6 -> HARE 2
        outcome = (tally.outcome + kind) * live if self.game.config.rules == "hunt" else tally.outcome
        after = Tally(reward, outcome, hunters, tally.sums)
        if not self._may_ask:
            return after._replace(sums=tally.sums + (self._columns(after, t) * over.unsqueeze(1)).sum(0))
        ended = over.nonzero().squeeze(1)
        if ended.numel() == 0:
            return after
        chosen = Tally(reward[ended], outcome[ended], hunters[ended], tally.sums)
        return after._replace(sums=tally.sums + self._columns(chosen, t[ended], ended).sum(0))

    def _columns(self, tally: Tally, t: Tensor, games: Tensor | None = None) -> Tensor:
        """[B, K] float64: what each game (of `games`, or of all) adds to `stat_names` when it ends."""
        shared = tally.outcome == STAG
        stags = [shared & (tally.hunters == k) for k in range(2, self.game.players + 1)]
        kinds = [tally.outcome == NONE, tally.outcome == HARE, *stags]
        seats = self.seats if games is None else self.seats[games]
        learner = tally.reward.gather(1, seats).mean(1, keepdim=True)
        ones = torch.ones_like(t).unsqueeze(1)
        columns = [ones, t.unsqueeze(1), tally.reward, learner, *(kind.sum(1, keepdim=True) for kind in kinds)]
        return torch.cat([column.double() for column in columns], 1)

    def pop_stats(self) -> dict[str, float]:
        """Means over the episodes that ended since the last call, in one transfer; only their number if none did.

        reward (all players), reward_player_i, reward_learner, length, and the shares of players who left with a hare,
        with a stag shared by k (stag_k), or with nothing (none).
        """
        values = dict(zip(self.stat_names, self.tally.sums.tolist()))
        self.tally = self.tally._replace(sums=torch.zeros_like(self.tally.sums))
        episodes = values.pop("episodes")
        if episodes == 0:
            return {"episodes": 0.0}
        means = {name: value / episodes for name, value in values.items()}
        n = self.game.players
        for name in means:
            if name in ("none", "hare") or name.startswith("stag_"):
                means[name] /= n  # from players per episode to shares of players
        reward = sum(means[f"reward_player_{i + 1}"] for i in range(n)) / n
        return {"episodes": episodes, "reward": reward, **means}

    # --- saving -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors: with the same game and seats, loading it continues bit for bit."""
        return {
            "state": self.state._asdict(), "over": self.over, "tally": self.tally._asdict(),
            "memory": dict(self.memory), "generator": self.generator.get_state(), "blocks": self.game.maps.blocks,
            **({} if self.guests is None else {"guests": self.guests.state_dict()}),
        }  # fmt: skip

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        device = self.game.device
        if saved["over"].shape != self.over.shape or not torch.equal(saved["blocks"].to(device), self.game.maps.blocks):
            raise UserError(
                f"The saved world has {saved['over'].shape[0]} games on {saved['blocks'].shape[0]} obstacle maps; it "
                f"does not continue in this one, which has {self.games} games and must have the very same maps."
            )
        self.state = State(**{k: v.to(device) for k, v in saved["state"].items()})
        self.tally = Tally(**{k: v.to(device) for k, v in saved["tally"].items()})
        self.over = saved["over"].to(device)
        self.memory = {k: v.to(device) for k, v in saved["memory"].items()}
        self.generator.set_state(saved["generator"].cpu())
        if self.guests is not None:
            self.guests.load_state_dict(saved["guests"])
        self.view = View(self.game, self.state)


def _check_seats(game: Game, seats: tuple[int, ...], others: Policy | None) -> None:
    if not seats or len(set(seats)) != len(seats) or not all(0 <= s < game.players for s in seats):
        raise UserError(f"The learning seats are {list(seats)}, expected different ones from 0 to {game.players - 1}.")
    if len(seats) < game.players and others is None:
        raise UserError(f"Only the seats {list(seats)} learn: say who plays the other {game.players - len(seats)}.")


def _stat_names(players: int) -> list[str]:
    seats = [f"reward_player_{i + 1}" for i in range(players)]
    stags = [f"stag_{k}" for k in range(2, players + 1)]
    return ["episodes", "length", *seats, "reward_learner", "none", "hare", *stags]
