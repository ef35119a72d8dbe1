"""Observers for tests."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np

from marlab.market.rules.beliefs import ANSWER, CONTEXT, BeliefOptions, Observer
from marlab.market.vector.replay import Recorded
from tests.market.vector_worlds import recorded_worlds


def random_observer(types: int, width: int = 8, seed: int = 0, options: BeliefOptions | None = None) -> Observer:
    """An observer that has learnt nothing and prefers some answers all the same."""
    draw = np.random.default_rng(seed)
    sizes = [CONTEXT, width, (types + 1) * ANSWER]

    def drawn(shape: int | tuple[int, int]) -> np.ndarray:
        return draw.normal(0, 0.5, shape).astype(np.float16).astype(np.float32)

    weights, biases = tuple(map(drawn, itertools.pairwise(sizes))), tuple(map(drawn, sizes[1:]))
    return Observer(tuple(f"type{i}" for i in range(types)), weights, biases, options or BeliefOptions())


def telling_observer(accept: tuple[float, ...]) -> Observer:
    """Types that only differ in how often they accept; the rest is counter-offers. The last one is the stranger."""
    logits = np.zeros((len(accept), ANSWER), np.float32)
    logits[:, 0], logits[:, 1], logits[:, 2] = np.log(accept), np.log1p(-np.array(accept)), -60.0
    weights = (np.zeros((CONTEXT, logits.size), np.float32),)
    return Observer(
        tuple(f"type{i}" for i in range(len(accept) - 1)), weights, (logits.reshape(-1),), BeliefOptions(stranger=0.0)
    )


def named_worlds(folder: Path | None = None) -> list[Recorded]:
    """Recorded worlds whose factories are called A and B, one of them C; written into a folder if one is given."""
    worlds = []
    for number, world in enumerate(recorded_worlds()):
        names = tuple("C" if number == 0 and f == 0 else "AB"[f % 2] for f in range(len(world.scores)))
        worlds.append(replace(world, agents=names))
        if folder is not None:
            (folder / f"{world.world_id}.npz").write_bytes(worlds[-1].to_bytes())
    return worlds
