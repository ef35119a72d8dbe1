"""The market: agents of the SCML Standard league, from recorded expert games to tournaments.

    import marlab.market as market

    run = market.play(agents=("GreedyStdAgent", "RandomStdAgent"), configs=1)  # `run.results` says who won
    agent = market.LitaAgentHRL                                                # the class, for a world of your own

The names below are imported when they are used; what plays needs scml (`pip install marlab[market]`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from marlab.lab.door import lazy_names

if TYPE_CHECKING:
    from marlab.market import record as record
    from marlab.market.agent.agent import LitaAgentHRL as LitaAgentHRL
    from marlab.market.agent.settings import AgentSettings as AgentSettings
    from marlab.market.arena.command import main as _play
    from marlab.market.clones.command import main as _clone
    from marlab.market.collect.command import main as _collect
    from marlab.market.learn.command import main as _train
    from marlab.market.logs.daystate import DayState as DayState
    from marlab.market.samples.command import main as _make_samples
    from marlab.market.samples.dataset import open_dataset as open_dataset

    clone, collect, make_samples, play, train = _clone.call, _collect.call, _make_samples.call, _play.call, _train.call

__all__ = [
    "AgentSettings", "DayState", "LitaAgentHRL", "clone", "collect", "make_samples", "open_dataset", "play",
    "record", "train",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "AgentSettings": "marlab.market.agent.settings:AgentSettings",
        "DayState": "marlab.market.logs.daystate:DayState",
        "LitaAgentHRL": "marlab.market.agent.agent:LitaAgentHRL",
        "clone": "marlab.market.clones.command:main.call",
        "collect": "marlab.market.collect.command:main.call",
        "make_samples": "marlab.market.samples.command:main.call",
        "open_dataset": "marlab.market.samples.dataset:open_dataset",
        "play": "marlab.market.arena.command:main.call",
        "record": "marlab.market.record",
        "train": "marlab.market.learn.command:main.call",
    },
)
