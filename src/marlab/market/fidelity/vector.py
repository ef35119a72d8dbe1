"""The seats in the vector market: clones in the population's seats, every seller in the others, many times over.

All sellers of many seats are one batch. What is done is kept in one file after every batch, and a batch is
a function of the seed and its number: a run that goes on plays what is missing and comes to the same scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.arrays import read_npz
from marlab.lab.runs.files import replacing, trusting
from marlab.market.agent.settings import AgentSettings
from marlab.market.fidelity.plan import FidelityConfig, Seat, seats_of
from marlab.market.fidelity.sellers import population, seat_sellers, settings_of
from marlab.market.vector.builtin import play
from marlab.market.vector.clones import ClonePack
from marlab.market.vector.configs import Configs
from marlab.market.vector.market import Market
from marlab.market.vector.setup import make_setup

Scores = NDArray[np.float64]
SCORES = "vector.npz"
WORLDS = 8192
"""Worlds of a batch, at most."""


def play_seats(
    config: FidelityConfig, configs: Configs, pack: ClonePack, file: Path, device: torch.device,
    stop: Callable[[], bool] = lambda: False, quiet: bool = False,
) -> Scores:  # fmt: skip
    """[sellers, seats, repeats], the rule first; nan where nothing was played yet."""
    seats = seats_of(config)
    agents = [settings_of(config.agent(name)) for name in config.names]
    scores = known(file, (len(agents), len(seats), config.repeats))
    batches = _batches(config, seats, by_shape=device.type == "cpu")
    missing = [batch for batch in batches if np.isnan(scores[0, batch[1][0], batch[2][0]])]
    with Progress("selling", total=len(batches), unit="batches", done=len(batches) - len(missing), quiet=quiet) as bar:
        for number, places, repeats in missing:
            if stop():
                break
            some = [seats[i] for i in places]
            made = play_batch(
                configs.take(places), some, agents, len(repeats), pack, config.seed * 10_007 + number, device
            )
            scores[:, places[:, None], repeats] = made
            with replacing(file) as temporary, open(temporary, "wb") as out:
                np.savez_compressed(out, scores=scores)
            bar.advance(1)
    return scores


def _batches(
    config: FidelityConfig, seats: Sequence[Seat], by_shape: bool
) -> list[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """(number, seats, repeats) of every batch. Padding costs a processor more time than another batch, a GPU less."""
    shapes = [seat.sizes if by_shape else () for seat in seats]
    found = []
    for shape in dict.fromkeys(shapes):
        places = np.array([i for i, other in enumerate(shapes) if other == shape])
        each = max(1, WORLDS // (len(places) * len(config.names)))
        for first in range(0, config.repeats, each):
            found.append((places, np.arange(first, min(first + each, config.repeats))))
    found.sort(key=lambda batch: int(batch[1][0]))  # every seat once before any seat twice
    return [(number, *batch) for number, batch in enumerate(found)]


def play_batch(
    configs: Configs, seats: Sequence[Seat], agents: Sequence[AgentSettings], repeats: int, pack: ClonePack, seed: int,
    device: torch.device,
) -> Scores:  # fmt: skip
    """[sellers, seats, repeats] scores of seats, each in its own config."""
    shape = (len(agents), len(seats), repeats)
    config, seller = np.broadcast_to(np.arange(len(seats))[:, None], shape), np.indices(shape)[0]
    market = Market(make_setup(configs.take(config.ravel()), torch.float32, device))
    above = market.levels - configs.n_levels  # levels of a batch are aligned to the last one
    names = list(dict.fromkeys(name for seat in seats for name in seat.around))
    who = torch.full(market.setup.exists.shape, -1)
    mine = torch.full_like(who, -1)
    for w, (c, s) in enumerate(zip(config.ravel().tolist(), seller.ravel().tolist())):
        numbers = iter(names.index(name) for name in seats[c].around)
        for place, (level, at) in enumerate(_places(seats[c].sizes)):
            if place == seats[c].place:
                mine[w, above[c] + level, at] = s
            else:
                who[w, above[c] + level, at] = next(numbers)
    generator = torch.Generator(device=device).manual_seed(seed)
    seated = population(pack, market, names, who.to(device), generator)
    seated = seat_sellers(market, seated, agents, mine.to(device))
    play(market, seated)
    return market.scores()[mine.to(device) >= 0].cpu().double().numpy().reshape(shape)


def _places(sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Level and place in it of every factory."""
    return [(level, at) for level, size in enumerate(sizes) for at in range(size)]


def known(file: Path, shape: tuple[int, ...]) -> Scores:
    """Scores that were played before; nan where none were."""
    if not file.exists():
        return np.full(shape, np.nan)
    with trusting(f"{file} holds no scores; remove it to play them again"):
        scores = read_npz(file, "scores of a market")["scores"].astype(np.float64)
    if scores.shape != shape:
        raise UserError(f"{file} holds scores of the shape {scores.shape}, expected {shape}; remove it.")
    return scores
