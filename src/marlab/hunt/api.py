"""What `import marlab.hunt` offers beside its commands: trained agents by name.

planner = hunt.load("hop_4x4")                # shipped with the package; also a run directory, its name, or a file
game = hunt.make_game(planner.game)
player = planner.policy(game, seats=[0])      # sits in seat 1, keeps beliefs about the others, explains itself
"""

from __future__ import annotations

from pathlib import Path

from marlab.hunt.evaluate.agents import find_trained
from marlab.hunt.planner.agent import HopAgents, load_hop
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.network import Agents, load_agents
from marlab.lab.runs.run import Run


def load(name: str | Path | Run) -> HopAgents | Agents:
    """Planning or PPO agents by a shipped name, a run (its directory, name or object), or a file.

    Both have `game` (the config they were trained in), `seeds`, and `policy(game, seed)`.
    """
    path, kind = find_trained(str(name.path if isinstance(name, Run) else name))
    return load_agents(path) if kind == PPOTrainConfig.KIND else load_hop(path)
