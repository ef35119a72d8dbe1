"""The best any policy could do from given starts, bounded from both sides.

After a reset the predator's path is fixed and fish do not touch each other, so every fish is a search problem of its
own. *Doomed* is a fish that dies within k steps under every one of the 5^k action sequences: no policy saves it, which
bounds survival from above. *Saved* is a fish for which a whole-episode plan was found; the plans are played once more
in the simulator before they count, which bounds survival from below.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from marlab.fish.measure.policies import Policy, always, sidestep
from marlab.fish.sea import constants as sea
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import PREDATOR_STEPS, PredatorStep, SeaState, advance
from marlab.fish.sea.perception import observe
from marlab.fish.sea.reset import begin, sample_starts

FRONTIER = 200_000
"""Most branches followed at once in an exhaustive search; a fish with more is given up as not proven doomed."""
BEAM = 200
"""Branches kept per fish while an escape is looked for."""
DEPTHS = (0, 2, 6, 16, 48, 128)
"""Free actions tried before the script takes over; side-stepping from the start already saves nearly everybody."""
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
def doomed_mask(state: SeaState, k: int = 1, mode: str = "ballistic") -> Tensor:
    """[B, F] bool: the living fish that die within k steps whatever they do."""
    doomed = torch.zeros_like(state.alive)
    suspects = state.alive.clone()
    for action in range(sea.ACTION_COUNT):  # almost everybody is cleared by some constant action
        if bool(suspects.any()):
            suspects[suspects.clone()] = ~_survives(_rows(state, suspects), always(action), k, mode)
    doomed[suspects] = _exhaust(_rows(state, suspects), k, mode)
    return doomed


def doomed_share(cfg: SeaConfig, arenas: int = 1000, k: int = 1, seed: int = 0) -> float:
    """The share of fish that die within k steps whatever they do, in a sea with these settings."""
    starts = sample_starts(arenas, cfg.num_fish, cfg, torch.Generator().manual_seed(seed))
    state = begin(starts, torch.ones_like(starts.x, dtype=torch.bool))
    return float(doomed_mask(state, k, cfg.predator_mode).float().mean())


@torch.no_grad()
def ceiling(start: SeaState, k: int = 8, mode: str = "ballistic") -> CeilingReport:
    """Bounds for the episodes that begin in `start` (t = 0, every existing fish alive)."""
    plan = torch.full((sea.EPISODE_STEPS, *start.x.shape), sea.HOLD, dtype=torch.uint8, device=start.x.device)
    doomed = doomed_mask(start, k, mode)
    open_ = start.alive & ~doomed  # fish that still need a plan
    for depth in DEPTHS:
        if bool(open_.any()):
            _search(start, open_, plan, depth, mode)
    final = start
    for actions in plan:
        final = advance(final, actions, PREDATOR_STEPS[mode])
    fish = float(start.alive.sum())
    saved = final.alive
    return CeilingReport(
        upper=1 - float(doomed.sum()) / fish, lower=float(saved.sum()) / fish, doomed=doomed, saved=saved, plan=plan
    )


# ---------------------------------------------------------------- single fish as rows [N, 1]


def _rows(state: SeaState, mask: Tensor) -> SeaState:
    """The fish in `mask` [B, F], each alone in a copy of its arena."""
    arena = mask.nonzero()[:, 0]
    return SeaState(*(values[mask][:, None] if values.dim() == 2 else values[arena] for values in state))


def _survives(rows: SeaState, policy: Policy, steps: int, mode: str) -> Tensor:
    """[N] bool"""
    step = PREDATOR_STEPS[mode]
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


def _exhaust(rows: SeaState, k: int, mode: str) -> Tensor:
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
        rows, parent, _ = _branch(rows, PREDATOR_STEPS[mode])
        owner = owner[parent]
        for action in range(sea.ACTION_COUNT):
            if len(owner):
                doomed[owner[_survives(rows, always(action), k - done, mode)]] = False
                unsettled = doomed[owner]
                rows, owner = rows.select(unsettled), owner[unsettled]
    return doomed


# ---------------------------------------------------------------- escapes


def _search(start: SeaState, open_: Tensor, plan: Tensor, depth: int, mode: str) -> None:
    """Look for plans that begin with `depth` free actions and go on side-stepping; fish that get one leave `open_`.

    Of the free branches those furthest from the predator are kept.
    """
    rows = _rows(start, open_)
    number, device = len(rows.t), rows.t.device
    owner = torch.arange(number, device=device)
    history = torch.empty(0, number, dtype=torch.uint8, device=device)  # [steps so far, M]
    for _ in range(depth):
        rows, parent, action = _branch(rows, PREDATOR_STEPS[mode])
        kept = _furthest(rows, owner[parent], BEAM)
        parent = parent[kept]
        rows, owner = rows.select(kept), owner[parent]
        history = torch.cat((history[:, parent], action[kept].to(torch.uint8)[None]))
    taken = [history]
    for _ in range(sea.EPISODE_STEPS - depth):
        actions = sidestep(observe(rows, _SIGHT))
        taken.append(actions.t().to(torch.uint8))
        rows = advance(rows, actions, PREDATOR_STEPS[mode])
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
