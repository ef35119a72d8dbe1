"""What `marlab market submit` and `marlab market new-agent` take."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from marlab.lab.checks import at_least


@dataclass(frozen=True)
class SubmitConfig:
    """Make a folder and a zip that play where only scml is installed, and try them there."""

    agent: str
    """LitaAgentHRL, LitaAgentHRL(weights=RUN), my_agent:Mine(x=1): any agent that `marlab market play` knows."""
    output_dir: Path = Path("submissions")
    """Folder that gets one folder per submission, named after the class."""
    days: int = 10
    """Days of the world in which the submission is held against the agent here."""
    seed: int = 1
    """Seed of that world."""

    def __post_init__(self) -> None:
        at_least(self, 4, "days")
        at_least(self, 0, "seed")


@dataclass(frozen=True)
class NewAgentConfig:
    """Write a small agent that works, and a test of it."""

    name: str
    """Name of the class, such as MyAgent; the files are my_agent.py and test_my_agent.py."""
    folder: Path = Path()
    """Where the files go."""
