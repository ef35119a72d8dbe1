"""`marlab fish watch CHECKPOINT`: see a trained (or scripted) shoal live, or as a film where there is no display."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from marlab.fish.measure.config import SCRIPTED, SeaName
from marlab.fish.sea.constants import EPISODE_STEPS
from marlab.lab.checks import at_least
from marlab.lab.command import begins_anew
from marlab.lab.errors import UserError
from marlab.lab.flags import parse
from marlab.lab.progress import Progress

if TYPE_CHECKING:
    from marlab.fish.measure.policies import Policy
    from marlab.fish.sea.config import SeaConfig

STANDARD_FISH = 25
LARGEST_PICTURE = 4096


@dataclass(frozen=True)
class WatchConfig:
    """Watch a shoal for one episode."""

    checkpoint: str = ""
    """A model_iter_N.pt, a run directory, a shipped policy (best), or the name of a scripted policy."""
    sea: SeaName = "trained"
    """The sea that the policy was trained in (scripts: v32), or a frozen one."""
    predator: str = ""
    """A predator of self-play (predator_N.pt) that hunts in place of the sea's."""
    fish: int | None = None
    """Fish in the arena; none: 25, and in a sea where something else hunts as many as that sea has."""
    seed: int = 0
    """Seed of the arena."""
    steps: int = EPISODE_STEPS
    """Longest time to watch."""
    fps: int = 30
    """Frames per second."""
    size: int = 800
    """Width and height of the picture in pixels."""
    film: Path | None = None
    """Write an MP4 (or, by its ending, a GIF) here instead of opening a window."""

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise UserError(f"Name a checkpoint or one of the scripted policies: {', '.join(SCRIPTED)}.")
        at_least(self, 1, "fps", "steps", *(["fish"] if self.fish is not None else []))
        if not 64 <= self.size <= LARGEST_PICTURE or self.size % 2:
            raise UserError(f"size is {self.size}, expected an even number from 64 to {LARGEST_PICTURE}.")


def shoal(config: WatchConfig) -> tuple[Policy, SeaConfig]:
    """The policy to watch, and its sea with as many fish as asked for."""
    import torch

    from marlab.fish.measure.policies import scripted
    from marlab.fish.measure.probe import greedy
    from marlab.fish.sea.config import SeaConfig
    from marlab.fish.sea.seas import fish_in, hunted_by, named_sea
    from marlab.fish.training.networks import find_checkpoint, load_policy

    if config.checkpoint in SCRIPTED:
        policy, cfg = scripted(config.checkpoint, torch.Generator().manual_seed(config.seed)), SeaConfig()
    else:
        trained = load_policy(find_checkpoint(config.checkpoint))
        policy, cfg = greedy(trained.net), trained.sea
    if config.sea != "trained":
        cfg = named_sea(config.sea, cfg)
    if config.predator:
        cfg = hunted_by(cfg, config.predator)
    return policy, replace(cfg, num_fish=fish_in(cfg, STANDARD_FISH) if config.fish is None else config.fish)


def frames(config: WatchConfig) -> Iterator[np.ndarray]:
    """The episode as pictures, the start included; prints how many live every 50 steps."""
    from marlab.fish.envs.frame import paint
    from marlab.fish.measure.policies import moments
    from marlab.fish.sea.reset import seeded_reset

    policy, cfg = shoal(config)
    start, _ = seeded_reset([config.seed], cfg)
    steps = min(config.steps, EPISODE_STEPS)
    for state in chain([start], (moment.state for moment in moments(start, policy, cfg, steps))):
        t = int(state.t)
        if t % 50 == 0:
            print(f"step {t:3d}: {int(state.alive.sum())} of {cfg.num_fish} alive", flush=True)
        yield paint(state, config.size)


def has_display() -> bool:
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def show_live(config: WatchConfig) -> bool:
    """Play the episode in a window; False if no window could be opened."""
    try:
        import tkinter
    except ImportError:
        print("No window: this Python was built without tkinter.")
        return False
    try:
        root = tkinter.Tk()
    except tkinter.TclError as error:
        print(f"No window: {error}.")
        return False
    root.title(f"marlab fish watch {config.checkpoint}")
    canvas = tkinter.Canvas(root, width=config.size, height=config.size, highlightthickness=0)
    canvas.pack()
    closed = []
    root.protocol("WM_DELETE_WINDOW", lambda: closed.append(True))
    due = time.monotonic()
    for frame in frames(config):
        # PPM needs no imaging library and Tk reads it from memory.
        header = f"P6 {config.size} {config.size} 255\n".encode()
        picture = tkinter.PhotoImage(data=header + frame.tobytes(), format="PPM")
        canvas.delete("all")
        canvas.create_image(0, 0, image=picture, anchor="nw")
        root.update()
        if closed:
            break
        due += 1 / config.fps
        time.sleep(max(0.0, due - time.monotonic()))
    root.destroy()
    return True


def main(argv: list[str]) -> int:
    """The command `marlab fish watch`."""
    config = parse(WatchConfig, argv, prog="marlab fish watch", positional=("checkpoint",))
    if config.film is None and has_display() and show_live(config):
        return 0
    from marlab.lab.film import until, write_film

    file = config.film or Path(f"watch_{Path(config.checkpoint).stem}_seed{config.seed}.mp4")
    total = min(config.steps, EPISODE_STEPS) + 1
    with begins_anew("marlab fish watch"), Progress("filming", total=total, unit="frames") as bar:
        count = write_film(file, until(lambda: False, frames(config), bar), config.fps)
    print(f"{count} frames in {file}")
    return 0
