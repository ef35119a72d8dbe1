"""The best any policy could do from given starts, bounded from both sides.

A ballistic predator's path is fixed at the reset and fish do not touch each other, so every fish is a search problem
of its own (with a predator that hunts it is not: there `measure/foresight.py` is the reference). *Doomed* is a fish
that dies within k steps under every one of the 5^k action sequences: no policy saves it, which bounds survival from
above. *Saved* is a fish for which a whole-episode plan was found; the plans are played once more in the simulator
before they count, which bounds survival from below.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from marlab.fish.measure.policies import Policy, always, sidestep
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import FISH_PLANES, PredatorStep, SeaState, advance
from marlab.fish.sea.perception import observe
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import begin, sample_starts
from marlab.lab.errors import UserError

FRONTIER = 200_000
"""Most branches followed at once in an exhaustive search; a fish with more is given up as not proven doomed."""
BEAM = 200
"""Branches kept per fish while an escape is looked for."""
DEPTHS = (0, 2, 6, 16, 48, 128)
"""Free actions tried before the script takes over; side-stepping from the start already saves nearly everybody."""
STANDARD = SeaConfig()
_SIGHT = SeaConfig(include_neighbor_features=False)


@dataclass(frozen=True)
class CeilingReport:
    """Bounds on the share of fish that can live through the whole episode, over all given arenas."""

    upper: float
    lower: float
    doomed: Tensor  # [B, F] bool: no action sequence saves it
    saved: Tensor  # [B, F] bool: its plan was played and it lived
    plan: Tensor  # [T, B, F] uint8: the actions that save the saved

    @property
    def gap(self) -> float:
        return self.upper - self.lower


@torch.no_grad()
def doomed_mask(state: SeaState, k: int = 1, cfg: SeaConfig = STANDARD) -> Tensor:
    """[B, F] bool: the living fish that die within k steps whatever they do.

    None of them is known where the predator hunts: what it does then depends on all fish together.
    """
    if cfg.hunted:
        return torch.zeros_like(state.alive)
    doomed = torch.zeros_like(state.alive)
    suspects = state.alive.clone()
    for action in range(sea.ACTION_COUNT):  # almost everybody is cleared by some constant action
        if bool(suspects.any()):
            suspects[suspects.clone()] = ~_survives(_rows(state, suspects), always(action), k, cfg)
    doomed[suspects] = _exhaust(_rows(state, suspects), k, cfg)
    return doomed


def doomed_share(cfg: SeaConfig, arenas: int = 1000, k: int = 1, seed: int = 0) -> float:
    """The share of fish that die within k steps whatever they do, in a sea with these settings."""
    starts = sample_starts(arenas, cfg.num_fish, cfg, torch.Generator().manual_seed(seed))
    state = begin(starts, torch.ones_like(starts.x, dtype=torch.bool))
    return float(doomed_mask(state, k, cfg).float().mean())


@torch.no_grad()
def ceiling(start: SeaState, k: int = 8, cfg: SeaConfig = STANDARD) -> CeilingReport:
    """Bounds for the episodes that begin in `start` (t = 0, every existing fish alive); not where predators hunt."""
    if cfg.hunted:
        raise UserError(f"No ceiling can be computed where the predator hunts (predator_mode={cfg.predator_mode}).")
    plan = torch.full((sea.EPISODE_STEPS, *start.x.shape), sea.HOLD, dtype=torch.uint8, device=start.x.device)
    doomed = doomed_mask(start, k, cfg)
    open_ = start.alive & ~doomed  # fish that still need a plan
    for depth in DEPTHS:
        if bool(open_.any()):
            _search(start, open_, plan, depth, cfg)
    final = start
    for actions in plan:
        final = advance(final, actions, predator_step(cfg))
    fish = float(start.alive.sum())
    saved = final.alive
    return CeilingReport(
        upper=1 - float(doomed.sum()) / fish, lower=float(saved.sum()) / fish, doomed=doomed, saved=saved, plan=plan
    )


# ---------------------------------------------------------------- single fish as rows [N, 1]


def _rows(state: SeaState, mask: Tensor) -> SeaState:
    """The fish in `mask` [B, F], each alone in a copy of its arena."""
    arena = mask.nonzero()[:, 0]
    return SeaState(*(v[mask][:, None] if i < FISH_PLANES else v[arena] for i, v in enumerate(state)))


def _survives(rows: SeaState, policy: Policy, steps: int, cfg: SeaConfig) -> Tensor:
    """[N] bool"""
    step = predator_step(cfg)
    for _ in range(steps):
        rows = advance(rows, policy(observe(rows, _SIGHT)), step)
    return rows.alive[:, 0]


def _branch(rows: SeaState, step: PredatorStep) -> tuple[SeaState, Tensor, Tensor]:
    """All five next states of every row, the living ones only, with their parents [M] and actions [M]."""
    parent = torch.arange(len(rows.t), device=rows.t.device).repeat_interleave(sea.ACTION_COUNT)
    action = torch.arange(sea.ACTION_COUNT, device=rows.t.device).repeat(len(rows.t))
    after = advance(rows.select(parent), action[:, None], step)
    alive = after.alive[:, 0]
    return after.select(alive), parent[alive], action[alive]


def _exhaust(rows: SeaState, k: int, cfg: SeaConfig) -> Tensor:
    """[N] bool: every sequence of k actions was followed until death.

    A fish leaves the search as soon as one of its branches lives through the rest of the k steps on a constant action.
    """
    number = len(rows.t)
    doomed = torch.ones(number, dtype=torch.bool, device=rows.t.device)
    owner = torch.arange(number, device=rows.t.device)
    for done in range(1, k + 1):
        if not len(owner):
            break
        if len(owner) * sea.ACTION_COUNT > FRONTIER:
            doomed[owner] = False
            break
        rows, parent, _ = _branch(rows, predator_step(cfg))
        owner = owner[parent]
        for action in range(sea.ACTION_COUNT):
            if len(owner):
                doomed[owner[_survives(rows, always(action), k - done, cfg)]] = False
                unsettled = doomed[owner]
                rows, owner = rows.select(unsettled), owner[unsettled]
    return doomed


# ---------------------------------------------------------------- escapes


def _search(start: SeaState, open_: Tensor, plan: Tensor, depth: int, cfg: SeaConfig) -> None:
    """Look for plans that begin with `depth` free actions and go on side-stepping; fish that get one leave `open_`.

    Of the free branches those furthest from the predator are kept.
    """
    rows = _rows(start, open_)
    number, device = len(rows.t), rows.t.device
    owner = torch.arange(number, device=device)
    history = torch.empty(0, number, dtype=torch.uint8, device=device)  # [steps so far, M]
    for _ in range(depth):
        rows, parent, action = _branch(rows, predator_step(cfg))
        kept = _furthest(rows, owner[parent], BEAM)
        parent = parent[kept]
        rows, owner = rows.select(kept), owner[parent]
        history = torch.cat((history[:, parent], action[kept].to(torch.uint8)[None]))
    taken = [history]
    for _ in range(sea.EPISODE_STEPS - depth):
        actions = sidestep(observe(rows, _SIGHT))
        taken.append(actions.t().to(torch.uint8))
        rows = advance(rows, actions, predator_step(cfg))
    living = rows.alive[:, 0].nonzero()[:, 0]
    winner = torch.full((number,), -1, dtype=torch.int64, device=device)
    winner[owner[living]] = living  # any living branch of each fish
    lived = winner >= 0
    found = open_.clone()
    found[open_] = lived
    plan[:, found] = torch.cat(taken)[:, winner[lived]]
    open_ &= ~found


def _furthest(rows: SeaState, owner: Tensor, width: int) -> Tensor:
    """Indices of at most `width` rows per owner, those furthest from the predator."""
    distance = torch.hypot(rows.x[:, 0] - rows.predator_x, rows.y[:, 0] - rows.predator_y)
    order = torch.argsort(distance, descending=True)
    order = order[torch.argsort(owner[order], stable=True)]  # by owner, furthest first
    grouped = owner[order]
    starts = torch.searchsorted(grouped, grouped)  # first place of each group
    place = torch.arange(len(grouped), device=grouped.device) - starts
    return order[place < width]
