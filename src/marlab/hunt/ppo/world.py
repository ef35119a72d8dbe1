"""The game as a world that PPO can learn in (`marlab.lab.ppo.ppo.World`): B games, L learning seats each.

It resets one step late: after an episode's last step it still shows the final situation, and the next `step` ignores
that game's actions and brings a new start. Seats that do not learn are played by a fixed policy, so one learner may
sit among rule-based players in any seat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.game.rows import ways
from marlab.hunt.game.rules import Game, Outcome, State
from marlab.hunt.game.views import FlatFields, View, flat_fields, flat_observation
from marlab.hunt.players.guests import RuleGuests
from marlab.hunt.players.policy import Memory, Policy
from marlab.hunt.players.seats import GuestConfig
from marlab.lab.errors import UserError
from marlab.lab.ppo import ppo


class WorldStep(NamedTuple):
    """What a step gave to the learning seats: each [B, L]."""

    reward: Tensor
    terminated: Tensor  # left the game, or the episode ended
    truncated: Tensor  # never: the time limit is part of what players see


class Tally(NamedTuple):
    """What came of the episodes under way."""

    reward: Tensor  # [B, n] so far in this episode
    outcome: Tensor  # [B, n] uint8: NONE, STAG or HARE so far
    hunters: Tensor  # [B, n] uint8: how many shared the capture


class HuntWorld:
    """B games that restart by themselves."""

    def __init__(
        self, game: Game, games: int, generator: torch.Generator, *, seats: Sequence[int] | None = None,
        others: Policy | None = None, stay: float = 1.0, guests: GuestConfig | None = None, paths: bool = False,
    ) -> None:  # fmt: skip
        """`generator` lives on the game's device and draws everything that is random here.

        seats: the learning seats, all of them by default. others: who plays the remaining seats; with the probability
        `stay` they stay for another episode, otherwise new ones come. guests: where every seat learns, rule-based
        players in some of the seats. paths: show the shortest ways, too.
        """
        chosen = tuple(range(game.players)) if seats is None else tuple(seats)
        _check_seats(game, chosen, others)
        self.game, self.games, self.generator, self.others = game, games, generator, others
        self._everyone = chosen == tuple(range(game.players))
        self.seats = torch.tensor(chosen, device=game.device)  # [L]
        self.stay, self.paths = stay, paths
        self.guests: RuleGuests | None = None
        if guests is not None and guests.share:
            if not self._everyone:
                raise UserError("There are guests where every seat learns; here some seats belong to others.")
            self.guests = RuleGuests(guests, game, games, generator)
        self.state = game.reset(games, generator)
        self.over = torch.zeros(games, dtype=torch.bool, device=game.device)  # [B] waiting for a restart
        self.memory: Memory = {} if others is None else others.begin(games, generator)
        zeros = torch.zeros(game.players, games, dtype=torch.uint8, device=game.device).t()
        self.tally = Tally(zeros.float(), zeros, zeros.clone())
        self.view = View(game, self.state)
        self.fixed_shapes = game.device.type != "cpu"  # then all are restarted and most are dropped

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
        seats = None if self._everyone else self.seats
        flat, mask = flat_observation(self.game, self.state, seats)
        return ppo.View(torch.cat([flat, ways(self.game, self.state, seats)], 2) if self.paths else flat, mask)

    def step(self, actions: Tensor) -> WorldStep:
        """One step with the learners' actions [B, L]."""
        joint, memory = self._joint(actions)
        view, waiting = self.view, self.over
        after, outcome = self.game.step(self.state, joint)
        over = outcome.over & ~waiting
        self._count(outcome, waiting)
        if self.fixed_shapes:
            after = after.where(waiting, self.game.start(self.game.draw(self.games, self.generator)))
        else:
            after = self._restart_some(after, waiting)
        if self.others is not None:
            memory = self.others.observe(view, outcome, memory)
            self.memory = self._replace_background(
                self.others, self.others.reset(memory, waiting, self.generator), waiting
            )
        if self.guests is not None:
            self.guests.next_episode(waiting)
        self.state, self.over = after, over
        self.view = View(self.game, self.state)
        counts = ~waiting.unsqueeze(1)
        done = self._mine(outcome.done & counts)
        return WorldStep(self._mine(outcome.reward * counts), done, torch.zeros_like(done))

    # --- inside a step --------------------------------------------------------------------------------------------

    def _joint(self, actions: Tensor) -> tuple[Tensor, Memory]:
        """All players' actions [B, n], and the other players' memory after theirs."""
        if self.guests is not None:
            return torch.where(self.guests.seats, self.guests.act(self.view), actions), {}
        if self.others is None:
            return actions, {}
        theirs, memory = self.others.act(self.view, self.memory, self.generator)
        return theirs.index_copy(1, self.seats, actions), memory

    def _replace_background(self, others: Policy, memory: Memory, starting: Tensor) -> Memory:
        """Memory of the others at the next step: in some of the games [B] that are `starting` they are new ones."""
        if self.stay == 1:
            return memory
        new = starting & (torch.rand(self.games, generator=self.generator, device=starting.device) >= self.stay)
        fresh = others.begin(self.games, self.generator)
        return {k: torch.where(new.view(-1, *[1] * (old.dim() - 1)), fresh[k], old) for k, old in memory.items()}

    def _restart_some(self, state: State, waiting: Tensor) -> State:
        """Fresh starts where they are needed only: on a CPU counting them costs nothing."""
        index = waiting.nonzero().squeeze(1)
        if index.numel() == 0:
            return state
        return state.renewed(index, self.game.reset(index.numel(), self.generator))

    def _mine(self, field: Tensor) -> Tensor:
        """Rows [B, L, ...] of the learning seats."""
        return field if self._everyone else field[:, self.seats]

    def _count(self, step: Outcome, waiting: Tensor) -> None:
        tally, live = self.tally, ~waiting.unsqueeze(1)  # a game that waited starts anew: its episode so far is empty
        reward = (tally.reward + step.reward) * live
        # A player captures once at most, so adding is the same as replacing a zero.
        hunters = (tally.hunters + step.hunters.to(torch.uint8)) * live
        kind = (step.executed.to(torch.uint8) - 4) * (step.hunters > 0)  # HUNT_STAG 5 -> STAG 1, HUNT_HARE 6 -> HARE 2
        outcome = (tally.outcome + kind) * live if self.game.config.rules == "hunt" else tally.outcome
        self.tally = Tally(reward, outcome, hunters)

    # --- saving -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Plain tensors: with the same game and seats, loading it continues bit for bit."""
        return {
            "state": self.state._asdict(),
            "over": self.over,
            "tally": self.tally._asdict(),
            "memory": dict(self.memory),
            "generator": self.generator.get_state(),
            "blocks": self.game.maps.blocks,
            **({} if self.guests is None else {"guests": self.guests.state_dict()}),
        }

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
