"""The trainer: batches of worlds with drawn habits, then a step of the centres of both positions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.lab.runs.rng import Rngs
from marlab.lab.stats import mean_interval
from marlab.market.agent.layers import find_learned, load_habits
from marlab.market.habits import evolve
from marlab.market.habits.evolve import Moments
from marlab.market.habits.ground import CENTRE, DRAWN, THE_RULE, Batch, Sold, plays_of, sell
from marlab.market.habits.settings import HabitsConfig
from marlab.market.online.settings import RULE
from marlab.market.rules.habits import POSITIONS, WORDS, Learnt
from marlab.market.simulator.seating import shape_of
from marlab.market.vector.clones import load

HELD_OUT = 10_000
"""Batches from this number on are used for nothing but the last word."""


def gains(sold: Sold, position: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """What the centre's seats earn more than the rule's, by market."""
    here = sold.position == position
    markets = np.unique(sold.market[here])
    means = []
    for plays in (CENTRE, THE_RULE):
        some = here & (sold.plays == plays)
        place = np.searchsorted(markets, sold.market[some])
        means.append(np.bincount(place, sold.score[some], len(markets)) / np.bincount(place, minlength=len(markets)))
    return np.asarray(means[0] - means[1])


class HabitsTrainer:
    """Learns in steps; between two of them everything that matters is in `state_dict`."""

    def __init__(self, config: HabitsConfig, device: torch.device) -> None:
        self.config, self.device = config, device
        self.pack = load(config.clones)
        begin = Learnt() if config.start == RULE else load_habits(find_learned(Path(config.start)))
        self.centres = [np.array(row) for row in begin]
        self.known: list[Moments] = [evolve.nothing() for _ in POSITIONS]
        self.step, self.total = 0, config.steps
        self.told: list[list[tuple[str, float, float]]] = [[] for _ in POSITIONS]

    @property
    def habits(self) -> Learnt:
        """What has been learnt."""
        return Learnt(*(tuple(float(value) for value in centre) for centre in self.centres))

    def iterate(self) -> Mapping[str, Any]:
        """Batches around the centres, then a step."""
        began, found = time.perf_counter(), [evolve.nothing() for _ in POSITIONS]
        earned: list[list[Any]] = [[] for _ in POSITIONS]
        for number in range(self.config.batches):
            sold = self.play(self.step * self.config.batches + number)
            for position in range(len(POSITIONS)):
                some = (sold.plays == DRAWN) & (sold.position == position)
                if some.any():
                    these = evolve.moments(sold.habits[some], sold.score[some], sold.market[some])
                    found[position] = found[position].plus(these)
                    earned[position].append(gains(sold, position))
        values: dict[str, Any] = {}
        for position, name in enumerate(POSITIONS):
            self.known[position] = self.known[position].plus(found[position], self.config.memory)
            if not earned[position]:
                continue
            fitted = evolve.fit(self.known[position])
            self.centres[position], promised = evolve.step(self.centres[position], fitted, self.config.reach)
            self.told[position] = evolve.told(fitted)
            mean, low, high = mean_interval(np.concatenate(earned[position]).tolist())
            ends = {"": mean, "_low": low, "_high": high}
            values |= {f"habits/gain_{name}{end}": float(value) for end, value in ends.items()}
            values |= {f"habits/promised_{name}": promised}
        every = np.concatenate([part for parts in earned for part in parts])
        self.step += 1
        return {"habits/gain": float(every.mean()), **values, "time/seconds": time.perf_counter() - began}

    def play(self, number: int, drawn: bool = True) -> Sold:
        """A batch of worlds, by its number; without `drawn` the rule and the centre take turns."""
        config, shape = self.config, self.config.shapes[number % len(self.config.shapes)]
        size = shape_of(shape)
        assert size is not None
        draws = config.draws if drawn else 2
        markets = config.markets if drawn else config.markets * config.draws // 2
        seed = Rngs(config.seed).draw_seed(f"habits/batch {number}") % 2**62
        batch = Batch((size[1],) * size[0], markets, draws, config.days, seed)

        def drawing(position: int, count: int, rng: np.random.Generator) -> evolve.Array:
            plays, centre = plays_of(count, draws), self.centres[position]
            habits = evolve.draw(centre, count, config.spread, config.share, rng)
            habits[plays == CENTRE] = centre
            habits[plays == THE_RULE] = evolve.USUAL
            return habits

        return sell(batch, self.pack, config.opponents, drawing, self.device)

    def last_word(self) -> dict[str, Any]:
        """The centre beside the rule, in worlds that nothing was learnt from."""
        earned: list[list[Any]] = [[] for _ in POSITIONS]
        for number in range(len(self.config.shapes)):
            sold = self.play(HELD_OUT + number, drawn=False)
            for position in range(len(POSITIONS)):
                if (sold.position == position).any():
                    earned[position].append(gains(sold, position))
        parts = {"learner minus rule": [part for parts in earned for part in parts]}
        parts |= {f"learner minus rule, {WORDS[name]}": earned[i] for i, name in enumerate(POSITIONS)}
        return {name: _mean(np.concatenate(values)) for name, values in parts.items() if values}

    def state_dict(self) -> dict[str, Any]:
        """Everything that a step depends on."""
        return {
            "step": self.step,
            "centres": [torch.tensor(row) for row in self.centres],
            "products": [torch.tensor(known.products) for known in self.known],
            "seats": [known.seats for known in self.known],
            "told": self.told,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self.step = int(state["step"])
        self.centres = [row.numpy().copy() for row in state["centres"]]
        pairs = zip(state["products"], state["seats"])
        self.known = [Moments(products.numpy().copy(), float(count)) for products, count in pairs]
        self.told = [[(str(name), float(a), float(b)) for name, a, b in rows] for rows in state["told"]]


def _mean(values: Any) -> dict[str, Any]:
    value, low, high = mean_interval(values.tolist())
    return {"value": float(value), "low": float(low), "high": float(high), "unit": "of the opening balance"}
