"""The work of `marlab hunt watch`: play the episode, film it, write it down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from marlab.hunt.evaluate.agents import Agent, find_agent
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config, game_names
from marlab.hunt.game.rules import ACTION_NAMES
from marlab.hunt.players.seats import team_members
from marlab.hunt.watch.command import DEFAULT_GAME, WatchConfig
from marlab.hunt.watch.frame import frame
from marlab.hunt.watch.record import Episode, record
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.film import can_film, write_mp4
from marlab.lab.progress import Progress
from marlab.lab.runs.files import replacing, write_json
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.stopping import Stopping

FPS = 10


def media_folder(config: WatchConfig) -> Path:
    """Where the film goes: `media` in the agent's run, if it has one and nothing else is asked for."""
    path = find_agent(config.agent).path
    return config.output_dir or (path / "media" if path is not None and path.is_dir() else Path("runs/hunt/watch"))


def watch(config: WatchConfig, stopping: Stopping | None = None, *, quiet: bool = True) -> Episode:
    """Play the episode; where it is stopped, as far as it came."""
    name = config.game or _home(find_agent(config.agent))
    rules = game_config(name)
    config.check_seats(rules.players)
    agents = _seated(config, rules.players)
    rngs = Rngs(config.seed, choose_device(config.device))
    game = make_game(rules, rngs.torch("maps", "cpu"), device=rngs.device)
    starts = [game.reset(1, rngs.torch("starts")) for _ in range(config.after + 1)]
    asked = stopping or Stopping()
    with Progress("playing", unit="steps", quiet=quiet) as bar:

        def over() -> bool:
            bar.advance(1)
            return asked.must_stop()

        return record(game, agents, starts, rngs.torch("players"), name, over)


def _home(agent: Agent) -> str:
    """The name of the game that an agent was trained in."""
    if agent.game is None:
        return DEFAULT_GAME
    named = [name for name in game_names() if game_config(name) == agent.game]
    if not named:
        raise UserError(f"{agent.name} was trained in a game of its own; say with --game which one to show.")
    return named[0]


def _seated(config: WatchConfig, players: int) -> list[Agent]:
    """Everybody in the order of the seats."""
    agent = find_agent(config.agent)
    if not config.team:
        return [agent] * players
    around = [agent, *(find_agent(name) for name in team_members(config.team))]
    return [around[(seat - (config.seat - 1)) % players] for seat in range(players)]


def shots(
    episode: Episode, bar: Progress, pictures: Path | None, over: Callable[[], bool] = lambda: False
) -> Iterator[np.ndarray]:
    """Every moment drawn once, until it is `over`; into the folder `pictures` also as step_NN.png."""
    for index in range(len(episode.moments)):
        if index and over():
            return
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


def write_episode(
    episode: Episode, out: Path, config: WatchConfig, stopping: Stopping | None = None, *, quiet: bool = True
) -> list[Path]:
    """episode.json, and where the encoder is installed episode.mp4; with `pictures`, or without a film, step_NN.png."""
    out.mkdir(parents=True, exist_ok=True)
    written = [out / "episode.json"]
    write_json(written[0], episode.to_dict())
    count, film = len(episode.moments), can_film()
    with Progress("filming", total=count, unit="steps", quiet=quiet) as bar:
        drawn = shots(episode, bar, out if config.pictures or not film else None, (stopping or Stopping()).must_stop)
        if film:
            written.append(out / "episode.mp4")
            write_mp4(written[-1], held(drawn, count, config.seconds), FPS)
        else:
            written += [out / f"step_{index:02d}.png" for index, _ in enumerate(drawn)]
    return written


def as_text(episode: Episode) -> str:
    """The episode in a line per step."""
    lines = [f"{episode.game}, players {', '.join(episode.players)}"]
    for moment in episode.moments[:-1]:
        doing = [f"{seat + 1} {ACTION_NAMES[a]}" for seat, a in enumerate(moment.action) if a is not None]
        lines.append(f"step {moment.scene.t:2d}: {', '.join(doing)}")
    earned = ", ".join(f"{seat + 1} {value:.3g}" for seat, value in enumerate(episode.moments[-1].earned))
    return "\n".join([*lines, f"earned: {earned}"])
