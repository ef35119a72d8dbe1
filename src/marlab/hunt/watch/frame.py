"""The picture of a moment: the board, and beside it a card per player with what it believes, expects and plans.

A card reads from left to right: who it is and what it is about to do; of each other player the belief (brown for the
stag, grey for a hare, between them that it comes once somebody stands on the stag) and where it is expected to go (the
darker an arrow, the likelier); and the player's own choice, a bar per action, with the search's values and its line of
play where there was a search.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageDraw

from marlab.hunt.game.render import (
    FADED,
    HARE,
    INK,
    PAGE,
    PLAYER,
    SMOOTH,
    STAG,
    draw_prey,
    draw_token,
    font_of_size,
    image,
)
from marlab.hunt.game.rules import HUNT_HARE, HUNT_STAG, STAY
from marlab.hunt.watch.record import BeliefAbout, Decision, Episode, Moment

WIDTH, HEIGHT = 1280, 720
BOARD = 540
"""Pixels for the board, on the left."""
CARD_EDGE, CARD_FILL, MUTED, GRIDLINE, HARE_BAR = "#d8d3c7", "#faf8f3", "#6b6b6b", "#e4dfd3", "#b9b5af"
FOLLOWS = "#d9b380"
LOW_CARD = 115
"""Cards of less height, as those of six players, write closer."""
COMPASS = ((0, -1), (0, 1), (-1, 0), (1, 0))
"""Direction of the four moves, x and y."""
Brush = ImageDraw.ImageDraw


def frame(episode: Episode, index: int) -> np.ndarray:
    """The moment number `index` as [720, 1280, 3] uint8."""
    moment = episode.moments[index]
    page = Image.new("RGB", (WIDTH * SMOOTH, HEIGHT * SMOOTH), PAGE)
    brush = ImageDraw.Draw(page)
    _title(brush, episode, moment)
    count = len(episode.players)
    top, gap = 62, 10
    high = (HEIGHT - top - 34 - gap * (count - 1)) / count
    for seat in range(count):
        y = top + seat * (high + gap)
        _card(brush, episode, moment, seat, (BOARD + 20, y, WIDTH - 18, y + high))
    _legend(brush, (BOARD + 24, HEIGHT - 17))
    small = page.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
    small.paste(_board(moment), (0, 62))
    return np.asarray(small, dtype=np.uint8).copy()


def _board(moment: Moment) -> Image.Image:
    """The board as large as its place allows, with everybody's next move and plan drawn on it."""
    shown = moment.scene
    cell = int(min((BOARD - 40) / shown.width, (HEIGHT - 110) / shown.height))
    whole = image(shown, cell, caption="")
    high, wide = shown.height * cell, shown.width * cell
    left, top = round((whole.shape[1] - wide) / 2), round(0.55 * cell)  # as `image` lays it out
    edge = 4
    drawn = Image.fromarray(whole[top - edge : top + high + edge, left - edge : left + wide + edge])
    large = drawn.resize((drawn.width * SMOOTH, drawn.height * SMOOTH), Image.Resampling.BICUBIC)
    brush = ImageDraw.Draw(large)
    for seat, (place, action) in enumerate(zip(shown.players, moment.action)):
        if place is not None and action is not None:
            thought = moment.thoughts[seat]
            _plan_on_board(brush, moment, seat, place, action, thought.line if thought else [], cell, edge)
    place_on = Image.new("RGB", (BOARD, HEIGHT - 62), PAGE)
    small = large.resize(drawn.size, Image.Resampling.LANCZOS)
    place_on.paste(small, ((BOARD - small.width) // 2 + 2, max(0, (HEIGHT - 62 - 34 - small.height) // 2)))
    return place_on


def _plan_on_board(
    brush: Brush, moment: Moment, seat: int, place: int, action: int, line: list[int], cell: int, edge: int
) -> None:
    """An arrow for a player's next move, and its line of play as a thin path."""
    shown, colour = moment.scene, PLAYER[seat % len(PLAYER)]
    shift = (seat - (len(shown.players) - 1) / 2) * 0.09 * cell  # so that several paths in one cell stay apart

    def at(where: int) -> tuple[float, float]:
        row, col = divmod(where, shown.width)
        return edge + (col + 0.5) * cell + shift, edge + (row + 0.5) * cell + shift

    path = [at(place)]
    here = place
    for step in line:
        if step >= STAY:
            break
        dx, dy = COMPASS[step]
        row, col = divmod(here, shown.width)
        if not (0 <= row + dy < shown.height and 0 <= col + dx < shown.width):
            break
        here += dy * shown.width + dx
        path.append(at(here))
    if len(path) > 1:
        brush.line([(x * SMOOTH, y * SMOOTH) for x, y in path], fill=colour, width=2 * SMOOTH, joint="curve")
        _dot(brush, path[-1], 5, colour)
    if action < STAY:
        (dx, dy), row, col = COMPASS[action], *divmod(place, shown.width)
        x, y = edge + (col + 0.5 + 0.41 * dx) * cell, edge + (row + 0.5 + 0.41 * dy) * cell
        x, y = x + (shift * 1.6 if dx == 0 else 0), y + (shift * 1.6 if dy == 0 else 0)
        _arrow(brush, (x, y), (dx, dy), 0.12 * cell, "#ffffff")
        _arrow(brush, (x, y), (dx, dy), 0.09 * cell, colour)


def _title(brush: Brush, episode: Episode, moment: Moment) -> None:
    shown = moment.scene
    over = all(action is None for action in moment.action)
    _write(brush, (24, 32), "the end" if over else f"step {shown.t}", 26, INK)
    caption = f"{episode.game}, episode {episode.episode + 1} of this team, {shown.t} of {shown.final_time} steps"
    _write(brush, (150, 34), caption, 15, MUTED)
    _write(brush, (BOARD + 24, 34), "what everybody believes, expects and plans", 17, INK)


def _legend(brush: Brush, at: tuple[float, float]) -> None:
    x, y = at
    _box(brush, (x, y - 5, x + 18, y + 5), STAG)
    _write(brush, (x + 24, y), "wants the stag", 13, MUTED)
    _box(brush, (x + 124, y - 5, x + 142, y + 5), FOLLOWS)
    _write(brush, (x + 148, y), "follows", 13, MUTED)
    _box(brush, (x + 204, y - 5, x + 222, y + 5), HARE_BAR)
    _write(brush, (x + 228, y), "wants a hare", 13, MUTED)
    _arrow(brush, (x + 328, y), (1, 0), 9, INK)
    _write(brush, (x + 344, y), "expected move", 13, MUTED)
    _box(brush, (x + 446, y - 5, x + 464, y + 5), PLAYER[0])
    _write(brush, (x + 470, y), "own choice (filled: taken)", 13, MUTED)


# --- a card ---------------------------------------------------------------------------------------------------------


def _card(brush: Brush, episode: Episode, moment: Moment, seat: int, box: tuple[float, float, float, float]) -> None:
    left, top, right, bottom = box
    thought, got = moment.thoughts[seat], moment.scene.got[seat]
    edges = tuple(v * SMOOTH for v in box)
    brush.rounded_rectangle(edges, 10 * SMOOTH, fill=CARD_FILL, outline=CARD_EDGE, width=SMOOTH)
    middle = (top + bottom) / 2
    low = bottom - top < LOW_CARD
    radius, lines = (15, (-24, 2, 18, 34)) if low else (20, (-24, 14, 33, 51))
    token, called, paid, told = (middle + line for line in lines)
    _scaled_token(brush, (left + 46, token), radius, seat, FADED if got else None)
    name = episode.players[seat]
    _write(brush, (left + 46, called), name if len(name) <= 13 else name[:12] + "…", 13, INK, "mm")
    _write(brush, (left + 46, paid), f"earned {moment.earned[seat]:.3g}", 12, MUTED, "mm")
    if thought is not None:
        _write(brush, (left + 46, told), thought.source, 11, MUTED, "mm")
    if thought is None:
        text = f"left with a {got}" if got else "the time is up"
        _write(brush, (left + 120, middle), text, 17, MUTED)
        if got:
            at = ((left + 320) * SMOOTH, middle * SMOOTH)
            draw_prey(brush, at, 70 * SMOOTH, 0 if got == "stag" else 1, moment.scene.rules)
        return
    first = left + 100
    room = (right - 256 - first) / max(1, len(moment.thoughts) - 1)
    for k, opinion in enumerate(thought.opinions):
        _opinion(brush, opinion, (first + k * room, top + 10, first + (k + 1) * room - 6, bottom - 8))
    if not thought.opinions:
        _write(brush, (left + 110, middle), "alone now", 15, MUTED)
    brush.line([(v * SMOOTH) for v in (right - 252, top + 12, right - 252, bottom - 12)], fill=GRIDLINE, width=SMOOTH)
    _choice(brush, thought, seat, moment.action[seat], (right - 240, top + 8, right - 12, bottom - 8))


def _opinion(brush: Brush, opinion: BeliefAbout, box: tuple[float, float, float, float]) -> None:
    """Token, belief bar, and the expected next moves around a point."""
    left, top, right, bottom = box
    _scaled_token(brush, (left + 13, top + 12), 10, opinion.about)
    x0, x1 = left + 30, right - 38
    cut = x0 + (x1 - x0) * opinion.stag
    ahead = min(x1, cut + (x1 - x0) * opinion.follows)
    if x1 - x0 > 8:  # among many there is room for the number alone
        _box(brush, (x0, top + 5, x1, top + 19), HARE_BAR)
        _box(brush, (x0, top + 5, ahead, top + 19), FOLLOWS)
        _box(brush, (x0, top + 5, cut, top + 19), STAG)
    _write(brush, (x1 + 5, top + 12), f"{100 * opinion.stag:.0f} %", 12, INK)
    cx, cy = (left + right) / 2, (top + 24 + bottom) / 2
    reach = min((bottom - top - 24) / 2 - 12, 34)
    for action, (dx, dy) in enumerate(COMPASS):
        chance = opinion.expected[action]
        _arrow(brush, (cx + dx * reach, cy + dy * reach), (dx, dy), 6 + 6 * chance, _shade(INK, chance))
    _dot(brush, (cx, cy), 4 + 4 * opinion.expected[STAY], _shade(INK, opinion.expected[STAY]))
    hunts = opinion.expected[HUNT_STAG : HUNT_HARE + 1]
    for side, (kind, chance) in enumerate(zip((0, 1), hunts)):
        if chance > 0.005:
            away = min(40.0, (right - left) / 2 - 10)
            at = ((cx + (away if side else -away)) * SMOOTH, (bottom - 14) * SMOOTH)
            draw_prey(brush, at, min(28.0, away) * SMOOTH, kind, "hunt", _shade(STAG if kind == 0 else HARE, chance))


def _choice(
    brush: Brush, thought: Decision, seat: int, taken: int | None, box: tuple[float, float, float, float]
) -> None:
    """A bar per action, the taken one filled; below it values and the line of play of a search."""
    left, top, right, bottom = box
    searched = thought.visits is not None
    ground = bottom - (44 if searched else 24)
    policy = thought.policy
    room = (right - left) / 7
    for action in range(len(policy) if policy else 7):
        x = left + (action + 0.5) * room
        colour = PLAYER[seat % len(PLAYER)]
        if policy is not None:
            height = (ground - top - 14) * policy[action]
            bar = (x - room * 0.34, ground - max(height, 1.5), x + room * 0.34, ground)
            _box(brush, bar, colour if action == taken else _shade(colour, 0.4))
            if policy[action] >= 0.005:
                _write(brush, (x, ground - height - 8), f"{100 * policy[action]:.0f}", 11, INK, "mm")
        elif action == taken:
            _box(brush, (x - room * 0.34, top + 14, x + room * 0.34, ground), colour)
        _sign(brush, action, (x, ground + 11), 8, INK if action == taken else MUTED)
    if searched and thought.q is not None and thought.visits is not None:
        for action, (q, visits) in enumerate(zip(thought.q, thought.visits)):
            if visits > 0:
                _write(brush, (left + (action + 0.5) * room, ground + 27), f"{q:.1f}", 11, MUTED, "mm")
        total = sum(thought.visits)
        _write(brush, (left, bottom - 3), f"value {thought.value:.2f}, {total:.0f} visits, plan", 11, MUTED)
        for k, action in enumerate(thought.line[:5]):
            _sign(brush, action, (left + 152 + 17 * k, bottom - 3), 6, INK)


def _sign(brush: Brush, action: int, at: tuple[float, float], size: float, colour: str) -> None:
    """An action as a small picture: arrow, point, stag or hare."""
    if action < STAY:
        _arrow(brush, at, COMPASS[action], size, colour)
    elif action == STAY:
        _dot(brush, at, size * 0.45, colour)
    else:
        kind = action - HUNT_STAG
        place = (at[0] * SMOOTH, at[1] * SMOOTH)
        draw_prey(brush, place, size * 2.5 * SMOOTH, kind, "hunt", colour if colour == MUTED else None)


# --- strokes, in pixels of the finished picture ---------------------------------------------------------------------


def _write(brush: Brush, at: tuple[float, float], words: str, size: int, colour: str, anchor: str = "lm") -> None:
    brush.text((at[0] * SMOOTH, at[1] * SMOOTH), words, fill=colour, font=font_of_size(size * SMOOTH), anchor=anchor)


def _box(brush: Brush, box: Sequence[float], colour: str) -> None:
    x0, y0, x1, y1 = (v * SMOOTH for v in box)
    if x1 - x0 >= 1:
        brush.rectangle((x0, y0, x1, y1), fill=colour)


def _dot(brush: Brush, at: tuple[float, float], radius: float, colour: str) -> None:
    x, y, r = at[0] * SMOOTH, at[1] * SMOOTH, radius * SMOOTH
    brush.ellipse((x - r, y - r, x + r, y + r), fill=colour)


def _arrow(brush: Brush, at: tuple[float, float], way: tuple[int, int], size: float, colour: str) -> None:
    """A solid arrow head that points along `way`."""
    (x, y), (dx, dy) = at, way
    tip = (x + dx * size, y + dy * size)
    base = (x - dx * size * 0.5, y - dy * size * 0.5)
    points = [
        tip,
        (base[0] - dy * size * 0.8, base[1] + dx * size * 0.8),
        (base[0] + dy * size * 0.8, base[1] - dx * size * 0.8),
    ]
    brush.polygon([(px * SMOOTH, py * SMOOTH) for px, py in points], fill=colour)


def _scaled_token(brush: Brush, at: tuple[float, float], radius: float, player: int, fill: str | None = None) -> None:
    draw_token(brush, (at[0] * SMOOTH, at[1] * SMOOTH), radius * SMOOTH, player, fill)


def _shade(colour: str, strength: float) -> str:
    """The colour on the card's ground, from invisible (0, kept faintly visible) to full (1)."""
    part = 0.08 + 0.92 * min(1.0, max(0.0, strength))
    mixed = [round(part * int(colour[i : i + 2], 16) + (1 - part) * int(CARD_FILL[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{value:02x}" for value in mixed)
