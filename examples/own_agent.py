"""An agent of your own in a tournament against others, in the same seats of the same markets.

python -m examples.own_agent                 (needs `make market`)

The same from the command line, with a file `my_agents.py` in the current folder:

marlab market play --preset quickstart --agents my_agents:MyAgent
"""

from pathlib import Path
from typing import Any

from negmas import ResponseType
from negmas.sao import SAOResponse
from scml.std import SyncRandomStdAgent

import marlab.market as market
from marlab.lab.runs.run import RunOptions


class MyAgent(SyncRandomStdAgent):
    """Trades like its parent, but takes every offer that it needs whole."""

    def counter_all(self, offers: Any, states: Any) -> Any:
        answers = super().counter_all(offers, states)
        for partner, offer in offers.items():
            buying = partner in self.awi.my_suppliers
            needed = self.awi.needed_supplies if buying else self.awi.needed_sales
            if offer is not None and offer[0] <= needed:
                answers[partner] = SAOResponse(ResponseType.ACCEPT_OFFER, offer)
        return answers


def main(folder: Path = Path("runs/market/own_agent")) -> str:
    """Both in every seat of two small markets; the tables as text."""
    run = market.play(
        agents=("examples.own_agent:MyAgent", "RandomStdAgent"),
        baseline="RandomStdAgent",
        shapes=("2x2",),
        days=(10, 10),
        configs=2,
        options=RunOptions(output_dir=folder),
    )
    return (run.path / "tables.md").read_text()


if __name__ == "__main__":
    print(main())
