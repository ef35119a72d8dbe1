"""`marlab hunt watch AGENT`: an episode as a film and as data for a replay.

The film shows the board and, for every player, its beliefs about the others, the moves it expects of them, and its
own choice with the search behind it. Players who do not plan are shown as an ideal observer understands them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from marlab.hunt.evaluate.agents import Agent, find_agent
from marlab.hunt.evaluate.scenarios import team_members
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config, game_names
from marlab.hunt.watch.frame import frame
from marlab.hunt.watch.record import Episode, record
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.film import can_film, write_mp4
from marlab.lab.progress import Progress
from marlab.lab.runs.files import replacing, write_json
from marlab.lab.runs.rng import Rngs

FPS = 10


@dataclass(frozen=True)
class WatchConfig:
    """Whom to watch."""

    agent: str = ""
    """A rule such as NS, or a run directory of trained agents."""
    team: str = ""
    """The others, such as NS+2NH; without them all seats are played by the agent."""
    seat: int = 1
    """Where the agent sits, from 1; the team follows around the table."""
    game: str = "msh_4x4"
    """The game, by the name of its preset."""
    after: int = 0
    """Episodes that these players have already played together before the one that is shown."""
    seed: int = 0
    """Seed of the starts and of everybody's randomness."""
    seconds: float = 1.0
    """How long a step is shown."""
    pictures: bool = False
    """Also write every step as a PNG."""
    out: Path | None = None
    """Folder for the film and the data; by default `media` in the agent's run, or runs/hunt/watch."""
    device: str = "cpu"
    """Where to compute: cpu, cuda, cuda:N or auto."""

    def __post_init__(self) -> None:
        if not self.agent:
            raise UserError("Name an agent: marlab hunt watch AGENT, a rule such as NS or a run directory.")
        if self.game not in game_names() or game_config(self.game).rules != "hunt":
            hunts = [name for name in game_names() if game_config(name).rules == "hunt"]
            raise UserError(f"'{self.game}' is not a stag hunt, expected one of {', '.join(hunts)}.")
        players = game_config(self.game).players
        if not 1 <= self.seat <= players:
            raise UserError(f"seat is {self.seat}, expected a number from 1 to {players}.")
        if self.team and len(team_members(self.team)) != players - 1:
            raise UserError(
                f"The team '{self.team}' has {len(team_members(self.team))} members, expected {players - 1}."
            )
        if self.after < 0:
            raise UserError(f"after is {self.after}, expected 0 or more episodes.")
        if not 0.1 <= self.seconds <= 60:
            raise UserError(f"seconds is {self.seconds:g}, expected 0.1 to 60.")


def watch(config: WatchConfig) -> Episode:
    """Play the episode."""
    players = game_config(config.game).players
    agents = _seated(config, players)
    rngs = Rngs(config.seed, choose_device(config.device))
    game = make_game(game_config(config.game), rngs.torch("maps", "cpu"), device=rngs.device)
    starts = [game.reset(1, rngs.torch("starts")) for _ in range(config.after + 1)]
    return record(game, agents, starts, rngs.torch("players"), config.game)


def _seated(config: WatchConfig, players: int) -> list[Agent]:
    """Everybody in the order of the seats."""
    agent = find_agent(config.agent)
    if not config.team:
        return [agent] * players
    around = [agent, *(find_agent(name) for name in team_members(config.team))]
    return [around[(seat - (config.seat - 1)) % players] for seat in range(players)]


def shots(episode: Episode, bar: Progress, pictures: Path | None) -> Iterator[np.ndarray]:
    """Every moment drawn once; into the folder `pictures` also as step_NN.png."""
    for index in range(len(episode.moments)):
        drawn = frame(episode, index)
        if pictures is not None:
            with replacing(pictures / f"step_{index:02d}.png") as temporary:
                Image.fromarray(drawn).save(temporary, format="png")
        bar.advance()
        yield drawn


def held(drawn: Iterator[np.ndarray], count: int, seconds: float) -> Iterator[np.ndarray]:
    """Frames of a film: each of `count` shots stays for its time, the last one three times as long."""
    hold = max(1, round(seconds * FPS))
    for index, shot in enumerate(drawn):
        for _ in range(3 * hold if index == count - 1 else hold):
            yield shot


def write_episode(episode: Episode, out: Path, config: WatchConfig, *, quiet: bool = True) -> list[Path]:
    """episode.json, and where the encoder is installed episode.mp4; with `pictures`, or without a film, step_NN.png."""
    out.mkdir(parents=True, exist_ok=True)
    written = [out / "episode.json"]
    write_json(written[0], episode.to_dict())
    count, film = len(episode.moments), can_film()
    with Progress("filming", total=count, unit="steps", quiet=quiet) as bar:
        drawn = shots(episode, bar, out if config.pictures or not film else None)
        if film:
            written.append(out / "episode.mp4")
            write_mp4(written[-1], held(drawn, count, config.seconds), FPS)
        else:
            written += [out / f"step_{index:02d}.png" for index, _ in enumerate(drawn)]
    return written


def told(episode: Episode) -> str:
    """The episode in a line per step."""
    from marlab.hunt.game.rules import ACTION_NAMES

    lines = [f"{episode.game}, players {', '.join(episode.players)}"]
    for moment in episode.moments[:-1]:
        doing = [f"{seat + 1} {ACTION_NAMES[a]}" for seat, a in enumerate(moment.action) if a is not None]
        lines.append(f"step {moment.scene.t:2d}: {', '.join(doing)}")
    earned = ", ".join(f"{seat + 1} {value:.3g}" for seat, value in enumerate(episode.moments[-1].earned))
    return "\n".join([*lines, f"earned: {earned}"])


def main(argv: Sequence[str]) -> int:
    """`marlab hunt watch AGENT [--team NS+2NH]`"""
    from marlab.lab.flags import parse

    torch.set_num_threads(1)
    config = parse(WatchConfig, argv, prog="marlab hunt watch", positional=("agent",))
    agent = find_agent(config.agent)
    out = config.out or (agent.path / "media" if agent.path else Path("runs/hunt/watch"))
    episode = watch(config)
    print(told(episode))
    for path in write_episode(episode, out, config, quiet=False):
        if path.suffix != ".png":
            print(f"written: {path}")
    return 0
