"""GreedyStdAgent as arrays: concedes in price from round to round and answers one negotiation after the other.

Written from what the agent is seen to do. Within a half-round its threads are answered in the order of partners, each
knowing what the ones before it have signed; among partners that decide jointly this is what happens in the simulator.
"""

from __future__ import annotations

import torch
from torch import Tensor

from marlab.market.vector.books import SLOTS
from marlab.market.vector.market import Market
from marlab.market.vector.rounds import ACCEPT, OFFER, ROUNDS, Moves
from marlab.market.vector.seats import CONSUMERS, Policy, Rows, commitments, needs_of

TARGET = 0.75
"""Share of its lines that it wants to use on a later day, and, in the middle of the chain, today."""
LATER = 0.9
"""How good a price for a later day must be, and how far from the highest price its range begins."""


class Greedy(Policy):
    """The policy. Each factory draws a character of its own: how fast it concedes and how much slack it allows."""

    def __init__(self, generator: torch.Generator | None) -> None:
        self.generator = generator
        self._character: Tensor | None = None  # [5, B, L, A]: exponent, slacks of day, partner, deals, range
        self._deals: Tensor | None = None  # [B, L, A, 2, A]: the best price ever agreed with each partner; 0: none
        self._best: Tensor | None = None  # [B, L, A, 2]: the best price offered to it today; 0: none
        self._best_of: Tensor | None = None  # [B, L, A, 2, A]: what that was when a partner last offered; 0: none

    def open(self, market: Market) -> None:
        """A new day: yesterday's best prices are forgotten, deals are not."""
        seats, device = market.setup.lines.shape, market.device
        if self._character is None:
            drawn = torch.rand((5, *seats), device=device, generator=self.generator)
            scale = torch.tensor([0.8, 0.1, 0.1, 0.1, 0.2], device=device)[:, None, None, None]
            base = torch.tensor([0.2, 0.05, 0.05, 0.05, 0.05], device=device)[:, None, None, None]
            self._character = base + scale * drawn
            self._deals = torch.zeros((*seats, 2, market.wide), device=device)
        assert self._deals is not None
        self._deals = torch.where((market.day == 0)[:, None, None, None, None], 0.0, self._deals)
        self._best = torch.zeros((*seats, 2), device=device)
        self._best_of = torch.zeros_like(self._deals)

    def answer(self, market: Market, rows: Rows) -> tuple[Moves, Tensor]:
        """One side after the other, one partner after the other."""
        assert self._character is not None and self._deals is not None
        assert self._best is not None and self._best_of is not None
        signed = commitments(market, rows)
        needs = needs_of(market, rows, signed)
        first, last = market.setup.first[rows.world, rows.level], rows.level == market.levels - 1
        middle, lines = ~first & ~last, market.setup.lines[rows.seat].float()
        running = rows.gather(market.threads.running) & rows.sides[:, :, None]
        units, price, ahead = (
            rows.gather(v) for v in (market.threads.units, market.threads.price, market.threads.ahead)
        )
        low_high = torch.stack([market.ranges.price_low, market.ranges.price_high])[..., 0, 0]  # [2, B, P]
        out = [torch.zeros_like(units) for _ in range(4)]
        self._learn(market, rows)
        # for sides: needs of today, what is committed by day, price limits
        for side, today, committed in ((0, needs.supplies, signed.supplies), (1, needs.sales, signed.sales)):
            k = (rows.level - 1 + side).clamp(0, market.levels - 2)
            low, high = low_high[:, rows.world, k].float()
            need = torch.where(middle, TARGET * lines, today.float())
            sold = committed.float().clone()
            both = _Side(side == CONSUMERS, low, high, self._character[(slice(None), *rows.seat)])
            for j in range(market.wide):
                here = running[:, side, j]
                deal = self._deals[rows.seat][:, side, j]
                best, best_of = self._best[rows.seat][:, side], self._best_of[rows.seat][:, side, j]
                offer = units[:, side, j].float(), price[:, side, j].float(), ahead[:, side, j]
                takes = torch.zeros_like(here)
                if market.half > 0:
                    fits, takes = both.respond(market, offer, need, sold, lines, (best, best_of, deal))
                    takes &= here
                    update = here & fits & (offer[2] == 0)
                    better = both.better(offer[1], best)
                    best = torch.where(update, better, best)
                    best_of = torch.where(update, better, best_of)
                    self._best[(*rows.seat, torch.full_like(rows.world, side))] = best
                    self._best_of[(*rows.seat, torch.full_like(rows.world, side), torch.full_like(rows.world, j))] = (
                        best_of
                    )
                    taken = torch.where(takes, offer[0], 0.0)
                    need = torch.where(middle, need, need - taken * (offer[2] == 0))
                    sold.scatter_add_(1, offer[2].long()[:, None], taken[:, None])
                mine = self._offer(market, rows, need, sold, lines)
                asked = both.price(market, mine[1], (best, best_of, deal))
                values = (torch.where(takes, ACCEPT, OFFER), mine[0], asked, mine[1])
                for table, value in zip(out, values):
                    table[:, side, j] = value.to(table.dtype)
        return Moves(*(table[running] for table in out)), rows.threads[running]

    def _learn(self, market: Market, rows: Rows) -> None:
        """Prices of deals agreed so far today enter the memory of deals."""
        assert self._deals is not None
        agreed = rows.gather(market.threads.agreed_units) > 0
        price = rows.gather(market.threads.agreed_price).float()
        known = self._deals[rows.seat]
        sells = torch.tensor([False, True], device=price.device)[:, None]
        best = torch.where((known == 0) | (torch.where(sells, price > known, price < known)), price, known)
        self._deals[rows.seat] = torch.where(agreed & rows.sides[:, :, None], best, known)

    def _offer(self, market: Market, rows: Rows, need: Tensor, sold: Tensor, lines: Tensor) -> tuple[Tensor, Tensor]:
        """Units and days of own offers [N]: today's need, or that of a random later day."""
        most = float(market.quantity_most)
        days = torch.arange(SLOTS, device=need.device)
        ahead_max = market.ranges.ahead_max[rows.world, 0, 0, 0][:, None]
        later = TARGET * (lines[:, None] - sold)
        later[:, 0] = TARGET * lines  # today counts as if nothing was signed
        largest = torch.minimum(later.clamp(1, most), lines[:, None] * days)
        good = (later > 0) & (largest >= 1) & (days <= ahead_max)
        drawn = torch.rand(later.shape, device=need.device, generator=self.generator)
        when = ((drawn + 1) * good).argmax(1)
        now = need.trunc() > 0
        # with no day to offer for, it offers for today what the last day that it looked at needed
        fallback = (drawn + 2.0 * (days > ahead_max)).argmin(1)
        wanted = later.gather(1, fallback[:, None])[:, 0]
        top_now = torch.minimum(torch.where(now, need.trunc(), wanted).clamp(1, most), lines)
        top_later = largest.gather(1, when[:, None])[:, 0]
        is_later = ~now & good.any(1)
        top = torch.where(is_later, top_later, top_now)
        share = (market.day / market.setup.n_steps)[rows.world]
        least = (0.5 + top * share).floor().clamp(min=1)
        top = torch.maximum(top.floor(), least)
        pick = torch.rand(top.shape, device=top.device, generator=self.generator)
        return least + (pick * (top - least + 1)).floor(), torch.where(is_later, when, 0)


