"""The batched world a trainer drives: state, automatic resets, hard starts and statistics on one device.

Resets happen in the *next-step* manner. An arena whose episode ends with a step stays as it is for one more call:
`observe()` still shows the final observation of the fish that lived, so that V(final observation) is one row of the
ordinary value pass, while `acting` is already False. The next `step` ignores that arena's actions, pays nothing, and
replaces it with a fresh start.

Fresh starts come from a bank that `refill()` renews in bulk, outside any captured graph. With that, `step` has fixed
shapes, never waits for the device and can be captured in a CUDA graph; on a CPU it skips work nobody needs. Between
two refills a CUDA world should finish at most `bank` episodes; beyond that, starts are used twice (`starts_reused`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import PredatorStep, SeaState, advance, plane
from marlab.fish.sea.perception import neighbours, observe, pair_scratch, sight
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import Starts, begin, sample_predators, sample_starts
from marlab.fish.sea.rewards import RewardTerms, crowding, reward
from marlab.fish.sea.stats import EpisodeStats
from marlab.lab.errors import UserError


class Transition(NamedTuple):
    """What one step brought each fish that was acting; every plane [B, F], zero or False for the others."""

    reward: Tensor
    terminated: Tensor  # bool: eaten in this step (or, with episode_end=terminated, out of time)
    truncated: Tensor  # bool: alive when the episode was cut; bootstrap from the next `observe()`


class HardStarts(Protocol):
    """What each arena's next resets will meet: slot k of [K, B] is for its k-th reset from now on.

    A slot that is not `active` stands for an ordinary reset (and is still used up by it). A position of NaN keeps the
    one an ordinary pre-roll gives. `stage` only labels the statistics: 0-based, -1 for none, below `MAX_STAGES`.
    """

    @property
    def active(self) -> Tensor: ...  # [K, B] bool
    @property
    def velocity(self) -> Tensor: ...  # [K, B, 2] m/s
    @property
    def position(self) -> Tensor: ...  # [K, B, 2] m
    @property
    def stage(self) -> Tensor: ...  # [K, B] int64


class _Queue(NamedTuple):
    active: Tensor  # [K, B] bool
    stage: Tensor  # [K, B] int64
    velocity: Tensor  # [K, B, 2]
    position: Tensor  # [K, B, 2]


class FishWorld:
    """B arenas with F fish slots each, stepped together."""

    def __init__(
        self, cfg: SeaConfig, arenas: int, *, seed: int = 0, device: torch.device | str = "cpu",
        force_reset_steps: int = 0, bank: int | None = None, compile: bool = False,
        hunter: PredatorStep | None = None,
    ) -> None:  # fmt: skip
        """`force_reset_steps` > 0 truncates every episode after that many steps; `bank` fresh starts, default 2 B.

        `compile` fuses the step with torch.compile; `hunter` moves the predators in place of the config's mode.
        """
        if arenas < 1:
            raise UserError(f"The world has {arenas} arenas; it needs at least 1.")
        self.cfg, self.arenas, self.fish = cfg, arenas, cfg.num_fish
        self.device = torch.device(device)
        self.generator = torch.Generator(device=self.device).manual_seed(seed)
        self.stats = EpisodeStats(arenas, self.device)
        self.bank_size = max(arenas, 2 * arenas if bank is None else bank)
        # On a CPU reading a flag is free, so work that nobody needs is skipped.
        self._branching = self.device.type == "cpu" and not compile
        self._predator_step = predator_step(cfg) if hunter is None else hunter
        self.crowd = crowding(cfg, self.device)
        self._boost = cfg.escape_boost_speed
        self._penalised = cfg.density_penalty_coef != 0
        self.step_limit = torch.zeros((), dtype=torch.int32, device=self.device)
        self.set_force_reset_steps(force_reset_steps)
        self.fish_count = torch.full((arenas,), self.fish, dtype=torch.int64, device=self.device)
        self._slot = torch.arange(self.fish, device=self.device)
        self._arena = torch.arange(arenas, device=self.device)
        self.starts_used = torch.zeros((), dtype=torch.int64, device=self.device)
        self.queue = self._empty_queue(1)
        self.resets_since_feed = torch.zeros(arenas, dtype=torch.int64, device=self.device)
        self.stage = torch.full((arenas,), -1, dtype=torch.int64, device=self.device)  # of the episode under way
        # Ended, to be replaced at the next step.
        self.waiting = torch.zeros(arenas, dtype=torch.bool, device=self.device)
        self._obs = torch.zeros(arenas, self.fish, cfg.observation_size, device=self.device)
        self.state = self._allocate()
        self._scratch = None if compile else pair_scratch(self.state)
        self.bank = sample_starts(self.bank_size, self.fish, cfg, self.generator)
        self._core: Callable[[Tensor], Transition] = self._step
        if compile:
            self._core = torch.compile(self._step, fullgraph=True, dynamic=False)
        self.reset()

    # ------------------------------------------------------------ what a trainer calls

    def observe(self) -> Tensor:
        """Observations [B, F, D]; rows of fish that are not alive are zero. The world's own buffer: copy to keep."""
        return self._obs

    @property
    def acting(self) -> Tensor:
        """[B, F] bool: this fish exists, lives, and its arena is not waiting for its reset."""
        return self.state.alive & ~self.waiting[:, None]

    def step(self, actions: Tensor) -> Transition:
        """Play actions [B, F] (integers 0-4; those of fish that are not acting are ignored)."""
        return self._core(actions)

    def reset(self) -> None:
        """Begin a new episode in every arena now; running episodes are dropped without statistics."""
        if self._branching:
            self._refill_if_short(self.arenas)
        self.waiting.fill_(True)
        self._write(self._with_fresh_starts(self.state))
        self.waiting.fill_(False)
        self.stats.returns.zero_()
        self._perceive_now()

    def stagger(self, seed: int) -> None:
        """Let every arena be at a random time of its episode: those that began together would also end together."""
        late = torch.randint(0, sea.EPISODE_STEPS, (self.arenas,), generator=torch.Generator().manual_seed(seed))
        self.state.t.copy_(late.to(self.device))

    def renew(self) -> None:
        """Begin the next episode of every waiting arena now, for libraries that want to see its start at once."""
        rows = self.waiting.nonzero()[:, 0]
        if not len(rows):
            return
        if self._branching:
            self._refill_if_short(len(rows))
        self._write(self._with_fresh_starts(self.state))
        self.waiting.fill_(False)
        self._obs[rows] = observe(self.state.select(rows), self.cfg)

    def refill(self) -> None:
        """Renew every fresh start. Call between rollouts (it draws random numbers, so not inside a captured graph)."""
        cfg = replace(self.cfg, escape_boost_speed=self._boost)
        for buffer, value in zip(self.bank, sample_starts(self.bank_size, self.fish, cfg, self.generator)):
            buffer.copy_(value)
        self.starts_used.zero_()

    def pop_stats(self) -> dict[str, Any]:
        """Statistics since the last call (see `EpisodeStats.pop`); the only read-back from the device."""
        return self.stats.pop()

    # ------------------------------------------------------------ dials

    def set_density_penalty(self, coef: float, target: float | None = None) -> None:
        """Takes effect at the next step, also inside a captured graph (but see `uses_neighbours`)."""
        self.crowd.coef.fill_(coef)
        self._penalised = coef != 0
        if target is not None:
            self.crowd.target.fill_(target)

    def set_escape_boost_speed(self, speed: float) -> None:
        """Takes effect at the next resets; renews the bank when the value changes."""
        if not 0 <= speed <= 1:
            raise UserError(f"escape_boost_speed is {speed:g}; it must be between 0 and 1.")
        if speed != self._boost:
            self._boost = speed
            self.refill()

    def set_fish_count(self, count: int | Tensor) -> None:
        """Fish per arena (a number or [B]) from each arena's next reset on; call `reset()` to have it at once."""
        counts = torch.as_tensor(count, device=self.device).expand(self.arenas)
        if not bool(((counts >= 1) & (counts <= self.fish)).all()):
            raise UserError(f"The fish count must lie between 1 and the world's {self.fish} slots.")
        self.fish_count.copy_(counts)

    def set_force_reset_steps(self, steps: int) -> None:
        """Truncate episodes after `steps` steps; 0 or less plays all 500."""
        self.step_limit.fill_(min(steps, sea.EPISODE_STEPS) if steps > 0 else sea.EPISODE_STEPS)

    def feed(self, starts: HardStarts | None) -> None:
        """Replace the queue of hard starts; `None` empties it. `resets_since_feed` [B] counts from here.

        The feeder owns the stock: after a rollout it looks at `resets_since_feed`, books that many slots of each arena
        and feeds the next ones. A reset beyond the last slot is ordinary. Keep K constant inside a captured graph.
        With override_preroll=rerandomised each velocity is played through a pre-roll here and now.
        """
        queue = self._empty_queue(1)
        if starts is not None:
            given = (starts.active, starts.stage, starts.velocity, starts.position)
            queue = _Queue(*(tensor.to(self.device) for tensor in given))
        if queue.active.dim() != 2 or queue.active.shape[1] != self.arenas:
            raise UserError(f"Hard starts have the shape {list(queue.active.shape)}; expected [slots, {self.arenas}].")
        if starts is not None and self.cfg.override_preroll == "rerandomised":
            queue = self._blur(queue)
        if queue.active.shape != self.queue.active.shape:
            self.queue = self._empty_queue(len(queue.active))
        for buffer, value in zip(self.queue, queue):  # the same memory, so that a captured graph sees the new slots
            buffer.copy_(value)
        self.resets_since_feed.zero_()

    @property
    def uses_neighbours(self) -> bool:
        """Whether a step looks at neighbours at all. A captured graph must be captured anew when this changes."""
        summary = self.cfg.include_neighbor_features and self.cfg.neighbor_view == "summary"
        return summary or self.cfg.divergence_reward_coef != 0 or self._penalised

    # ------------------------------------------------------------ state

    def get_state(self) -> SeaState:
        return self.state.clone()

    def set_state(self, state: SeaState) -> None:
        """Continue from `state` (same B and F); episodes under way lose their running return."""
        self._write(state)
        self.waiting.zero_()
        self.stats.returns.zero_()
        self._perceive_now()

    def _tensors(self) -> dict[str, Tensor]:
        groups: dict[str, Any] = {
            "state": self.state._asdict(),
            "bank": self.bank._asdict(),
            "queue": self.queue._asdict(),
            "crowd": self.crowd._asdict(),
            "stats": self.stats.tensors(),
            "world": {
                "waiting": self.waiting,
                "obs": self._obs,
                "step_limit": self.step_limit,
                "fish_count": self.fish_count,
                "starts_used": self.starts_used,
                "resets_since_feed": self.resets_since_feed,
                "stage": self.stage,
            },
        }
        return {f"{group}.{name}": tensor for group, members in groups.items() for name, tensor in members.items()}

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on bit for bit (on a CPU): tensors and plain values only."""
        saved: dict[str, Any] = {name: tensor.clone() for name, tensor in self._tensors().items()}
        saved["boost"] = self._boost
        saved["generator"] = self.generator.get_state()
        return saved

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        if saved["queue.active"].shape != self.queue.active.shape:
            self.queue = self._empty_queue(len(saved["queue.active"]))
        for name, tensor in self._tensors().items():
            if saved[name].shape != tensor.shape:
                shapes = f"{tuple(saved[name].shape)}, here {tuple(tensor.shape)}"
                raise UserError(f"The saved world does not fit: {name} has shape {shapes}.")
            tensor.copy_(saved[name])
        self._boost = float(saved["boost"])
        self._penalised = bool(self.crowd.coef != 0)
        self.generator.set_state(saved["generator"].cpu())

    # ------------------------------------------------------------ the step

    def _step(self, actions: Tensor) -> Transition:
        before, resetting = self.state, self.waiting
        current = advance(before, actions, self._predator_step)
        some_reset = not self._branching or bool(resetting.any())
        if some_reset:
            if self._branching:
                self._refill_if_short(int(resetting.sum()))
            current = self._with_fresh_starts(current)
        terms = self._perceive(current, before.alive)
        if some_reset:
            terms = RewardTerms(*(torch.where(resetting[:, None], 0.0, term) for term in terms))
        gain = terms.total()
        died = before.alive & ~current.alive & ~resetting[:, None]
        ended = (current.t >= self.step_limit) | ~current.alive.any(1)  # never a fresh arena: its t is 0
        survivors = current.alive & ended[:, None]
        truncated, terminated = survivors, died
        if self.cfg.episode_end == "terminated":
            out_of_time = survivors & (current.t >= sea.EPISODE_STEPS)[:, None]
            truncated, terminated = survivors & ~out_of_time, died | out_of_time
        self._record(current, terms, gain, ended)
        self._write(current)
        self.waiting.copy_(ended)
        return Transition(gain, terminated, truncated)

    def _perceive(self, state: SeaState, was_alive: Tensor) -> RewardTerms:
        """Observe `state` into the buffer; neighbours are looked up once for observation and reward."""
        seen = sight(state, self.cfg.vision_radius)
        social = neighbours(state, self.cfg, self._scratch) if self.uses_neighbours else None
        observe(state, self.cfg, social, seen, out=self._obs)
        return reward(state, was_alive, self.cfg, social, seen, self.crowd)

    def _perceive_now(self) -> None:
        self._perceive(self.state, self.state.alive)

    def _record(self, state: SeaState, terms: RewardTerms, gain: Tensor, ended: Tensor) -> None:
        self.stats.record_step(state, terms, gain)
        first = state.t == 1
        if not self._branching or bool(first.any()):
            self.stats.record_step_one(state, first, self.stage)
        if not self._branching or bool(ended.any()):
            self.stats.record_end(state, ended)

    # ------------------------------------------------------------ resets

    def _with_fresh_starts(self, state: SeaState) -> SeaState:
        """`state` with every waiting arena replaced by the next start of the bank, under its next override."""
        waiting = self.waiting
        order = waiting.cumsum(0) - 1 + self.starts_used
        row = torch.where(waiting, order % self.bank_size, 0)
        starts = Starts(*(values[row] for values in self.bank))
        active, stage, velocity, position = self._next_slot()
        placed = active & ~position[:, 0].isnan()
        fresh = begin(
            starts._replace(
                predator_x=torch.where(placed, position[:, 0], starts.predator_x),
                predator_y=torch.where(placed, position[:, 1], starts.predator_y),
                predator_vx=torch.where(active, velocity[:, 0], starts.predator_vx),
                predator_vy=torch.where(active, velocity[:, 1], starts.predator_vy),
            ),
            self._slot < self.fish_count[:, None],
        )
        self.stats.record_reset(waiting, active, waiting & (order >= self.bank_size))
        self.stage.copy_(torch.where(waiting, torch.where(active, stage, -1), self.stage))
        self.starts_used += waiting.sum()
        self.resets_since_feed += waiting
        return SeaState(
            *(torch.where(waiting[:, None] if old.dim() == 2 else waiting, new, old) for new, old in zip(fresh, state))
        )

    def _next_slot(self) -> _Queue:
        """Each arena's front slot [B, ...]; not active where there is none or the arena is not being reset."""
        slots = len(self.queue.active)
        slot = self.resets_since_feed.clamp(max=slots - 1)
        front = _Queue(*(values[slot, self._arena] for values in self.queue))
        return front._replace(active=front.active & self.waiting & (self.resets_since_feed < slots))

    def _refill_if_short(self, needed: int) -> None:
        """On a CPU the bank never runs dry: reading how much is left costs nothing there."""
        if int(self.starts_used) + needed > self.bank_size:
            self.refill()

    def _blur(self, queue: _Queue) -> _Queue:
        """The original's reading of a hard start: its velocity begins a pre-roll from an ordinary place."""
        vx, vy = queue.velocity.reshape(-1, 2).unbind(1)
        predator = sample_predators(len(vx), self.cfg, self.generator, velocity=(vx, vy))
        return queue._replace(
            position=torch.stack(predator[:2], dim=1).reshape(queue.position.shape),
            velocity=torch.stack(predator[2:], dim=1).reshape(queue.velocity.shape),
        )

    # ------------------------------------------------------------ memory

    def _allocate(self) -> SeaState:
        def fish(dtype: torch.dtype) -> Tensor:
            return plane(self.arenas, self.fish, dtype, self.device)

        def arena(dtype: torch.dtype) -> Tensor:
            return torch.zeros(self.arenas, dtype=dtype, device=self.device)

        return SeaState(
            x=fish(torch.float32), y=fish(torch.float32), vx=fish(torch.float32), vy=fish(torch.float32),
            exists=fish(torch.bool), alive=fish(torch.bool), death_step=fish(torch.int32),
            predator_x=arena(torch.float32), predator_y=arena(torch.float32), predator_vx=arena(torch.float32),
            predator_vy=arena(torch.float32), t=arena(torch.int32),
            pack=torch.zeros(self.arenas, 4 * (self.cfg.predator_count - 1), device=self.device),
            memory=torch.zeros(self.arenas, self.cfg.predator_memory, device=self.device),
        )  # fmt: skip

    def _empty_queue(self, slots: int) -> _Queue:
        shape = (slots, self.arenas)
        return _Queue(
            active=torch.zeros(shape, dtype=torch.bool, device=self.device),
            stage=torch.full(shape, -1, dtype=torch.int64, device=self.device),
            velocity=torch.zeros(*shape, 2, device=self.device),
            position=torch.zeros(*shape, 2, device=self.device),
        )

    def _write(self, state: SeaState) -> None:
        """Into the world's own memory, which never moves: a captured graph goes on from where it ended."""
        for buffer, value in zip(self.state, state):
            buffer.copy_(value)
