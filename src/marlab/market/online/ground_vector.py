"""The ground for volume: a batch of vector-market worlds with the learner in some selling seats.

A generation is a batch that begins anew and goes on for some days. The first worlds of its places have any length, so
that later ones are on different days; a world that ends makes room for a fresh one of the same shape. Everything is
drawn from the seed and the number of the generation, so a training that goes on after a generation needs no worlds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from marlab.market.online.credit import Rewards, signing_round
from marlab.market.online.player import Player
from marlab.market.online.pool import Pool
from marlab.market.online.settings import OnlineConfig
from marlab.market.rules import around, worth
from marlab.market.simulator.seating import shape_of
from marlab.market.vector.builtin import Seated
from marlab.market.vector.configs import Configs
from marlab.market.vector.generate import generate_like
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import HALVES, ROUNDS
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import CONSUMERS, movers
from marlab.market.vector.setup import Setup, make_setup

Tensor = Any
LEARNER = 1
SHORTEST = 8
"""Days of the shortest first world of a place."""
OFFICIAL_LEVELS, OFFICIAL_FACTORIES = (2, 4), (3, 6)


class Shapes(NamedTuple):
    """Levels [B], factories of each level [B, L] and days [B] of worlds."""

    n_levels: np.ndarray[Any, Any]
    sizes: np.ndarray[Any, Any]
    n_steps: np.ndarray[Any, Any]


def draw_shapes(config: OnlineConfig, worlds: int, draw: np.random.Generator) -> Shapes:
    """Shapes in turn, days at random."""
    levels, sizes = np.zeros(worlds, np.int64), np.zeros((worlds, 4), np.int64)
    for i in range(worlds):
        shape = shape_of(config.shapes[i % len(config.shapes)])
        if shape is None:
            levels[i] = draw.integers(OFFICIAL_LEVELS[0], OFFICIAL_LEVELS[1] + 1)
            sizes[i, : levels[i]] = draw.integers(OFFICIAL_FACTORIES[0], OFFICIAL_FACTORIES[1] + 1, levels[i])
        else:
            levels[i] = shape[0]
            sizes[i, : shape[0]] = shape[1]
    days = draw.integers(config.days[0], config.days[1] + 1, worlds)
    return Shapes(levels, sizes[:, : levels.max()], days)


class Rows(NamedTuple):
    """Choices of a rollout, M of them."""

    step: Tensor  # [M] round, counted from the start of the rollout
    seat: Tensor  # [M] number of the learner's seat
    partner: Tensor  # [M]
    x: Tensor  # [M, D]
    mask: Tensor  # [M, C]
    choices: Tensor  # [M, 4]
    logp: Tensor  # [M]


def join(before: Any, after: Any, steps: int) -> Any:
    """Choices of days that follow each other; the first ones have so many rounds."""
    later = after._replace(step=after.step + steps)
    return type(before)(*(torch.cat(parts) for parts in zip(before, later)))


class Ground:
    """The worlds of one generation."""

    def __init__(
        self, config: OnlineConfig, net: Any, pool: Pool, generation: int, device: torch.device,
        dtype: torch.dtype = torch.float32, plays: type[Player] = Player,
    ) -> None:  # fmt: skip
        """`plays`: what the learner is in its seats, with the network `net`."""
        self.config, self.pool, self.device, self.dtype = config, pool, device, dtype
        self._draw = np.random.default_rng([config.seed, generation])
        seed = int(self._draw.integers(2**62))
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self._shapes = draw_shapes(config, config.worlds, self._draw)
        shortest = min(SHORTEST, config.days[0])
        first = self._draw.integers(shortest, config.days[1] + 1, config.worlds)
        self._pad = (int(self._shapes.n_levels.max()), int(self._shapes.sizes.max()), config.days[1])
        self.market = Market(self._setup(np.arange(config.worlds), first))
        self.kind = self._seats()
        rule = RuleW(self.market, chosen=pool.remembering(self.kind), quick=True)
        self.player = plays(self.market, rule, self.kind == LEARNER, net, self.generator, self)
        self.rows = self.player.rows
        calls = torch.zeros(self.market.levels, dtype=torch.bool, device=device)
        calls[movers(self.market.levels, 0)] = True
        self._calls = calls[self.rows.level][:, None]  # [N, 1]
        others, asked = pool.policies(self.market, rule, self.kind, net, self.generator, plays)
        self.seated = Seated(self.market, asked, {-1: rule, LEARNER: self.player, **others}, self.generator)
        self._notes: list[Any] = []
        self.step = 0
        self._gaps: list[Tensor] = []  # [kinds, 2] of worlds that ended: sums of how far each was ahead, and counts
        self._morning()

    # --- play ---------------------------------------------------------------------------------------------------

    def play(self, days: int) -> tuple[Any, Rewards]:
        """Play whole days, and what they brought."""
        market = self.market
        own = torch.zeros((days * ROUNDS, len(self.rows), market.wide), dtype=self.dtype, device=self.device)
        evening = torch.zeros((days, len(self.rows)), dtype=self.dtype, device=self.device)
        ended = torch.zeros((days, len(self.rows)), dtype=torch.bool, device=self.device)
        self._notes = []
        for day in range(days):
            for half in range(HALVES):
                self.step = day * ROUNDS + half // 2
                market.move(self.seated(market))
            own[day * ROUNDS : (day + 1) * ROUNDS] = self._signed()
            evening[day], ended[day] = self._evening(own[day * ROUNDS : (day + 1) * ROUNDS].sum((0, 2)))
        notes, self._notes = self._notes, []
        played = type(notes[0])(*(torch.cat(part) for part in zip(*notes))) if notes else self._nothing()
        return played, Rewards(own, evening, ended)

    def note(self, rows: Any) -> None:
        """Write down choices of a round: tuples of one type, with equal first dimensions."""
        self._notes.append(rows)

    def add(self, market: Market, seats: Tensor, x: Tensor, chosen: around.Chosen, logp: Tensor) -> None:
        """Write down the choices of a round: those where there was something to choose."""
        row, partner = torch.as_tensor(chosen.free).nonzero(as_tuple=True)
        mask, choices = torch.as_tensor(chosen.mask)[row, partner], torch.as_tensor(chosen.choices)[row, partner]
        step = torch.full_like(row, self.step)
        self.note(Rows(step, seats[row], partner, x[row, partner], mask, choices, logp[row, partner]))

    def _nothing(self) -> Rows:
        none = torch.zeros(0, dtype=torch.long, device=self.device)
        mask = torch.zeros((0, around.CHOICES), dtype=torch.bool, device=self.device)
        x, choices = none.new_zeros((0, around.INPUTS)).float(), none.new_zeros((0, len(around.HEADS)))
        return Rows(none, none, none, x, mask, choices, none.float())

    def _signed(self) -> Tensor:
        """[20, N, K] worth of today's sales, in the rounds of the choices that led to them."""
        threads, side = self.market.threads, (slice(None), CONSUMERS)
        units, price, ahead, half = (
            self.rows.gather(part)[side]
            for part in (threads.agreed_units, threads.agreed_price, threads.agreed_ahead, threads.agreed_half)
        )
        sells = self.rows.sides[:, CONSUMERS, None] & (units > 0)
        state, dtype = self._state, self.market.balance.dtype
        terms: list[Tensor] = [part.to(dtype) for part in (units, price, ahead)]
        gain: Tensor = worth.contract(state, *terms)
        out = torch.zeros((ROUNDS, *units.shape), dtype=self.dtype, device=self.device)
        place = signing_round(half, self._calls)[None].long()
        return out.scatter_(0, place, torch.where(sells, gain, 0.0)[None])

    def _morning(self) -> None:
        """Open a day, and note what contracts and stock are worth."""
        self.market.open_day()
        self.seated.open(self.market)
        self._state = self.player.mornings.at(self.market, self.rows, alive=True)
        self._worth: Tensor = worth.potential(self._state)
        self._sunk: Tensor = worth.sunk(self._state)

    def _evening(self, signed: Tensor) -> tuple[Tensor, Tensor]:
        """Close the day and open the next: what it brought beside the contracts signed [N], and which worlds ended."""
        market, seat = self.market, self.rows.seat
        before, opening = market.balance[seat], market.setup.balance[seat].clamp(min=1)
        was_playing = market.playing[self.rows.world]
        worth_before, sunk = self._worth, self._sunk
        self.seated.close(market)
        market.close_day()
        earned = (market.balance[seat] - before) / opening
        over = ~market.playing
        ended = over[self.rows.world]
        if bool(over.any()):
            self._compare(over)
            self._renew(over)
        self._morning()
        gained = torch.where(ended, 0.0, self._worth) - worth_before
        return (earned + gained + sunk) * was_playing - signed, ended

    # --- worlds -------------------------------------------------------------------------------------------------

    def _setup(self, places: np.ndarray[Any, Any], days: np.ndarray[Any, Any]) -> Setup:
        shapes = self._shapes
        configs: Configs = generate_like(shapes.n_levels[places], shapes.sizes[places], days, self._draw)
        return make_setup(configs, self.dtype, self.device, self._pad)

    def _renew(self, over: Tensor) -> None:
        """Fresh worlds of the same shapes in some places [B], bool."""
        places = over.nonzero()[:, 0]
        fresh = self._setup(places.cpu().numpy(), self._shapes.n_steps[places.cpu().numpy()])
        parts = []
        for old, new in zip(self.market.setup, fresh):
            part = old.clone()
            part[places] = new
            parts.append(part)
        self.market.restart(over, Setup(*parts))

    def _seats(self) -> Tensor:
        """[B, L, A] who sits where: the learner in some selling seats of each world, opponents drawn for the others."""
        setup = self.market.setup
        exists = setup.exists.cpu()
        chances = self.pool.chances()
        drawn = torch.as_tensor(self._draw.choice(self.pool.kinds, tuple(exists.shape), p=chances.numpy()))
        order = torch.as_tensor(self._draw.random(tuple(exists.shape)))
        order[~exists] = 2.0
        order[:, -1] = 2.0  # the last level has nobody to sell to
        flat = order.flatten(1)
        rank = flat.argsort(1).argsort(1)
        learns = ((rank < self.config.learners) & (flat < 1)).view(exists.shape)
        return torch.where(learns, LEARNER, drawn).to(self.device)

    def _compare(self, over: Tensor) -> None:
        """How much more than the learner each kind earned at its level, in worlds that ended."""
        scores = torch.nan_to_num(self.market.scores()[over]).clamp(-1, 4)  # [W, L, A]
        kind, exists = self.kind[over], self.market.setup.exists[over]
        mine = (kind == LEARNER) & exists
        count = mine.sum(2, keepdim=True)
        usual = (scores * mine).sum(2, keepdim=True) / count.clamp(min=1)
        counts = exists & (count > 0)
        gap = torch.zeros((self.pool.kinds, 2), device=self.device)
        place = kind[counts]
        gap[:, 0].index_add_(0, place, (scores - usual)[counts].float())
        gap[:, 1].index_add_(0, place, torch.ones_like(place, dtype=torch.float32))
        self._gaps.append(gap)

    def tell_pool(self) -> None:
        """Let the pool know who was ahead of the learner."""
        if self._gaps:
            sums, counts = torch.stack(self._gaps).sum(0).unbind(1)
            self.pool.learn(sums / counts.clamp(min=1), counts > 0)

    def others(self) -> Tensor:
        """[N, K, 3 kinds] what only a central critic sees: who the partner is, who all partners and rivals are."""
        kinds = self.pool.kinds
        one_hot = torch.nn.functional.one_hot(self.kind.clamp(min=0), kinds).float()
        one_hot = one_hot * self.market.setup.exists[..., None]  # [B, L, A, kinds]
        after = (self.rows.level + 1).clamp(max=self.market.levels - 1)
        partner = one_hot[self.rows.world, after]  # [N, A, kinds]
        rivals = one_hot[self.rows.world, self.rows.level].mean(1, keepdim=True)
        shape = partner.shape
        return torch.cat([partner, partner.mean(1, keepdim=True).expand(shape), rivals.expand(shape)], -1)