class _Side:
    """Price rules of one side of rows."""

    def __init__(self, sells: bool, low: Tensor, high: Tensor, character: Tensor) -> None:
        self.sells, self.low, self.high = sells, low, high
        self.power, self.slack_day, self.slack_partner, self.slack_deals, self.slack_range = character

    def better(self, one: Tensor, other: Tensor) -> Tensor:
        """The better of two prices; 0 is none."""
        if self.sells:
            return torch.maximum(one, other)
        return torch.where(other == 0, one, torch.minimum(one, other))

    def _bounds(self, today: Tensor, known: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        low = torch.where(today, self.low, (self.high * LATER).floor())
        high = self.high
        slacks = (self.slack_day, self.slack_partner, self.slack_deals)
        if self.sells:
            for best, slack in zip(known, slacks):
                low = torch.maximum(low, best * (1 - slack))
            low = torch.minimum(high * (1 - self.slack_range), low)
        else:
            for best, slack in zip(known, slacks):
                high = torch.where(best > 0, torch.minimum(high, best * (1 + slack)), high)
            high = torch.maximum(low * (1 + self.slack_range), high)
        return low.floor(), high.floor()

    def _threshold(self, market: Market) -> Tensor:
        return ((ROUNDS - market.half // 2 - 1) / (ROUNDS - 1)) ** self.power

    def price(self, market: Market, ahead: Tensor, known: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """What it asks or bids."""
        low, high = self._bounds(ahead == 0, known)
        gap = self._threshold(market) * (high - low)
        return (low + gap if self.sells else high - gap).floor()

    def respond(
        self, market: Market, offer: tuple[Tensor, Tensor, Tensor], need: Tensor, sold: Tensor, lines: Tensor,
        known: tuple[Tensor, Tensor, Tensor],
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Whether an offer fits its needs, and whether it is taken."""
        units, price, ahead = offer
        today = ahead == 0
        later = TARGET * (lines - sold.gather(1, ahead.long()[:, None])[:, 0])
        fits = torch.where(today, units <= need, units < later)
        low, high = self._bounds(today, known)
        threshold = torch.where(today, self._threshold(market), LATER) * (high - low)
        good = (price - low if self.sells else high - price) >= threshold
        return fits, fits & good
