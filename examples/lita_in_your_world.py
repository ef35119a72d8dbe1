"""LitaAgentHRL in a world that you make yourself: any SCML tournament or world takes the class as it is.

python -m examples.lita_in_your_world        (needs `make market`)
"""

from scml.std import GreedyStdAgent, RandomStdAgent, SCML2024StdWorld, SyncRandomStdAgent

from marlab.market import LitaAgentHRL

DAYS = 10


def main() -> dict[str, float]:
    """Play one small world; the score of everybody by name."""
    types = [LitaAgentHRL, GreedyStdAgent, RandomStdAgent, LitaAgentHRL, SyncRandomStdAgent, RandomStdAgent]
    settings = SCML2024StdWorld.generate(
        agent_types=types, agent_processes=[0, 0, 0, 1, 1, 1], n_processes=2, n_steps=DAYS, random_agent_types=False
    )
    world = SCML2024StdWorld(**settings)
    world.run()
    scores = world.scores()
    for name, agent in world.agents.items():
        if name in scores:
            print(f"{agent.short_type_name:<24} level {int(agent.awi.level)}   score {scores[name]:.3f}")
    return {name: float(score) for name, score in scores.items()}


if __name__ == "__main__":
    main()
