"""What rule-based players choose from, in plain Python on the scalar rules: what the batched players are held against.

Written without looking at the batched code: a queue instead of tables.
"""

from __future__ import annotations

from collections import deque

from marlab.hunt.game.scalar import FIRST_HUNT, STAY, PlainState, Rules

STAG, HARE = FIRST_HUNT, FIRST_HUNT + 1


def prey_cells(rules: Rules, s: PlainState, kind: int) -> set[int]:
    """Cells of the prey of a kind (0: stags, or drifts; 1: hares) that is left."""
    return {cell for cell, left, its in zip(s.prey_cell, s.prey_alive, rules.kinds) if left and its == kind}


def distances(rules: Rules, s: PlainState, targets: set[int]) -> dict[int, int]:
    """Steps from every cell to the nearest target."""
    found, queue = dict.fromkeys(targets, 0), deque(targets)
    while queue:
        here = queue.popleft()
        for cell in rules.neighbours[here]:
            if cell >= 0 and not s.blocks >> cell & 1 and cell not in found:
                found[cell] = found[here] + 1
                queue.append(cell)
    return found


def options(rules: Rules, s: PlainState, player: int, kind: str) -> set[int]:
    """The actions that NS, NH, RAND or EXPL (ND in the snowdrift game) chooses from, equally likely."""
    if not s.alive[player]:
        return set()
    here, mask = s.cell[player], rules.legal(s, player)
    if kind == "RAND":
        return {a for a, legal in enumerate(mask) if legal}
    others = {cell for j, (cell, there) in enumerate(zip(s.cell, s.alive)) if there and j != player}
    stags, hares = prey_cells(rules, s, 0), prey_cells(rules, s, 1)
    if kind == "EXPL":
        targets, hunt = (stags & others, STAG) if stags & others else (hares, HARE)
    else:
        targets, hunt = (hares, HARE) if kind == "NH" else (stags, STAG)
    if not targets:
        return {a for a in range(FIRST_HUNT) if mask[a]}
    far = distances(rules, s, targets)
    if far[here] == 0:
        return {hunt} if hunt == HARE or kind == "ND" or here in others else {STAY}
    return {a for a, cell in enumerate(rules.neighbours[here]) if mask[a] and far[cell] == far[here] - 1}
