"""The value of knowing: what it is worth to know at the first step which rules the others follow.

Every other player draws its rule once from some candidates. Against them stand, exactly solved for one start:

    known     the best response of somebody who is told the rules
    believed  the best response of somebody who knows the candidates only, and learns from what is done (within the
              episode): a plan over situations and beliefs
    planned   what our planners do at best: at every step the action with the highest value, averaged over what the
              others may be by the belief of that moment; nothing is done in order to learn
    prior     the same with beliefs that never move: all it reads is the situation

known - believed is what only earlier episodes can tell; believed - prior is what beliefs within an episode are worth.
Letters: N situations, M pairs of a situation and a belief, E edges, n players, K candidates, C combinations of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from marlab.hunt.exact.best_response import solve
from marlab.hunt.exact.situations import Edges, Floats, Ints, Others, Rule, Situations, explore
from marlab.hunt.game.rules import Game, State
from marlab.lab.errors import UserError

MOST_BELIEFS = 400_000
"""Pairs of situation and belief of one start, at most; noise makes more of them at every step."""


@dataclass(frozen=True)
class Knowing:
    """Values of one start."""

    known: float
    believed: float
    planned: float
    prior: float


def value_of_knowing(
    game: Game, start: State, candidates: Sequence[Sequence[Rule]], weights: Sequence[Sequence[float]], focal: int = 0
) -> Knowing:
    """Solve one start. candidates, weights: of every seat, those of the focal one are not asked."""
    others = Others(game, candidates, focal)
    there = explore(others, start)
    beliefs = np.zeros((game.players, others.width))
    for seat in range(game.players):
        mine = [1.0] if seat == focal else list(weights[seat])
        if len(mine) != others.count[seat] or min(mine) < 0 or abs(sum(mine) - 1) > 1e-9:
            raise ValueError(f"the weights {mine} of seat {seat} are no chances of {others.count[seat]} candidates")
        beliefs[seat, : len(mine)] = mine
    steps = game.config.final_time
    combos = list(product(*(range(count) for count in others.count)))  # [C] which candidate each seat is
    chance = np.array([np.prod([beliefs[seat, k] for seat, k in enumerate(combo)]) for combo in combos])  # [C]
    solved = np.stack([solve(there, steps, candidates=combo)[1] for combo in combos])  # [C, T + 1, N, A]
    known = float((solved[:, -1, there.first].max(1) * chance).sum())
    pairs = _pairs(there, beliefs)
    return Knowing(known, _believed(there, pairs, steps), *_planned(there, pairs, combos, chance, solved, steps))


# --- situations with beliefs ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pairs:
    """Pairs of a situation and a belief [n, K], and the edges between them in every phase of the time."""

    place: Ints  # [M] of the situation
    belief: Floats  # [M, n, K]
    first: int
    phases: list[tuple[Ints, Ints, Ints, Floats]]  # (source pair, edge of the situations, target pair or M, chance)


def _pairs(there: Situations, belief: Floats) -> _Pairs:
    """Everything that can be believed where, from a first belief [n, K] on."""
    by_source = [_by_source(edges, len(there.codes)) for edges in there.phases]
    place, beliefs = np.array([there.first]), belief[None]
    known: dict[bytes, int] = {_name(place[0], beliefs[0]): 0}
    found: list[list[tuple[Ints, Ints, Ints, Floats]]] = [[] for _ in there.phases]
    places, kept, begin = [place], [beliefs], 0
    while len(place):
        fresh_place: list[int] = []
        fresh_belief: list[Floats] = []
        for phase, edges in enumerate(there.phases):
            order, offset = by_source[phase]
            counts = offset[place + 1] - offset[place]
            source = np.repeat(np.arange(len(place)), counts)
            within = np.arange(len(source)) - np.repeat(counts.cumsum() - counts, counts)
            edge = order[offset[place][source] + within]
            weight = beliefs[source] * edges.chance[edge]  # [E, n, K]
            likely = weight.sum(2)  # [E, n]
            chance = likely.prod(1)
            possible = chance > 0
            source, edge, weight, chance = source[possible], edge[possible], weight[possible], chance[possible]
            after = weight / weight.sum(2, keepdims=True)
            target = np.full(len(edge), -1)
            for e in np.flatnonzero(edges.target[edge] < len(there.codes)):
                name = _name(edges.target[edge[e]], after[e])
                number = known.get(name)
                if number is None:
                    number = known[name] = len(known)
                    fresh_place.append(int(edges.target[edge[e]]))
                    fresh_belief.append(after[e])
                target[e] = number
            found[phase].append((source + begin, edge, target, chance))
        begin += len(place)
        if len(known) > MOST_BELIEFS:
            raise UserError(f"More than {MOST_BELIEFS} beliefs can follow from one start; noise makes them endless.")
        place = np.array(fresh_place, dtype=np.int64)
        beliefs = np.array(fresh_belief).reshape(-1, *belief.shape)
        places.append(place)
        kept.append(beliefs)
    count = len(known)
    phases = []
    for parts in found:
        source, edge, target, chance = (np.concatenate(part) for part in zip(*parts))
        phases.append((source, edge, np.where(target >= 0, target, count), chance))
    return _Pairs(np.concatenate(places), np.concatenate(kept), 0, phases)


def _name(place: int, belief: Floats) -> bytes:
    """A pair by name; beliefs that differ by rounding are one."""
    return int(place).to_bytes(8, "little") + np.round(belief, 10).astype(np.float64).tobytes()


def _by_source(edges: Edges, count: int) -> tuple[Ints, Ints]:
    """(edges in the order of their sources, where each source's begin [N + 1])"""
    order = np.argsort(edges.source, kind="stable")
    return order, np.concatenate([[0], np.bincount(edges.source, minlength=count).cumsum()])


def _believed(there: Situations, pairs: _Pairs, steps: int) -> float:
    """The best plan over situations and beliefs."""
    count, actions = len(pairs.place), there.legal.shape[1]
    legal = there.legal[pairs.place]
    values = np.zeros(count + 1)
    for k in range(1, steps + 1):
        phase = there.phase(steps - k)
        edges, (source, edge, target, chance) = there.phases[phase], pairs.phases[phase]
        worth = chance * (edges.reward[edge] + values[target])
        q = np.bincount(source * actions + edges.action[edge], worth, minlength=count * actions)
        values[:count] = np.where(legal, q.reshape(count, actions), -np.inf).max(1)
    return float(values[pairs.first])


def _planned(
    there: Situations, pairs: _Pairs, combos: Sequence[tuple[int, ...]], chance: Floats, solved: Floats, steps: int
) -> tuple[float, float]:
    """What is earned by averaging over combinations by the belief, and by the first belief for ever."""
    seats = np.arange(pairs.belief.shape[1])
    by_combo = np.stack([pairs.belief[:, seats, combo].prod(1) for combo in combos], 1)  # [M, C]
    earned = []
    for weight in (by_combo, np.broadcast_to(chance, by_combo.shape)):
        earned.append(_followed(there, pairs, weight, solved, steps))
    return earned[0], earned[1]


def _followed(there: Situations, pairs: _Pairs, weight: Floats, solved: Floats, steps: int) -> float:
    """What the action with the highest mean of `solved` [C, T + 1, N, A], weighted by [M, C], earns; ties go evenly."""
    count, actions = len(pairs.place), there.legal.shape[1]
    legal = there.legal[pairs.place]
    values = np.zeros(count + 1)
    for k in range(1, steps + 1):
        phase = there.phase(steps - k)
        edges, (source, edge, target, chance) = there.phases[phase], pairs.phases[phase]
        finite = np.where(legal[:, None], solved[:, k, pairs.place].transpose(1, 0, 2), 0.0)  # [M, C, A]
        mean = np.where(legal, np.einsum("mc,mca->ma", weight, finite), -np.inf)
        best: NDArray[np.bool_] = mean >= mean.max(1, keepdims=True) - 1e-9
        follow = best / best.sum(1, keepdims=True)  # [M, A]
        worth = chance * (edges.reward[edge] + values[target])
        q = np.bincount(source * actions + edges.action[edge], worth, minlength=count * actions)
        values[:count] = (follow * q.reshape(count, actions)).sum(1)
    return float(values[pairs.first])
