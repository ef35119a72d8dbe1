"""A game to look at: as text for terminals, as a picture for films and pages.

Players are tokens of different colour *and* shape (circle, square, diamond, triangle) with their number; a stag has
antlers, a hare has ears, obstacles are dark. What the last step captured shines in its cell with its pay, and below
the board stands what everybody did last, or has left with.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from marlab.hunt.game.rules import Game, Outcome, State

PAGE, GROUND, GRID, ROCK, ROCK_EDGE, INK, FADED, GLOW = (
    "#ffffff", "#f3efe4", "#d9d2c0", "#6d7580", "#545b65", "#2b2b2b", "#a5a5a5", "#ffc928",
)  # fmt: skip
STAG, HARE, SNOW, SNOW_EDGE = "#8a5a2b", "#8d8a86", "#d7ebf7", "#7fa9c4"
PLAYER = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444")
SMOOTH = 3
"""Everything is drawn this many times larger and then shrunk, which makes the edges smooth."""

WORDS = ("up", "down", "left", "right", "stays", "hunts", "hunts", "")
"""Last actions as the line below the board tells them."""

Point = tuple[float, float]


class Scene(NamedTuple):
    """One game at one time, as plain values."""

    height: int
    width: int
    rules: str
    t: int
    final_time: int
    blocks: list[int]  # cells
    prey: list[tuple[int, int]]  # (cell, kind) of what is left
    players: list[int | None]  # cell of each player, None once it has left
    got: list[str]  # what each player left with, or ""
    did: list[str]  # each player's last action in a word
    captures: list[tuple[int, int, str]]  # (cell, kind, pay) of the last step


def scene(game: Game, state: State, index: int = 0, outcome: Outcome | None = None) -> Scene:
    """Game `index` of a state; with the outcome of the step that led to it, its captures are shown too."""
    config, kinds = game.config, game.prey_kind.tolist()
    cells, alive = state.cell[index].tolist(), state.alive[index].tolist()
    prey_cell, prey_alive = state.prey_cell[index].tolist(), state.prey_alive[index].tolist()
    taken = {cell: kind for cell, kind, there in zip(prey_cell, kinds, prey_alive) if not there}
    captures: list[tuple[int, int, str]] = []
    if outcome is not None:
        rewards, hunters = outcome.reward[index].tolist(), outcome.hunters[index].tolist()
        for cell, kind, now in zip(prey_cell, kinds, outcome.captured[index].tolist()):
            if now:
                who = [i for i, c in enumerate(cells) if c == cell and hunters[i] > 0]
                captures.append((cell, kind, f"{rewards[who[0]]:+.3g}"))
    return Scene(
        config.height,
        config.width,
        config.rules,
        int(state.t[index]),
        config.final_time,
        blocks=game.maps.blocks[int(state.map[index])].nonzero().flatten().tolist(),
        prey=[(cell, kind) for cell, kind, there in zip(prey_cell, kinds, prey_alive) if there],
        players=[cell if there else None for cell, there in zip(cells, alive)],
        got=["" if there else ("stag", "hare")[taken.get(cell, 1)] for cell, there in zip(cells, alive)],
        did=[WORDS[action] if state.t[index] > 0 else "starts" for action in state.last_action[index].tolist()],
        captures=captures,
    )


# --- text -----------------------------------------------------------------------------------------------------------


def text(shown: Scene) -> str:
    """The board in letters: S stag, h hare, * drift, # obstacle, numbers for players."""
    wide = max(3, len(shown.players))
    mark = "*" if shown.rules == "snowdrift" else "S"
    line = "+" + ("-" * wide + "+") * shown.width
    rows = [f"t {shown.t}/{shown.final_time}", line]
    for r in range(shown.height):
        cells = []
        for c in range(shown.width):
            cell = r * shown.width + c
            letters = "#" * wide if cell in shown.blocks else ""
            letters += "".join(mark if kind == 0 else "h" for place, kind in shown.prey if place == cell)
            letters += "".join(str(i + 1) for i, place in enumerate(shown.players) if place == cell)
            cells.append(f"{letters:<{wide}}"[:wide] if len(letters) <= wide else letters[:wide])
        rows += ["|" + "|".join(cells) + "|", line]
    captions = [f"{i + 1}: {got}" for i, got in enumerate(shown.got) if got]
    return "\n".join([*rows, "left with " + ", ".join(captions)] if captions else rows)


