"""One game at a time in plain Python, straight from the rules: what the batched game is compared with.

Written without looking at the batched code: sets of coordinates instead of tensors, a queue instead of tables.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field

Cell = tuple[int, int]
MOVES: dict[int, Cell] = {0: (-1, 0), 1: (1, 0), 2: (0, -1), 3: (0, 1)}
SHAPES = (
    ((0, 0), (0, 1), (0, 2)),
    ((0, 0), (1, 0), (1, 1)),
    ((0, 0), (0, 1), (0, 2), (0, 3)),
    ((0, 0), (1, 0), (2, 0), (2, 1)),
)


@dataclass
class Situation:
    """Everything about one game at one time."""

    obstacles: set[Cell]
    stags: set[Cell]  # drifts in the snowdrift game
    hares: set[Cell]
    where: list[Cell | None]  # None: the player has left
    t: int = 0
    first_hunt: int | None = None
    last: list[int] = field(default_factory=list)

    def copy(self) -> Situation:
        prey = set(self.stags), set(self.hares)
        return Situation(set(self.obstacles), *prey, list(self.where), self.t, self.first_hunt, list(self.last))


class ReferenceGame:
    """`config` is any object with the fields of a game config."""

    def __init__(self, config) -> None:
        self.c = config
        self.snow = config.rules == "snowdrift"

    # --- start ----------------------------------------------------------------------------------------------------

    def reset(self, rng: random.Random) -> Situation:
        c = self.c
        n_stags, n_hares = (c.drifts, 0) if self.snow else (c.stags, c.hares)
        for _ in range(1001):
            obstacles = self._obstacles(rng)
            free = [cell for cell in self.cells() if cell not in obstacles]
            if len(free) >= n_stags + n_hares + 1 and self._connected(free):
                break
        else:
            raise RuntimeError("no layout found")
        prey = rng.sample(free, n_stags + n_hares)
        rest = [cell for cell in free if cell not in prey]
        if len(rest) >= c.players:
            where = rng.sample(rest, c.players)
        else:
            where = [rng.choice(free) for _ in range(c.players)]
        return Situation(obstacles, set(prey[:n_stags]), set(prey[n_stags:]), list(where), last=[4] * c.players)

    def cells(self) -> list[Cell]:
        return [(r, k) for r in range(self.c.height) for k in range(self.c.width)]

    def inside(self, cell: Cell) -> bool:
        return 0 <= cell[0] < self.c.height and 0 <= cell[1] < self.c.width

    def _obstacles(self, rng: random.Random) -> set[Cell]:
        taken: set[Cell] = set()
        for _ in range(self.c.max_block_comp):
            shape = rng.choice(SHAPES)
            ways = set()
            for turn in range(4):
                turned = shape
                for _ in range(turn):
                    turned = tuple((k, -r) for r, k in turned)
                for r0, k0 in [(r, k) for r in range(-4, self.c.height + 4) for k in range(-4, self.c.width + 4)]:
                    piece = frozenset((r + r0, k + k0) for r, k in turned)
                    if all(self.inside(cell) for cell in piece):
                        ways.add(piece)
            if ways:
                piece = rng.choice(sorted(ways, key=sorted))
                if not piece & taken:
                    taken |= piece
        return taken

    def _connected(self, free: list[Cell]) -> bool:
        seen, queue, allowed = {free[0]}, deque([free[0]]), set(free)
        while queue:
            r, k = queue.popleft()
            for dr, dk in MOVES.values():
                cell = (r + dr, k + dk)
                if cell in allowed and cell not in seen:
                    seen.add(cell)
                    queue.append(cell)
        return len(seen) == len(free)

    # --- rules ----------------------------------------------------------------------------------------------------

    def mask(self, s: Situation, player: int) -> list[int]:
        here = s.where[player]
        if here is None:
            return [0] * self.c.actions
        legal = []
        for dr, dk in MOVES.values():
            target = (here[0] + dr, here[1] + dk)
            legal.append(int(self.inside(target) and target not in s.obstacles))
        legal += [1, int(here in s.stags)]
        return legal if self.snow else [*legal, int(here in s.hares)]

    def step(self, s: Situation, actions: list[int]) -> tuple[Situation, list[float], list[bool], bool, list[int]]:
        """(situation after, reward, whose last step it was, whether the episode ended, executed actions)."""
        c, after = self.c, s.copy()
        executed = []
        for i, action in enumerate(actions):
            if s.where[i] is None:
                executed.append(7)
            elif 0 <= action < c.actions and self.mask(s, i)[action]:
                executed.append(action)
            else:
                executed.append(4)
        for i, action in enumerate(executed):
            here = s.where[i]
            if action in MOVES and here is not None:
                after.where[i] = (here[0] + MOVES[action][0], here[1] + MOVES[action][1])
        reward = [0.0] * c.players
        captured = self._snow(after, executed, reward) if self.snow else self._hunt(after, executed, reward)
        if captured and after.first_hunt is None:
            after.first_hunt = s.t
        after.t = s.t + 1
        for i in range(c.players):
            if after.where[i] is not None:
                reward[i] += c.time_reward
        if c.prosocial:
            mean = sum(reward) / c.players
            reward = [mean if s.where[i] is not None else 0.0 for i in range(c.players)]
        after.last = executed
        over = self.over(after)
        done = [s.where[i] is not None and (after.where[i] is None or over) for i in range(c.players)]
        return after, reward, done, over, executed

    def _hunt(self, after: Situation, executed: list[int], reward: list[float]) -> bool:
        captured = False
        strength = self.c.player_strength or (1.0,) * self.c.players
        for prey, action, needed in ((after.stags, 5, 2), (after.hares, 6, 1)):
            for cell in list(prey):
                hunters = [i for i, a in enumerate(executed) if a == action and after.where[i] == cell]
                if len(hunters) < needed:
                    continue
                captured = True
                prey.remove(cell)
                total = sum(strength[i] for i in hunters)
                for i in hunters:
                    if action == 6:
                        reward[i] += self.c.hare_reward / len(hunters)
                    else:
                        share = strength[i] / total if total > 0 else 1 / len(hunters)
                        reward[i] += self.c.stag_reward * share
                    after.where[i] = None
        return captured

    def _snow(self, after: Situation, executed: list[int], reward: list[float]) -> bool:
        captured = False
        for cell in list(after.stags):
            removers = [i for i, a in enumerate(executed) if a == 5 and after.where[i] == cell]
            if removers:
                captured = True
                after.stags.remove(cell)
                for i in range(self.c.players):
                    reward[i] += self.c.drift_reward
                for i in removers:
                    reward[i] -= self.c.drift_cost / len(removers)
        return captured

    def over(self, s: Situation) -> bool:
        c = self.c
        if s.t >= c.final_time or all(w is None for w in s.where) or not (s.stags or s.hares):
            return True
        if not c.dynamic_final_time or s.first_hunt is None:
            return False
        return s.t - (s.first_hunt + 1) >= c.final_time_after_first_hunt

    # --- what a player sees ---------------------------------------------------------------------------------------

    def grid(self, s: Situation, player: int) -> list[list[list[int]]]:
        n = self.c.players
        rows = []
        for r in range(self.c.height):
            row = []
            for k in range(self.c.width):
                planes = [int(s.where[(player + j) % n] == (r, k)) for j in range(n)]
                planes += [int((r, k) in s.obstacles), int((r, k) in s.stags)]
                row.append(planes if self.snow else [*planes, int((r, k) in s.hares)])
            rows.append(row)
        return rows

    def last_actions(self, s: Situation, player: int) -> list[int]:
        n = self.c.players
        order = [(player + j) % n for j in range(n)]
        return [s.last[j] if s.where[j] is not None else 7 for j in order]

    # --- rule-based players -----------------------------------------------------------------------------------------

    def distances(self, s: Situation, targets: set[Cell]) -> dict[Cell, int]:
        found = dict.fromkeys(targets, 0)
        queue = deque(targets)
        while queue:
            r, k = queue.popleft()
            for dr, dk in MOVES.values():
                cell = (r + dr, k + dk)
                if self.inside(cell) and cell not in s.obstacles and cell not in found:
                    found[cell] = found[(r, k)] + 1
                    queue.append(cell)
        return found

    def options(self, s: Situation, player: int, kind: str) -> set[int]:
        """The actions that NS, NH, RAND or EXPL (ND in the snowdrift game) chooses from, equally likely."""
        here = s.where[player]
        if here is None:
            return set()
        mask = self.mask(s, player)
        if kind == "RAND":
            return {a for a, legal in enumerate(mask) if legal}
        others = [w for j, w in enumerate(s.where) if j != player and w is not None]
        held = {cell for cell in s.stags if cell in others}
        if kind == "EXPL":
            targets, hunt = (held, 5) if held else (s.hares, 6)
        else:
            targets, hunt = (s.hares, 6) if kind == "NH" else (s.stags, 5)
        if not targets:
            return {a for a in range(5) if mask[a]}
        far = self.distances(s, targets)
        if far[here] == 0:
            return {hunt} if hunt == 6 or kind == "ND" or here in others else {4}
        nearer = set()
        for a, (dr, dk) in MOVES.items():
            cell = (here[0] + dr, here[1] + dk)
            if mask[a] and far[cell] == far[here] - 1:
                nearer.add(a)
        return nearer
