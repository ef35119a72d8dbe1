"""How long one planner takes for one decision in one game on one core: the search in C beside the search of tensors.

    python benchmarks/hunt_decision.py              # shipped planners, their trees and simulations: about a minute

Both searches are timed in turn in the same positions of the same run (CPU time of one thread, median over decisions),
and both draw the same random numbers; "same visits" counts decisions whose visits are equal, action by action.
"""

from __future__ import annotations

import argparse
import time

import torch
from machine import commit, describe

import marlab.hunt as hunt
from marlab.hunt.game.views import View


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=50)
    parser.add_argument("--agents", nargs="+", default=["hop_4x4", "hop_8x8_b5"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe()}, commit {commit()}")
    for name in arguments.agents:
        print(measured(name, arguments.decisions), flush=True)


def measured(name: str, decisions: int) -> str:
    """One line about an agent in seat 1 of games that it plays with copies of itself."""
    trained = hunt.load(name)
    generator = torch.Generator().manual_seed(0)
    game = hunt.make_game(trained.game, generator)
    agent, others = trained.agent(game, seats=[0]), trained.agent(game)
    spent: dict[bool, list[float]] = {True: [], False: []}
    state, memory, same = game.reset(1, generator), agent.begin(1, generator), 0
    while len(spent[True]) < decisions:
        view = View(game, state)
        if bool(state.alive[0, 0]):
            plans, number = [], len(spent[True])
            for natively in (True, False):
                agent.planner.engine = "native" if natively else "tensors"
                draws = torch.Generator().manual_seed(number)
                began = time.process_time()
                agent.act(view, memory, draws)
                spent[natively].append(time.process_time() - began)
                plans.append(agent.explain().plan)
            same += torch.equal(plans[0].visits, plans[1].visits)
        actions, _ = others.act(view, memory, generator)
        state, outcome = game.step(state, actions)
        memory = agent.observe(view, outcome, memory)
        if bool(outcome.over):
            state, memory = game.reset(1, generator), agent.reset(memory, outcome.over, generator)
    fast, slow = (1000 * sorted(spent[natively])[decisions // 2] for natively in (True, False))
    plan = trained.config.plan
    return (
        f"{name}: {plan.trees} trees of {plan.search.simulations} simulations: {fast:.1f} ms in C, {slow:.1f} ms with "
        f"tensors ({slow / fast:.1f} times), same visits in {same} of {decisions} decisions"
    )


if __name__ == "__main__":
    main()