# --- picture --------------------------------------------------------------------------------------------------------


def image(shown: Scene, cell: int = 96, caption: str | None = None) -> np.ndarray:
    """The board as [height, width, 3] uint8, `cell` pixels a cell; the default caption is the time."""
    unit = cell * SMOOTH
    head, foot, margin = 0.55 * unit, 0.72 * unit, 0.18 * unit
    least = 1.25 * unit * len(shown.players)  # room for everybody's line below the board
    board_w, board_h = shown.width * unit, shown.height * unit
    size = (round(max(board_w, least) + 2 * margin), round(board_h + head + foot + margin))
    page = Image.new("RGB", size, PAGE)
    brush = ImageDraw.Draw(page)
    left, top = (size[0] - board_w) / 2, head
    words = caption if caption is not None else f"step {shown.t} of {shown.final_time}"
    brush.text((left, head * 0.48), words, fill=INK, font=font_of_size(round(0.27 * unit)), anchor="lm")
    _board(brush, shown, left, top, unit)
    for place, kind, pay in shown.captures:
        crowded = place in shown.players
        _capture(brush, _centre(shown, place, left, top, unit), unit, None if crowded else kind, pay, shown.rules)
    for place in range(shown.height * shown.width):
        _occupants(brush, shown, place, _centre(shown, place, left, top, unit), unit)
    _footer(brush, shown, size[0], top + board_h + 0.5 * (foot + margin) - 0.04 * unit, unit)
    small = page.resize((size[0] // SMOOTH, size[1] // SMOOTH), Image.Resampling.LANCZOS)
    return np.asarray(small, dtype=np.uint8).copy()


def _centre(shown: Scene, place: int, left: float, top: float, unit: float) -> Point:
    row, col = divmod(place, shown.width)
    return left + (col + 0.5) * unit, top + (row + 0.5) * unit


def _board(brush: ImageDraw.ImageDraw, shown: Scene, left: float, top: float, unit: float) -> None:
    right, bottom = left + shown.width * unit, top + shown.height * unit
    thin, thick = max(1, round(unit * 0.012)), max(1, round(unit * 0.03))
    brush.rectangle((left, top, right, bottom), fill=GROUND)
    for place in shown.blocks:
        x, y = _centre(shown, place, left, top, unit)
        brush.rectangle((x - unit / 2, y - unit / 2, x + unit / 2, y + unit / 2), fill=ROCK)
        for shift in (-0.25, 0.0, 0.25):  # strokes, so that rock is rock in black and white too
            ends = (x + (shift - 0.14) * unit, y + 0.3 * unit, x + (shift + 0.14) * unit, y - 0.3 * unit)
            brush.line(ends, fill=ROCK_EDGE, width=thick)
    for col in range(shown.width + 1):
        brush.line((left + col * unit, top, left + col * unit, bottom), fill=GRID, width=thin)
    for row in range(shown.height + 1):
        brush.line((left, top + row * unit, right, top + row * unit), fill=GRID, width=thin)
    brush.rectangle((left, top, right, bottom), outline="#8f8671", width=thick)


def _occupants(brush: ImageDraw.ImageDraw, shown: Scene, place: int, at: Point, unit: float) -> None:
    """Prey in the middle, or above the players who stand on it."""
    kinds = [kind for cell, kind in shown.prey if cell == place]
    here = [i for i, cell in enumerate(shown.players) if cell == place]
    x, y = at
    if kinds:
        lift = 0.17 * unit if here else 0.0
        draw_prey(brush, (x, y - lift), unit * (0.62 if here else 0.86), kinds[0], shown.rules)
    crowded = bool(kinds) or any(cell == place for cell, _, _ in shown.captures)
    for i, (dx, dy, radius) in zip(here, _spots(len(here), crowded)):
        draw_token(brush, (x + dx * unit, y + dy * unit), radius * unit, i)


def _spots(count: int, below: bool) -> list[tuple[float, float, float]]:
    """(dx, dy, radius) in cells for `count` tokens in one cell; `below` leaves the upper part to the prey."""
    if below:
        step = min(0.34, 0.9 / max(count, 1))
        return [((k - (count - 1) / 2) * step, 0.29, min(0.17, step * 0.48)) for k in range(count)]
    if count == 1:
        return [(0.0, 0.0, 0.29)]
    columns = 2 if count <= 4 else 3
    rows = math.ceil(count / columns)
    step = 0.9 / max(columns, rows)
    return [
        ((k % columns - (columns - 1) / 2) * step, (k // columns - (rows - 1) / 2) * step, step * 0.44)
        for k in range(count)
    ]


def draw_token(brush: ImageDraw.ImageDraw, at: Point, radius: float, player: int, fill: str | None = None) -> None:
    """A player's shape with its number."""
    x, y = at
    colour, edge = fill or PLAYER[player % len(PLAYER)], max(1, round(radius * 0.1))
    shape, lower = player % 4, 0.0
    if shape == 0:
        brush.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour, outline="white", width=edge)
    elif shape == 1:
        side = radius * 0.92
        box = (x - side, y - side, x + side, y + side)
        brush.rounded_rectangle(box, radius * 0.2, fill=colour, outline="white", width=edge)
    elif shape == 2:
        far = radius * 1.22
        brush.polygon(
            [(x, y - far), (x + far, y), (x, y + far), (x - far, y)], fill=colour, outline="white", width=edge
        )
    else:
        far, lower = radius * 1.2, 0.22
        points = [(x, y - far), (x + far, y + 0.85 * far), (x - far, y + 0.85 * far)]
        brush.polygon(points, fill=colour, outline="white", width=edge)
    font = font_of_size(round(radius * (1.15 if shape < 3 else 1.0)))
    brush.text((x, y + lower * radius), str(player + 1), fill="white", font=font, anchor="mm")


def draw_prey(
    brush: ImageDraw.ImageDraw, at: Point, size: float, kind: int, rules: str, colour: str | None = None
) -> None:
    if rules == "snowdrift":
        _drift(brush, at, size, colour)
    elif kind == 0:
        _stag(brush, at, size, colour or STAG)
    else:
        _hare(brush, at, size, colour or HARE)


def _stag(brush: ImageDraw.ImageDraw, at: Point, size: float, colour: str) -> None:
    """A head from the front, with antlers."""
    x, y = at

    def p(dx: float, dy: float) -> Point:
        return x + dx * size, y + dy * size

    width = max(1, round(size * 0.05))
    for side in (-1, 1):
        main = [p(side * 0.08, -0.06), p(side * 0.17, -0.24), p(side * 0.34, -0.3), p(side * 0.38, -0.46)]
        brush.line(main, fill=colour, width=width, joint="curve")
        brush.line([p(side * 0.19, -0.25), p(side * 0.15, -0.44)], fill=colour, width=width)
        brush.line([p(side * 0.32, -0.3), p(side * 0.46, -0.28)], fill=colour, width=width)
        ear = [p(side * 0.1, -0.04), p(side * 0.31, -0.1), p(side * 0.18, 0.07)]
        brush.polygon(ear, fill=colour)
    face = [p(-0.15, -0.08), p(0.15, -0.08), p(0.17, 0.08), p(0.08, 0.36), p(0.0, 0.41), p(-0.08, 0.36), p(-0.17, 0.08)]
    brush.polygon(face, fill=colour)
    for side in (-1, 1):
        ex, ey, r = x + side * 0.085 * size, y + 0.07 * size, 0.028 * size
        brush.ellipse((ex - r, ey - r, ex + r, ey + r), fill="white")
    brush.ellipse((*p(-0.05, 0.3), *p(0.05, 0.37)), fill="#3a2512")


def _hare(brush: ImageDraw.ImageDraw, at: Point, size: float, colour: str) -> None:
    """A head from the front, with long ears."""
    x, y = at[0], at[1] + 0.07 * size
    for side in (-1, 1):
        base, tip = (x + side * 0.08 * size, y - 0.02 * size), (x + side * 0.17 * size, y - 0.42 * size)
        _capsule(brush, base, tip, 0.075 * size, colour)
        _capsule(brush, base, (tip[0], tip[1] + 0.03 * size), 0.03 * size, "#f3d9d3")
    brush.ellipse((x - 0.2 * size, y - 0.1 * size, x + 0.2 * size, y + 0.28 * size), fill=colour)
    for side in (-1, 1):
        ex, ey, r = x + side * 0.085 * size, y + 0.05 * size, 0.032 * size
        brush.ellipse((ex - r, ey - r, ex + r, ey + r), fill="white")
    brush.ellipse((x - 0.03 * size, y + 0.13 * size, x + 0.03 * size, y + 0.18 * size), fill="#5a2a2a")


def _capsule(brush: ImageDraw.ImageDraw, a: Point, b: Point, radius: float, colour: str) -> None:
    brush.line((*a, *b), fill=colour, width=max(1, round(2 * radius)))
    for x, y in (a, b):
        brush.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def _drift(brush: ImageDraw.ImageDraw, at: Point, size: float, colour: str | None) -> None:
    """A heap of snow with a flake on it."""
    x, y = at
    edge, ground = max(1, round(size * 0.025)), y + 0.3 * size
    for dx, wide, high in ((-0.2, 0.24, 0.26), (0.22, 0.22, 0.22), (0.02, 0.3, 0.5)):
        box = (x + (dx - wide) * size, ground - high * size, x + (dx + wide) * size, ground + high * size)
        brush.chord(box, 180, 360, fill=colour or SNOW, outline=SNOW_EDGE, width=edge)
    for turn in range(3):
        dx, dy = 0.1 * size * math.cos(turn * math.pi / 3), 0.1 * size * math.sin(turn * math.pi / 3)
        fx, fy = x + 0.02 * size, y + 0.06 * size
        brush.line((fx - dx, fy - dy, fx + dx, fy + dy), fill=SNOW_EDGE, width=edge)


def _capture(brush: ImageDraw.ImageDraw, at: Point, unit: float, kind: int | None, pay: str, rules: str) -> None:
    """A shining star with the prey and the pay of everybody who shared it; without prey where players stand in it."""
    x, y = at
    points = []
    for k in range(24):
        angle, radius = math.pi * k / 12, unit * (0.47 if k % 2 == 0 else 0.36)
        points.append((x + radius * math.sin(angle), y - radius * math.cos(angle)))
    brush.polygon(points, fill=GLOW)
    if kind is not None:
        draw_prey(brush, (x, y - 0.1 * unit), 0.52 * unit, kind, rules)
    height = 0.23 if kind is not None else -0.1
    brush.text((x, y + height * unit), pay, fill=INK, font=font_of_size(round(0.22 * unit)), anchor="mm")


def _footer(brush: ImageDraw.ImageDraw, shown: Scene, width: float, y: float, unit: float) -> None:
    """Who is who, and what everybody has got."""
    count = len(shown.players)
    step = min(width / count, 1.6 * unit)
    x = (width - step * count) / 2 + 0.24 * unit
    for i, got in enumerate(shown.got):
        draw_token(brush, (x, y), 0.17 * unit, i, FADED if got else None)
        if got:
            draw_prey(brush, (x + 0.5 * unit, y), 0.44 * unit, 0 if got == "stag" else 1, shown.rules)
        else:
            font = font_of_size(round(0.19 * unit))
            brush.text((x + 0.3 * unit, y), shown.did[i], fill=INK, font=font, anchor="lm")
        x += step


@lru_cache(maxsize=32)
def font_of_size(points: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(points)
