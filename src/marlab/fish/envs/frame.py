"""One picture of the sea: pure NumPy painting with smooth edges, fast enough for films.

White page, pale round arena, blue fish with a tail that shows where they come from, the eaten as grey dots, the red
predator with its kill distance, its path ahead and the circle inside which fish can see it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from marlab.fish.sea import constants as sea
from marlab.fish.sea.dynamics import SeaState

PAGE = (255, 255, 255)
WATER = (241, 246, 250)
WALL = (138, 150, 163)
FISH = (31, 102, 204)
GONE = (190, 196, 203)
PREDATOR = (208, 44, 44)
INK = (60, 68, 78)
TAIL = ((0.0, 4.0), (2.8, 3.3), (5.2, 2.4), (7.4, 1.5))
"""A fish is four discs: distance behind its centre and radius, in pixels of an 800 px frame."""
PREDATOR_RADIUS = 10.0
EMPTY = np.zeros((0, 2), dtype=np.float32)
AHEAD = tuple((14.0 + 7.0 * i, 2.6 - 0.35 * i) for i in range(5))


class Scene(NamedTuple):
    """What a frame shows, as NumPy arrays on the host."""

    positions: np.ndarray  # [F, 2] m, existing fish only
    velocities: np.ndarray  # [F, 2] m/s
    alive: np.ndarray  # [F] bool
    predator_position: np.ndarray  # [2]
    predator_velocity: np.ndarray  # [2]
    t: int
    pack_positions: np.ndarray = EMPTY  # [P - 1, 2] the other predators
    pack_velocities: np.ndarray = EMPTY

    @classmethod
    def of(cls, state: SeaState, arena: int = 0) -> Scene:
        exists = state.exists[arena].cpu().numpy()
        row = SeaState(*(tensor[arena : arena + 1].cpu() for tensor in state))
        mates = row.predators
        return cls(
            row.positions[0].numpy()[exists], row.velocities[0].numpy()[exists], row.alive[0].numpy()[exists],
            row.predator_position[0].numpy(), row.predator_velocity[0].numpy(), int(row.t[0]),
            np.stack((mates.x[0, 1:], mates.y[0, 1:]), 1), np.stack((mates.vx[0, 1:], mates.vy[0, 1:]), 1),
        )  # fmt: skip


def paint(scene: Scene | SeaState, size: int = 800, caption: str | None = None) -> np.ndarray:
    """The scene (or arena 0 of a state) as [size, size, 3] uint8; the default caption is "alive/total, step"."""
    if isinstance(scene, SeaState):
        scene = Scene.of(scene)
    frame = _background(size).copy()
    unit = size / 800  # drawing sizes are meant for 800 px
    predator = _pixels(np.concatenate((scene.predator_position[None], scene.pack_positions)), size)
    metre, many = size / (2 * sea.ARENA_RADIUS), np.ones(len(predator))
    _discs(frame, predator, sea.VISION_RADIUS * metre * many, PREDATOR, strength=0.06)
    _discs(frame, predator, sea.KILL_DISTANCE * metre * many, PREDATOR, strength=0.16)
    places = _pixels(scene.positions, size)
    gone = places[~scene.alive]
    _discs(frame, gone, np.full(len(gone), 2.4 * unit), GONE)
    _trails(frame, places[scene.alive], _directions(scene.velocities[scene.alive]), TAIL, -unit, FISH)
    swimming = np.concatenate((scene.predator_velocity[None], scene.pack_velocities))
    _trails(frame, predator, _directions(swimming), AHEAD, unit, PREDATOR)
    _discs(frame, predator, PREDATOR_RADIUS * unit * many, PREDATOR)
    text = f"{int(scene.alive.sum())}/{len(scene.alive)} alive, step {scene.t}" if caption is None else caption
    _write(frame, text, size)
    return frame


def _pixels(points: np.ndarray, size: int) -> np.ndarray:
    """Metres [N, 2] to pixels [N, 2] (column, row), y up."""
    scaled = points / sea.ARENA_RADIUS
    return np.stack((scaled[:, 0] + 1, 1 - scaled[:, 1]), axis=1) * (size / 2)


def _directions(velocities: np.ndarray) -> np.ndarray:
    """Unit vectors in pixels (rows grow downwards), zero for what rests."""
    speed = np.linalg.norm(velocities, axis=1, keepdims=True)
    return velocities / np.maximum(speed, 1e-6) * np.array([1.0, -1.0])


def _trails(
    frame: np.ndarray, centres: np.ndarray, directions: np.ndarray, discs: tuple[tuple[float, float], ...],
    unit: float, colour: tuple[int, int, int],
) -> None:  # fmt: skip
    """Discs at given distances along (unit > 0) or against each direction."""
    places = [centres + directions * (distance * unit) for distance, _ in discs]
    radii = [np.full(len(centres), radius * abs(unit)) for _, radius in discs]
    _discs(frame, np.concatenate(places), np.concatenate(radii), colour)


def _discs(
    frame: np.ndarray, centres: np.ndarray, radii: np.ndarray, colour: tuple[int, int, int], strength: float = 1.0
) -> None:
    """Filled discs with smooth edges as one layer: where they overlap the layer is not darker."""
    if not len(centres):
        return
    size = len(frame)
    reach = int(np.ceil(radii.max())) + 1
    span = np.arange(-reach, reach + 1)
    corner = np.floor(centres).astype(np.int64)  # [N, 2] column, row
    columns, rows = corner[:, :1] + span, corner[:, 1:] + span  # [N, P]
    dx = (columns + 0.5 - centres[:, :1]).astype(np.float32)
    dy = (rows + 0.5 - centres[:, 1:]).astype(np.float32)
    distance = np.sqrt(dx[:, None, :] ** 2 + dy[:, :, None] ** 2)  # [N, P, P]
    cover = np.clip(radii.astype(np.float32)[:, None, None] + np.float32(0.5) - distance, 0.0, 1.0)
    inside = ((columns >= 0) & (columns < size))[:, None, :] & ((rows >= 0) & (rows < size))[:, :, None] & (cover > 0)
    pixels = (rows[:, :, None] * size + columns[:, None, :])[inside]
    alpha = strength * cover[inside]
    if len(centres) > 1:
        layer = np.zeros(size * size, dtype=np.float32)
        np.maximum.at(layer, pixels, alpha)
        alpha = layer[pixels]
    alpha = alpha[:, None]
    flat = frame.reshape(-1, 3)
    flat[pixels] = (flat[pixels] * (1 - alpha) + np.array(colour, dtype=np.float32) * alpha + 0.5).astype(np.uint8)


@lru_cache(maxsize=4)
def _background(size: int) -> np.ndarray:
    """The empty arena."""
    middle = np.arange(size) + 0.5 - size / 2
    distance = np.sqrt(middle[None, :] ** 2 + middle[:, None] ** 2)[..., None]
    radius, line = size / 2 - 1, 2.0 * size / 800
    water = np.clip(radius + 0.5 - distance, 0, 1)
    wall = water * np.clip(distance - (radius - line) + 0.5, 0, 1)
    page = np.array(PAGE) * (1 - water) + np.array(WATER) * water
    picture = (page * (1 - wall) + np.array(WALL) * wall + 0.5).astype(np.uint8)
    picture.flags.writeable = False
    return picture


def _write(frame: np.ndarray, text: str, size: int) -> None:
    """The caption in the top left corner, outside the arena."""
    font = _font(max(9, round(size / 44)))
    margin = round(size / 60)
    height, width = round(size / 28), min(size - margin, round(font.getlength(text)) + 4)
    strip = Image.fromarray(np.ascontiguousarray(frame[margin : margin + height, margin : margin + width]))
    ImageDraw.Draw(strip).text((0, 0), text, fill=INK, font=font)
    frame[margin : margin + height, margin : margin + width] = np.asarray(strip)


@lru_cache(maxsize=4)
def _font(points: int) -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    return ImageFont.load_default(points)
