"""`marlab hunt watch AGENT`: an episode as a film and as data for a replay.

The film shows the board and, for every player, its beliefs about the others, the moves it expects of them, and its
own choice with the search behind it. Players who do not plan are shown as an ideal observer understands them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from marlab.hunt.game.config import game_config, game_names
from marlab.hunt.players.seats import team_members
from marlab.lab.errors import UserError
from marlab.lab.flags import parse
from marlab.lab.progress import stage
from marlab.lab.runs.stopping import Stopping, check_time_limit

DEFAULT_GAME = "msh_4x4"
"""Where rules are watched."""
FILM_SHARE = 0.4
"""Of a time limit: kept back for the film."""


@dataclass(frozen=True)
class WatchConfig:
    """Whom to watch."""

    agent: str = ""
    """A rule such as NS, a run directory of trained agents, or shipped ones (hop_4x4, hop_8x8_b5, hop_far)."""
    team: str = ""
    """The others, such as NS+2NH; without them all seats are played by the agent."""
    seat: int = 1
    """Where the agent sits, from 1; the team follows around the table."""
    game: str | None = None
    """The game, by the name of its preset; none: the one that the agent was trained in, msh_4x4 for rules."""
    after: int = 0
    """Episodes that these players have already played together before the one that is shown."""
    seed: int = 0
    """Seed of the starts and of everybody's randomness."""
    seconds: float = 1.0
    """How long a step is shown."""
    pictures: bool = False
    """Also write every step as a PNG."""
    output_dir: Path | None = None
    """Folder for the film and the data; by default `media` in the agent's run, or runs/hunt/watch."""
    time_limit: float | None = None
    """End within this many minutes; the film then shows what was played until then."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        check_time_limit(self.time_limit)
        if not self.agent:
            raise UserError("Name an agent: marlab hunt watch AGENT, a rule such as NS or a run directory.")
        hunts = [name for name in game_names() if game_config(name).rules == "hunt"]
        if self.game is not None and self.game not in hunts:
            raise UserError(f"'{self.game}' is not a stag hunt, expected one of {', '.join(hunts)}.")
        if self.game is not None:
            self.check_seats(game_config(self.game).players)
        if self.after < 0:
            raise UserError(f"after is {self.after}, expected 0 or more episodes.")
        if not 0.1 <= self.seconds <= 60:
            raise UserError(f"seconds is {self.seconds:g}, expected 0.1 to 60.")

    def check_seats(self, players: int) -> None:
        """Refuse a seat or a team that a game of so many players does not have."""
        if not 1 <= self.seat <= players:
            raise UserError(f"seat is {self.seat}, expected a number from 1 to {players}.")
        if self.team and len(team_members(self.team)) != players - 1:
            raise UserError(
                f"The team '{self.team}' has {len(team_members(self.team))} members, expected {players - 1}."
            )


def main(argv: Sequence[str]) -> int:
    """`marlab hunt watch AGENT [--team NS+2NH]`"""
    config = parse(WatchConfig, argv, prog="marlab hunt watch", positional=("agent",))
    with stage("starting"):  # torch takes its time
        import torch

        from marlab.hunt.watch.film import as_text, media_folder, watch, write_episode

    torch.set_num_threads(1)  # one small game: more threads only wait for each other
    with Stopping(config.time_limit) as stopping:
        stopping.budget.expect("film", FILM_SHARE * stopping.budget.limit_s if stopping.budget.limited else 0.0)
        episode = watch(config, stopping, quiet=False)
        print(as_text(episode))
        with stopping.budget.part("film"):
            written = write_episode(episode, media_folder(config), config, stopping, quiet=False)
    for path in written:
        if path.suffix != ".png":
            print(f"written: {path}")
    print("`marlab report` shows it step by step, with beliefs, expected moves and searches.")
    return stopping.exit_code
