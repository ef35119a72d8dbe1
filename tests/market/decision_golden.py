"""Every decision of LitaAgentHRL in a few seeded worlds, as text; `python -m tests.market.decision_golden` writes them.

A refactoring of rules, records or plans must leave the file as it is.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from marlab.market.simulator.experts import find_agent
from marlab.market.simulator.record import record_world
from marlab.market.simulator.worlds import WorldSpec
from tests.market import agent_variants

GOLDEN = Path(__file__).parents[1] / "golden" / "market" / "decisions.txt.gz"
WORLDS = {"RuleW": (5, 14), "Thumb": (6, 4), "PureL1": (6, 4), "Habits": (7, 4), "Networks": (8, 4)}
"""Variant -> seed and days. Untrained networks play as pure L1 does; networks round differently on other machines."""
ROUNDED = 0.01
"""Share of the decisions of networks that another machine's rounding may change."""


def played(variant: str) -> list[str]:
    """One line per decision: agent, day, partner, round, what was done, what was offered, and why L1 changed it."""
    seed, days = WORLDS[variant]
    me = f"{agent_variants.__name__}:{variant}.LitaAgentHRL"
    # no SyncRandomStdAgent: it goes through sets of names, whose order is another one in every process
    agents = (me, me, "GreedyStdAgent", me, "RandomStdAgent", me, me, "GreedyStdAgent", me)
    cls: Any = find_agent(me)
    cls.seats.clear()
    levels = (0, 0, 0, 1, 1, 1, 2, 2, 2)
    record_world(WorldSpec("golden", seed, seed, days, levels, agents, (False,) * len(agents)))
    lines = []
    for name, agent in cls.seats.items():
        assert agent.counts["exceptions"] == agent.counts["unsafe"] == 0
        for line in agent.log.lines:
            if line["kind"] == "decision":
                offer = "-" if line["offer"] is None else "{} {} {}".format(*line["offer"])
                what = f"{name} {line['day']} {line['partner']} {line['round']} {line['op']} {offer}"
                lines.append(f"{variant} {what} {line['clip']}{line.get('rule', '')}".rstrip())
    return lines


def text() -> str:
    """All worlds."""
    return "\n".join(line for variant in WORLDS for line in played(variant)) + "\n"


def golden() -> list[str]:
    """The lines of the file."""
    return gzip.decompress(GOLDEN.read_bytes()).decode().splitlines()


if __name__ == "__main__":
    GOLDEN.write_bytes(gzip.compress(text().encode(), mtime=0))
