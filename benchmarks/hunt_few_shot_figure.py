"""What earlier episodes are worth, by episode: the figure of what `hunt_protocol.py --game msh_far` measured.

    python benchmarks/hunt_few_shot_figure.py --folder far --agents planner=hop "forgets=across-off" PPO=ppo NS=NS

Left, the mean over all scenarios of the shares of the best response, a moving mean of three episodes; right, some
scenarios in which nobody can know at first what the others are.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from marlab.lab.report.figures import Curve, curves, moving_mean, reference_lines
from marlab.lab.report.style import legend, panels, save

SMOOTH = 3
SHOWN = ("KEEP(0.25)+2NH", "SWITCH(1)+2NH")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="output directory of hunt_protocol.py")
    parser.add_argument("--agents", nargs="+", required=True, help="TITLE=NAME")
    parser.add_argument("--image", type=Path, default=Path("docs/images/hunt_few_shot.png"))
    arguments = parser.parse_args()
    exact = {name: level for name, (level, _, _) in read(arguments.folder / "exact.json").items()}
    agents = dict(text.split("=", 1) for text in arguments.agents)
    found = {title: read(arguments.folder / f"{name}.json") for title, name in agents.items()}
    figure, axes = panels(1, 1 + len(SHOWN), size=(4.6, 4.3))
    shares = {
        title: np.mean([_first(one[name]["by_episode"]) / exact[name] for name in exact], 0)
        for title, one in found.items()
    }
    _draw(axes[0], shares, f"mean of {len(exact)} teams of strangers", "share of best response", 1.0, least=0.6)
    for ax, name in zip(axes[1:], SHOWN):
        rewards = {title: _first(one[name]["by_episode"]) for title, one in found.items()}
        _draw(ax, rewards, f"among {name}", "focal reward", exact[name])
    legend(figure)
    print(save(figure, arguments.image))


def _draw(ax, lines, title, what, best, least=0.0) -> None:  # type: ignore[no-untyped-def]
    series = {name: Curve(np.arange(1, len(y) + 1), moving_mean(y, SMOOTH)) for name, y in lines.items()}
    curves(ax, series, xlabel="episode with the same players", ylabel=what, title=title)
    ax.set_ylim(least, 1.06 * max(best, *(float(np.max(c.y)) for c in series.values())))
    reference_lines(ax, {"best": best})


def _first(by_episode: list[float], most: int = 36) -> np.ndarray:
    """The episodes that every run has."""
    return np.array(by_episode[:most])


def read(path: Path) -> dict:  # type: ignore[type-arg]
    return json.loads(path.read_text())  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
