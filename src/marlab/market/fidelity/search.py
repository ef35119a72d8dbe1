"""A search over all options of rule W at once: every candidate of a generation in the same seats of one batch.

Candidates come from CMA-ES (`cmaes`), in a cube that `options_of` turns into options. The rule as it is plays along in
every generation, and what counts is the difference to it, seat by seat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.market.agent.settings import AgentSettings
from marlab.market.fidelity.plan import FidelityConfig, Seat, seats_of
from marlab.market.fidelity.report import Mean, mean
from marlab.market.fidelity.vector import play_batch
from marlab.market.rules.bargain import RuleOptions
from marlab.market.vector.clones import ClonePack
from marlab.market.vector.configs import Configs

Array = NDArray[np.float64]
RANGES = (
    (0, 8), (1, 15), (1, 12), (1, 10), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (1, 10), (0.0, 1.0), (0, 20), (0.0, 0.3),
    (0, 1),
)  # fmt: skip
"""Opening days; lots and prices of the first three rounds; small lot and price; hold; loss; whether stock is filled
first. Whole numbers where both ends are."""


class Generation(NamedTuple):
    """What a generation found."""

    number: int
    best: RuleOptions  # of this generation
    gain: Mean  # of the best, less the rule, in the seats that chose it
    usual: float  # the mean of all candidates, less the rule
    centre: RuleOptions  # where the search stands: what it would answer now


def options_of(point: Array) -> RuleOptions:
    """Options from a point of the unit cube [12]."""
    values: list[Any] = []
    for share, (low, high) in zip(np.clip(point, 0, 1), RANGES):
        value = low + share * (high - low)
        values.append(round(value) if isinstance(low, int) else round(float(value), 3))
    days, *middle = values
    lots, prices = tuple(middle[:3]), tuple(middle[3:6])
    small_lot, small_price, hold, loss, fill_first = middle[6:]
    return RuleOptions(days, lots, prices, small_lot, small_price, hold, loss, bool(fill_first))


def point_of(options: RuleOptions) -> Array:
    """The inverse: where options lie in the unit cube."""
    values = (
        options.opening_days, *options.opening_lots, *options.opening_prices, options.small_lot, options.small_price,
        options.hold, options.loss, int(options.fill_first),
    )  # fmt: skip
    if len(values) != len(RANGES):
        raise UserError("The search knows options with three opening lots and prices.")
    return np.array([(value - low) / (high - low) for value, (low, high) in zip(values, RANGES)])


def play_candidates(
    candidates: list[RuleOptions], seats: list[Seat], configs: Configs, pack: ClonePack, seed: int,
    device: torch.device, repeats: int = 1,
) -> Array:  # fmt: skip
    """[candidates, seats] scores less the rule's in the same seats."""
    agents = [AgentSettings(mode="heuristic", rule=options) for options in (RuleOptions(), *candidates)]
    scores = play_batch(configs, seats, agents, repeats, pack, seed, device).mean(2)
    return np.asarray(scores[1:] - scores[0])


def search(
    config: FidelityConfig, configs: Configs, pack: ClonePack, device: torch.device, generations: int,
    candidates: int, stop: Callable[[], bool] = lambda: False, start: RuleOptions | None = None, sigma: float = 0.2,
) -> Iterator[Generation]:  # fmt: skip
    """Generations one after the other; `configs`: a market for each seat of `config`; `start`: the first centre, by
    default the rule's own options, `sigma`: how far candidates lie from it at first, in the cube."""
    from cmaes import CMA

    seats = seats_of(config)
    markets = np.array([seat.config for seat in seats])
    unit = np.stack([np.zeros(len(RANGES)), np.ones(len(RANGES))], 1)
    centre = np.clip(point_of(start or RuleOptions()), 0.02, 0.98)
    optimiser = CMA(mean=centre, sigma=sigma, bounds=unit, seed=config.seed, population_size=candidates)
    for number in range(generations):
        if stop():
            return
        points = [optimiser.ask() for _ in range(candidates)]
        gains = play_candidates(
            [options_of(point) for point in points], seats, configs, pack, config.seed * 7_919 + number, device,
            config.repeats,
        )  # fmt: skip
        optimiser.tell([(point, -float(gain)) for point, gain in zip(points, gains.mean(1))])
        best = int(gains.mean(1).argmax())
        found, usual = options_of(optimiser.mean), float(gains.mean())
        yield Generation(number, options_of(points[best]), mean(gains[best], markets), usual, found)
