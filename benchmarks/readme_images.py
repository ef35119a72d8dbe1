"""The three square moving pictures of README; `benchmarks/docs_images.py RUNS readme` makes them.

Each is 320 pixels wide, drawn larger and then shrunk: a market day by day, the shipped shoal of the sea `pack` with its
two hunters, and a planner's first episodes with three strangers.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw

if TYPE_CHECKING:
    from marlab.hunt.watch.record import Episode, Moment
    from marlab.market.logs.worldlog import WorldLog

SIDE, SMOOTH = 320, 3
PAGE, INK, MUTED, QUIET = "#ffffff", "#2b2b2b", "#6b6b6b", "#c9ced4"
Point = tuple[float, float]


class Sheet:
    """A page of SIDE x SIDE points, drawn SMOOTH times larger so that edges are smooth."""

    def __init__(self) -> None:
        self.page = Image.new("RGB", (SIDE * SMOOTH, SIDE * SMOOTH), PAGE)
        self.brush = ImageDraw.Draw(self.page)

    def disc(self, at: Point, radius: float, fill: str, edge: str | None = None, width: float = 0.0) -> None:
        (x, y), r = (v * SMOOTH for v in at), radius * SMOOTH
        self.brush.ellipse((x - r, y - r, x + r, y + r), fill, edge, round(width * SMOOTH))

    def line(self, points: list[Point], fill: str, width: float) -> None:
        self.brush.line([(x * SMOOTH, y * SMOOTH) for x, y in points], fill, max(1, round(width * SMOOTH)), "curve")

    def box(self, x0: float, y0: float, x1: float, y1: float, fill: str) -> None:
        if x1 > x0:
            self.brush.rectangle([v * SMOOTH for v in (x0, y0, x1, y1)], fill)

    def write(self, at: Point, words: str, size: int = 12, fill: str = INK, anchor: str = "lm") -> None:
        from marlab.hunt.game.render import font_of_size

        self.brush.text(tuple(v * SMOOTH for v in at), words, fill, font_of_size(size * SMOOTH), anchor)

    def done(self) -> np.ndarray:
        return np.asarray(self.page.resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def mixed(colour: str, ground: str, part: float) -> str:
    """`part` of the colour on the ground."""
    pairs = zip(*(bytes.fromhex(c[1:]) for c in (colour, ground)))
    return "#" + "".join(f"{round(part * a + (1 - part) * b):02x}" for a, b in pairs)


# --- fish -----------------------------------------------------------------------------------------------------------

WATER, WALL, FISH, HUNTER, EATEN = "#eaf2f8", "#8a96a3", "#1f66cc", "#d02c2c", "#aab2ba"
TRAIL = 14


def shoal(steps: int = 220, fish: int = 64, seed: int = 3) -> Iterator[np.ndarray]:
    """Every second step of the shipped policy in the sea `pack`; tails show where everybody was."""
    from marlab.fish.commands.watch import WatchConfig
    from marlab.fish.commands.watch import shoal as to_watch
    from marlab.fish.envs.frame import Scene
    from marlab.fish.measure.policies import moments
    from marlab.fish.sea.constants import ARENA_RADIUS
    from marlab.fish.sea.reset import seeded_reset

    policy, cfg = to_watch(WatchConfig(checkpoint="pack", fish=fish))
    start, _ = seeded_reset([seed], cfg)
    past: deque[Scene] = deque(maxlen=TRAIL)
    middle, reach = SIDE / 2, SIDE / 2 - 4

    def at(place: np.ndarray) -> Point:
        return middle + reach * place[0] / ARENA_RADIUS, middle - reach * place[1] / ARENA_RADIUS

    def hunters(scene: Scene) -> np.ndarray:
        return np.concatenate((scene.predator_position[None], scene.pack_positions))

    for number, moment in enumerate(moments(start, policy, cfg, steps)):
        now = Scene.of(moment.state)
        past.append(now)
        if number % 2:
            continue
        sheet = Sheet()
        sheet.disc((middle, middle), reach + 2, WATER, WALL, 2)
        for one in np.flatnonzero(~now.alive):
            sheet.disc(at(now.positions[one]), 1.6, EATEN)
        for age in range(len(past) - 1):  # the oldest first, so that newer strokes lie on top
            fresh = (age + 1) / len(past)
            for before, after, width, colour in (
                (past[age].positions[now.alive], past[age + 1].positions[now.alive], 2.2, FISH),
                (hunters(past[age]), hunters(past[age + 1]), 5.0, HUNTER),
            ):
                for a, b in zip(before, after):
                    sheet.line([at(a), at(b)], mixed(colour, WATER, 0.45 * fresh**2), width * fresh)
        for place in now.positions[now.alive]:
            sheet.disc(at(place), 2.7, FISH)
        for place in hunters(now):
            sheet.disc(at(place), 6.5, HUNTER, "#ffffff", 1)
        sheet.write((6, 12), f"{now.alive.sum()} of {len(now.alive)} alive", 13)
        sheet.write((6, SIDE - 10), f"step {now.t}", 11, MUTED)
        yield sheet.done()


# --- market ---------------------------------------------------------------------------------------------------------

NAMED = {"LitaAgentHRL": "#0072b2", "HorizonAwareAgent": "#009e73", "PenguinAgent": "#d55e00"}
COLLECT = "market collect --configs 1 --runs 1 --steps 50 --processes 3 3 --seed 5 --quiet --experts"


def market(runs: Path) -> Iterator[np.ndarray]:
    """A recorded world, `RUNS/market/film` if it is there; otherwise one is played (a minute)."""
    from marlab.market.logs.worldfile import read_world

    with TemporaryDirectory() as empty:
        folder = runs / "market" / "film"
        if not folder.exists():
            folder = Path(empty) / "film"
            experts = [f"marlab.market.agent:{name}" if name == "LitaAgentHRL" else name for name in NAMED]
            words = [*COLLECT.split(), *experts, "--output-dir", str(folder)]
            subprocess.run([sys.executable, "-m", "marlab", *words], check=True)
        log = read_world(sorted((folder / "worlds").glob("*.parquet"))[-1])
    yield from trade(log)


def trade(log: WorldLog) -> Iterator[np.ndarray]:
    """Factories by level; a line for what two of them agreed on in the last days, as wide as it is large."""
    contracts, days = log.tables["contracts"], log.tables["days"]
    levels = sorted({agent["level"] for agent in log.agents})
    place: dict[int, Point] = {}
    for column, level in enumerate(levels):
        members = [index for index, agent in enumerate(log.agents) if agent["level"] == level]
        for row, index in enumerate(members):
            place[index] = (46 + 114 * column, 46 + 192 * (row + 0.5) / len(members))
    cash = {a["type"]: days["balance"][days["agent"] == i] for i, a in enumerate(log.agents) if a["type"] in NAMED}
    between = (contracts["seller"] >= 0) & (contracts["buyer"] >= 0)  # not the contracts that the world hands out
    deals = np.stack([contracts[name][between] for name in ("day", "seller", "buyer", "quantity")], 1)
    last = int(deals[:, 0].max())
    for today in [*range(last + 1), *[last] * 8]:
        sheet = Sheet()
        sheet.write((8, 13), f"day {today + 1}", 13)
        sheet.write((312, 251), "cash, 1 at the start", 10, MUTED, "rm")
        for column, words in enumerate(("first level", "middle", "last")[: len(levels)]):
            sheet.write((46 + 114 * column, 36), words, 10, MUTED, "mm")
        for age in (3, 2, 1, 0):
            for _, seller, buyer, pieces in deals[deals[:, 0] == today - age]:
                colour = NAMED.get(log.agents[seller]["type"]) or NAMED.get(log.agents[buyer]["type"]) or "#7a828b"
                shade = mixed(colour, PAGE, (0.85, 0.45, 0.22, 0.1)[age])
                sheet.line(curve(place[int(seller)], place[int(buyer)]), shade, 0.8 + 0.35 * math.sqrt(pieces))
        for index, at in place.items():
            colour = NAMED.get(log.agents[index]["type"])
            sheet.disc(at, 9.5 if colour else 7, colour or QUIET, PAGE, 1.5)
        for column, (name, colour) in enumerate(NAMED.items()):
            x = (8, 104, 226)[column]
            now = cash[name][: today + 1]
            sheet.disc((x + 5, 268), 4, colour)
            sheet.write((x + 13, 268), name, 10)
            history = [
                (x + 2 + 58 * day / last, 308 - 22 * (value / cash[name][0] - 1) / 0.3) for day, value in enumerate(now)
            ]
            sheet.line([(x + 2, 308), (x + 60, 308)], QUIET, 0.6)
            if len(history) > 1:
                sheet.line(history, colour, 1.6)
            sheet.write((x + 65, 300), f"{now[-1] / cash[name][0]:.2f}", 10, MUTED)
        yield sheet.done()


def curve(a: Point, b: Point, parts: int = 14) -> list[Point]:
    """From seller to buyer, level at both ends."""
    steps = [k / parts for k in range(parts + 1)]
    return [(a[0] + (b[0] - a[0]) * s, a[1] + (b[1] - a[1]) * s * s * (3 - 2 * s)) for s in steps]


# --- hunt -----------------------------------------------------------------------------------------------------------


FOLLOWS, HAREWARD = "#d9b380", "#c6c3bf"


def hunt(team: str = "NS+2NH", episodes: int = 3, seed: int = 2) -> Iterator[np.ndarray]:
    """The first episodes of the shipped planner with three players whom it does not know; the ends stay longer."""
    from marlab.hunt.watch.command import WatchConfig
    from marlab.hunt.watch.film import watch

    for after in range(episodes):
        episode = watch(WatchConfig(agent="hop_4x4", team=team, after=after, seed=seed, device="cpu"))
        for moment in [*episode.moments, *episode.moments[-1:] * 2]:
            yield table(episode, moment)


def table(episode: Episode, moment: Moment) -> np.ndarray:
    """The board, and below it what player 1 believes that each of the others wants."""
    from marlab.hunt.game.render import STAG, draw_token, image

    shown, cell = moment.scene, 54
    board = image(shown, cell, caption="")
    wide, high, top = shown.width * cell, shown.height * cell, round(0.55 * cell)
    left = round((board.shape[1] - wide) / 2)
    sheet = Sheet()
    sheet.page.paste(
        Image.fromarray(board[top - 3 : top + high + 3, left - 3 : left + wide + 3]).resize(
            ((wide + 6) * SMOOTH, (high + 6) * SMOOTH), Image.Resampling.BICUBIC
        ),
        (49 * SMOOTH, 27 * SMOOTH),
    )
    over = all(action is None for action in moment.action)
    sheet.write((52, 13), f"episode {episode.episode + 1}, " + ("the end" if over else f"step {shown.t}"), 13)
    thought = moment.thoughts[0]
    opinions = {opinion.about: opinion for opinion in thought.opinions} if thought else {}

    def token(at: Point, radius: float, seat: int) -> None:
        draw_token(sheet.brush, (at[0] * SMOOTH, at[1] * SMOOTH), radius * SMOOTH, seat)

    token((14, 272), 9, 0)
    sheet.write((27, 272), "believes", 11, MUTED)
    for column, seat in enumerate(range(1, 4)):
        x = 84 + 80 * column
        token((x + 9, 262), 8, seat)
        got, opinion = shown.got[seat], opinions.get(seat)
        if got or shown.got[0]:
            words = f"{moment.earned[seat]:.2g} for a {got}" if got else ""
            sheet.write((x, 286), words, 11, MUTED)
        elif opinion:
            stag, follows = opinion.stag, opinion.follows
            sheet.box(x, 279, x + 66, 291, HAREWARD)
            sheet.box(x, 279, x + 66 * (stag + follows), 291, FOLLOWS)
            sheet.box(x, 279, x + 66 * stag, 291, STAG)
            sheet.write((x + 22, 262), f"stag {100 * stag:.0f} %", 11)
    for x, colour, words in ((84, STAG, "wants the stag"), (186, FOLLOWS, "follows"), (246, HAREWARD, "a hare")):
        sheet.box(x, 303, x + 10, 311, colour)
        sheet.write((x + 14, 307), words, 10, MUTED)
    return sheet.done()
