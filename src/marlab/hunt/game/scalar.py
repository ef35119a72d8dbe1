"""The rules of one game in plain Python: whole numbers and lists, nothing to load, a few microseconds a step.

It serves the single environment and is what tests hold the batched game against; who wants to know what happens in a
step should read `Rules.step`. Obstacles are the bits of one number: bit c is set where cell c is blocked.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from marlab.hunt.game.config import GameConfig
from marlab.hunt.game.maps import MAX_RESTARTS, MOVES, SHAPES
from marlab.lab.errors import UserError

STAY, FIRST_HUNT, ABSENT = 4, 5, 7
"""Actions: four moves, stay, one hunt per kind of prey; ABSENT stands for the action of a player who has left."""


@dataclass(slots=True)
class PlainState:
    """Everything that a game's future depends on, and the actions that led here. `Rules.step` makes a new one."""

    blocks: int  # obstacles, one bit per cell
    cell: list[int]  # of each player: row * width + column; of one who left, the last one
    alive: list[bool]  # still in the game
    prey_cell: list[int]  # where each prey was put; the first ones are stags
    prey_alive: list[bool]  # not captured yet
    t: int  # steps taken
    first_hunt: int  # index of the step with the first capture, -1 before it
    last_action: list[int]  # executed in the last step, ABSENT for players who were gone


class Step(NamedTuple):
    """What one step did."""

    after: PlainState
    reward: list[float]
    done: list[bool]  # this was the player's last step (it captured, or the episode ended)
    over: bool  # the episode ended
    hunters: list[int]  # how many shared this player's capture, 0 without one
    captured: list[bool]  # prey that this step took


