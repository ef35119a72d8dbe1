"""How long LitaAgentHRL thinks: CPU milliseconds of a joint decision, rules only and with the networks of the package.

    python benchmarks/market_decisions.py [--days 30]

One world of 12 factories (3 levels x 4), LitaAgentHRL in every second seat, built-in agents in the others. A joint
decision is one call of `first_proposals` or `counter_all`, which answers all running negotiations; `agent.seconds`
holds their CPU times.
"""

from __future__ import annotations

import argparse

import numpy as np
from machine import commit, describe

OTHERS = ("GreedyStdAgent", "RandomStdAgent", "SyncRandomStdAgent")


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=30)
    days = parser.parse_args().days
    from marlab.market.agent.agent import LitaAgentHRL
    from marlab.market.simulator.worlds import WorldSpec, playing

    print(f"{describe()}, {commit()}, {days} days")
    for mode in ("heuristic", "neural"):
        me = f"marlab.market.agent.agent:LitaAgentHRL(mode={mode})"
        agents = tuple(me if place % 2 == 0 else OTHERS[place // 2 % 3] for place in range(12))
        spec = WorldSpec("bench", 11, 11, days, tuple(place // 4 for place in range(12)), agents, (False,) * 12)
        with playing(spec) as world:
            world.run()
            mine = [a.adapted_object for a in world.agents.values() if isinstance(a.adapted_object, LitaAgentHRL)]
        ms = 1000 * np.concatenate([agent.seconds for agent in mine])
        middle, late, most = np.quantile(ms, [0.5, 0.95, 1.0])
        print(
            f"{mode:9s} {len(ms):6,} joint decisions: median {middle:.2f} ms, 95 % {late:.2f} ms, longest {most:.2f} ms"
        )


if __name__ == "__main__":
    main()
