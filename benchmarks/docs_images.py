"""Remake the pictures of docs/images with our own commands: python benchmarks/docs_images.py RUNS [NAME ...]

RUNS is a folder with the runs that pictures are drawn from; one that is missing is told and left out:

    fish/best           marlab fish train --preset best
    fish/suite          marlab fish suite pursuit
    fish/selfplay       marlab fish selfplay --shoal intercept
    hunt/hop_4x4        marlab hunt train --preset hop_4x4 --seeds 0..4 --total-steps 285000 --phases P1,P2,P3,P6
    hunt/hopplus        marlab hunt train --preset hop_4x4 --variant hopplus --seeds 0,1 --total-steps 240000
    hunt/ppo            marlab hunt train --variant ppo --seeds 0..4 --total-steps 3000000 --num-envs 1024
    hunt/card           marlab hunt eval hopplus-mcts=RUN direct-om=RUN ppo=RUN ps-ppo=RUN --runs 40 --layouts 2000

Shipped agents need no run: the three pictures of README (`readme`; a minute for the market that it plays, which needs
the extra `market`), fish_seas.gif, fish_frame.png, hunt_watch.png and hunt_episode.png are always made.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

IMAGES = Path(__file__).parents[1] / "docs" / "images"


def readme(runs: Path) -> None:
    """The three square moving pictures of README."""
    from readme_images import hunt, market, shoal

    from marlab.lab.film import write_gif

    write_gif(IMAGES / "market.gif", market(runs), fps=6)
    write_gif(IMAGES / "fish.gif", shoal(), fps=15)
    write_gif(IMAGES / "hunt.gif", hunt(), fps=1)


def fish_seas(runs: Path) -> None:
    """The shipped policy of every sea side by side, the first 24 seconds."""
    from marlab.fish.sea.seas import SEAS
    from marlab.lab.film import write_gif

    names, size = [name for name in SEAS if name != "v32"], 250
    films = [_captioned(name, name, size) for name in names]
    rows = (np.concatenate([np.concatenate(part, 1) for part in (six[:3], six[3:])]) for six in zip(*films))
    write_gif(IMAGES / "fish_seas.gif", rows, fps=8)


def fish_selfplay(runs: Path) -> None:
    """A learned predator among the shoal that it studied, and among the one that answered it."""
    from marlab.lab.film import write_gif

    folder = runs / "fish" / "selfplay"
    films = [
        _captioned(str(folder / f"shoal_{number}.pt"), caption, 320, str(folder / "predator_1.pt"))
        for number, caption in ((0, "the shoal it studied"), (1, "the next shoal"))
    ]
    write_gif(IMAGES / "fish_selfplay.gif", (np.concatenate(pair, 1) for pair in zip(*films)), fps=8)


def _captioned(policy: str, caption: str, size: int, predator: str = "") -> Iterator[np.ndarray]:
    """Every fourth step of a policy in its sea, with a caption below."""
    from PIL import ImageDraw

    from marlab.fish.commands.watch import WatchConfig, frames

    shown = WatchConfig(checkpoint=policy, predator=predator, seed=3, steps=240, size=size)
    for step, frame in enumerate(frames(shown)):
        if step % 4 == 0:
            image = Image.fromarray(frame)
            ImageDraw.Draw(image).text((6, size - 16), caption, fill=(20, 20, 20))
            yield np.asarray(image)


def fish_suite(runs: Path) -> None:
    """How far a policy carries."""
    shutil.copyfile(runs / "fish" / "suite" / "figures" / "generalisation.png", IMAGES / "fish_carries.png")


def fish_frame(runs: Path) -> None:
    from marlab.fish.commands.watch import WatchConfig, frames

    *_, last = frames(WatchConfig(checkpoint="best", fish=48, seed=8, steps=40, size=560))
    Image.fromarray(last).save(IMAGES / "fish_frame.png", optimize=True)


def fish_figures(runs: Path) -> None:
    """Two figures of a training, as `fish train` drew them."""
    folder = runs / "fish" / "best" / "figures"
    for name, ending in (("probes", "multi_eval_timeline"), ("survival", "survival")):
        [found] = folder.glob(f"*_{ending}.png")
        shutil.copyfile(found, IMAGES / f"fish_{name}.png")


def hunt_watch(runs: Path) -> None:
    """A planner in its fourth episode with a hunter and two hare catchers."""
    from marlab.hunt.watch.command import WatchConfig
    from marlab.hunt.watch.film import watch
    from marlab.hunt.watch.frame import frame

    episode = watch(WatchConfig(agent="hop_4x4", team="NS+2NH", after=3, seed=WATCHED, device="cpu"))
    Image.fromarray(frame(episode, 1)).save(IMAGES / "hunt_watch.png", optimize=True)


WATCHED = 6
"""Seed of the episode that is shown: one that lasts some steps."""


def hunt_episode(runs: Path) -> None:
    """Boards of one episode side by side: two hunters and two hare catchers among obstacles."""
    from marlab.hunt.game.render import image
    from marlab.hunt.watch.command import WatchConfig
    from marlab.hunt.watch.film import watch

    moments = watch(WatchConfig(agent="NS", team="NS+2NH", game="msh_6x6_b4", seed=1, device="cpu")).moments
    places = np.linspace(0, len(moments) - 1, 4).round().astype(int)
    boards = [image(moments[place].scene, cell=64) for place in places]
    gap = np.full((boards[0].shape[0], 16, 3), 255, np.uint8)
    row = [part for shot in boards for part in (shot, gap)][:-1]
    Image.fromarray(np.concatenate(row, axis=1)).save(IMAGES / "hunt_episode.png", optimize=True)


def hunt_models(runs: Path) -> None:
    """How models of others learn, what they know of strangers, what is believed, and the world model's worst row."""
    from marlab.hunt.diagnose.config import DiagnoseConfig
    from marlab.hunt.diagnose.work import diagnose

    hop = runs / "hunt" / "hop_4x4"
    codes, world = hop / "phases" / "p2_goals", hop / "phases" / "p3_world"
    out = runs / "diagnose"
    data = hop / "phases" / "p1_data"
    named = tuple(map(str, (codes, world, runs / "hunt" / "ppo", hop)))
    diagnose(DiagnoseConfig(runs=named, data=data, output_dir=out))
    for name, drawn in (
        ("epochs", codes),
        ("transfer", codes),
        ("belief", codes),
        ("unrounded", world),
    ):
        shutil.copyfile(out / f"{name}-{drawn.name}.png", IMAGES / f"hunt_{name}.png")