class Rules:
    """The rules of a config."""

    def __init__(self, config: GameConfig) -> None:
        self.config = config
        self.snow = config.rules == "snowdrift"
        self.kinds = [kind for kind, amount in enumerate(config.prey_kinds) for _ in range(amount)]
        self.neighbours = [_neighbours(config, cell) for cell in range(config.cells)]  # -1 beyond the edge
        self._placements: list[list[int]] | None = None

    # --- starts ---------------------------------------------------------------------------------------------------

    def start(self, rng: random.Random) -> PlainState:
        """A fresh game: obstacles, distinct cells for the prey, then for the players (any free ones without room)."""
        c = self.config
        blocks = self._draw_blocks(rng)
        free = [cell for cell in range(c.cells) if not blocks >> cell & 1]
        if c.layout != "anywhere":
            chosen, room = self._far(rng), True
        else:
            room = len(free) >= c.prey + c.players
            chosen = rng.sample(free, c.prey + c.players if room else c.prey)
        players = chosen[c.prey :] if room else [rng.choice(free) for _ in range(c.players)]
        return PlainState(
            blocks, players, [True] * c.players, chosen[: c.prey], [True] * c.prey, 0, -1, [STAY] * c.players
        )

    def _far(self, rng: random.Random) -> list[int]:
        """Cells of the stags, the hares beside them, the hares far away and the players."""
        c, taken = self.config, list[int]()
        away = c.hares // 2
        middle = range(c.width) if c.layout == "loose" and rng.random() < 0.5 else (c.width // 2,)
        zones = (
            ((c.width - 1,), c.stags),
            ((c.width - 2, c.width - 1), c.hares - away),
            ((0,), away),
            (middle, c.players),
        )
        for columns, amount in zones:
            free = [cell for cell in range(c.cells) if cell % c.width in columns and cell not in taken]
            taken += rng.sample(free, amount)
        return taken

    def _draw_blocks(self, rng: random.Random) -> int:
        """Components one after the other, those that overlap left out; anew until the free cells hang together."""
        c = self.config
        if not c.max_block_comp:
            return 0
        if self._placements is None:
            self._placements = [_placements(c, shape) for shape in SHAPES.values()]
        for _ in range(MAX_RESTARTS + 1):
            blocks = 0
            for _ in range(c.max_block_comp):
                ways = self._placements[rng.randrange(len(SHAPES))]
                piece = ways[rng.randrange(len(ways))] if ways else 0  # some shapes do not fit a grid at all
                if not blocks & piece:
                    blocks |= piece
            if c.cells - blocks.bit_count() >= c.prey + 1 and self.connected(blocks):
                return blocks
        raise UserError(
            f"No valid layout was found in {MAX_RESTARTS} restarts for a {c.height}x{c.width} grid with max_block_comp "
            f"{c.max_block_comp} and {c.prey} prey; use fewer components or a larger grid."
        )

    def connected(self, blocks: int) -> bool:
        """Whether every free cell can be reached from every other."""
        free = ((1 << self.config.cells) - 1) & ~blocks
        first = free & -free
        seen, todo = first, [first.bit_length() - 1]
        while todo:
            for cell in self.neighbours[todo.pop()]:
                if cell >= 0 and (free & ~seen) >> cell & 1:
                    seen |= 1 << cell
                    todo.append(cell)
        return seen == free

    # --- what a situation allows ----------------------------------------------------------------------------------

    def legal(self, s: PlainState, player: int) -> list[bool]:
        """The action mask; all False for a player who left."""
        c = self.config
        if not s.alive[player]:
            return [False] * c.actions
        here = s.cell[player]
        mask = [to >= 0 and not s.blocks >> to & 1 for to in self.neighbours[here]]
        mask += [True] + [False] * len(c.prey_kinds)
        for cell, there, kind in zip(s.prey_cell, s.prey_alive, self.kinds):
            if there and cell == here:
                mask[FIRST_HUNT + kind] = True
        return mask

    def over(self, s: PlainState) -> bool:
        """Time is up, or nobody is left, or no prey is left."""
        c = self.config
        late = c.dynamic_final_time and s.first_hunt >= 0 and s.t > s.first_hunt + c.final_time_after_first_hunt
        return late or s.t >= c.final_time or not (any(s.alive) and any(s.prey_alive))

    # --- the step -------------------------------------------------------------------------------------------------

    def step(self, s: PlainState, actions: Sequence[int]) -> Step:
        """Everybody acts at once: moves, then captures. An illegal action is executed and recorded as STAY."""
        c = self.config
        cells, executed, hunting = list(s.cell), [ABSENT] * c.players, [-1] * c.players
        for player, there in enumerate(s.alive):
            if not there:
                continue
            action, here = actions[player], cells[player]
            executed[player] = STAY
            if 0 <= action < STAY:
                to = self.neighbours[here][action]
                if to >= 0 and not s.blocks >> to & 1:
                    cells[player], executed[player] = to, action
            elif action >= FIRST_HUNT:
                for prey, (cell, is_left) in enumerate(zip(s.prey_cell, s.prey_alive)):
                    if is_left and cell == here and action == FIRST_HUNT + self.kinds[prey]:
                        hunting[player], executed[player] = prey, action
        reward, hunters, captured = self._pay(hunting)
        leaves = [False] * c.players if self.snow else [count > 0 for count in hunters]
        alive = [there and not gone for there, gone in zip(s.alive, leaves)]
        if c.time_reward:
            reward = [paid + c.time_reward * there for paid, there in zip(reward, alive)]
        if c.prosocial:
            mean = sum(reward) / c.players
            reward = [mean * there for there in s.alive]
        first = s.t if s.first_hunt < 0 and any(captured) else s.first_hunt
        left = [there and not taken for there, taken in zip(s.prey_alive, captured)]
        after = PlainState(s.blocks, cells, alive, s.prey_cell, left, s.t + 1, first, executed)
        over = self.over(after)
        done = [there and (gone or over) for there, gone in zip(s.alive, leaves)]
        return Step(after, reward, done, over, hunters, captured)

    def _pay(self, hunting: list[int]) -> tuple[list[float], list[int], list[bool]]:
        """(reward, how many share each player's capture, captured prey) from the prey that each player hunts, or -1."""
        c = self.config
        reward, hunters, captured = [0.0] * c.players, [0] * c.players, [False] * len(self.kinds)
        for prey in {prey for prey in hunting if prey >= 0}:
            who = [player for player, wanted in enumerate(hunting) if wanted == prey]
            stag = self.kinds[prey] == 0 and not self.snow
            if stag and len(who) < 2:
                continue
            captured[prey] = True
            strength = sum(c.player_strength[player] for player in who) if stag and c.player_strength else 0.0
            for player in who:
                hunters[player] = len(who)
                share = c.player_strength[player] / strength if strength else 1 / len(who)
                reward[player] = (
                    -c.drift_cost * share if self.snow else (c.stag_reward if stag else c.hare_reward) * share
                )
        if self.snow:
            reward = [paid + c.drift_reward * sum(captured) for paid in reward]
        return reward, hunters, captured


def _neighbours(config: GameConfig, cell: int) -> tuple[int, ...]:
    """The cells above, below, left and right; -1 beyond the edge."""
    row, column = divmod(cell, config.width)
    around = [(row + down, column + right) for down, right in MOVES]
    inside = [0 <= r < config.height and 0 <= k < config.width for r, k in around]
    return tuple(r * config.width + k if there else -1 for (r, k), there in zip(around, inside))


def _placements(config: GameConfig, shape: tuple[tuple[int, int], ...]) -> list[int]:
    """Every way to put a shape into the grid, turned but not mirrored, as bits."""
    ways: set[int] = set()
    for _ in range(4):
        shape = tuple((column, -row) for row, column in shape)
        for row in range(-3, config.height + 3):
            for column in range(-3, config.width + 3):
                piece = [(row + r, column + k) for r, k in shape]
                if all(0 <= r < config.height and 0 <= k < config.width for r, k in piece):
                    ways.add(sum(1 << (r * config.width + k) for r, k in piece))
    return sorted(ways)
