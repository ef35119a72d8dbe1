"""World 3, hunt: the Markov stag hunt (and the snowdrift game), its players, and what can be learned about them.

    import marlab.hunt as hunt

    planner = hunt.load("hop_4x4")
    game = hunt.make_game(planner.game)

The names below are imported when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from marlab.lab.door import lazy_names

if TYPE_CHECKING:
    from marlab.hunt.api import load as load
    from marlab.hunt.commands import train as _train
    from marlab.hunt.diagnose.work import diagnose_runs as diagnose
    from marlab.hunt.evaluate.command import main as _evaluate
    from marlab.hunt.game.build import make_game as make_game
    from marlab.hunt.game.config import GameConfig as GameConfig
    from marlab.hunt.players.env import parallel_env as parallel_env
    from marlab.hunt.players.rules import RulePlayers as RulePlayers

    evaluate, train = _evaluate.call, _train.call

__all__ = ["GameConfig", "RulePlayers", "diagnose", "evaluate", "load", "make_game", "parallel_env", "train"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "GameConfig": "marlab.hunt.game.config:GameConfig",
        "RulePlayers": "marlab.hunt.players.rules:RulePlayers",
        "diagnose": "marlab.hunt.diagnose.work:diagnose_runs",
        "evaluate": "marlab.hunt.evaluate.command:main.call",
        "load": "marlab.hunt.api:load",
        "make_game": "marlab.hunt.game.build:make_game",
        "parallel_env": "marlab.hunt.players.env:parallel_env",
        "train": "marlab.hunt.commands:train.call",
    },
)