def hunt_trainings(runs: Path) -> None:
    from marlab.hunt.diagnose.selfplay import draw_trainings, open_training

    names = {"ppo": "PPO", "hopplus": "HOP+", "hop_4x4": "HOP+-MCTS"}
    trainings = [open_training(runs / "hunt" / folder, name) for folder, name in names.items()]
    draw_trainings(trainings, IMAGES / "hunt_trainings.png")


def hunt_card(runs: Path) -> None:
    from marlab.hunt.evaluate.figures import draw_card
    from marlab.hunt.evaluate.run import read_card

    folder = runs / "hunt" / "card"
    draw_card(read_card(folder), folder)
    shutil.copyfile(folder / "figures" / "scenarios_shares.png", IMAGES / "hunt_scorecard.png")


MAKERS: dict[str, Callable[[Path], None]] = {
    "readme": readme,
    "fish_seas": fish_seas,
    "fish_selfplay": fish_selfplay,
    "fish_frame": fish_frame,
    "fish_suite": fish_suite,
    "fish_figures": fish_figures,
    "hunt_watch": hunt_watch,
    "hunt_episode": hunt_episode,
    "hunt_models": hunt_models,
    "hunt_trainings": hunt_trainings,
    "hunt_card": hunt_card,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="folder of the runs that pictures are drawn from")
    parser.add_argument("names", nargs="*", choices=[[], *MAKERS], help="only these")
    args = parser.parse_args()
    for name in args.names or MAKERS:
        try:
            MAKERS[name](args.runs)
            print(f"made {name}")
        except (FileNotFoundError, ValueError, StopIteration) as error:
            print(f"left out {name}: {error}")


if __name__ == "__main__":
    main()
