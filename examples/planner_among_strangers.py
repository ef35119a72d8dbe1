"""A shipped planning agent meets players it has never played with: scripted hunters and hare catchers.

python -m examples.planner_among_strangers
"""

import torch

import marlab.hunt as hunt
from marlab.hunt.players.policy import Team
from marlab.hunt.players.rollout import play
from marlab.hunt.players.seats import parse_roles

GAMES = 32
STRANGERS = {  # who sits in seats 2 to 4, and what the best response to them earns
    "three hare catchers": ("NH,NH,NH", 1.0),
    "a stag hunter and two hare catchers": ("NS,NH,NH", 5.0),
}


def main() -> dict[str, float]:
    """The planner's mean reward in its first episode among each kind of strangers."""
    torch.set_num_threads(1)
    trained = hunt.load("hop_4x4")
    rewards = {}
    for name, (roles, possible) in STRANGERS.items():
        generator = torch.Generator().manual_seed(0)
        game = hunt.make_game(trained.game, generator)
        planner = trained.policy(game, seats=[0])
        strangers = hunt.RulePlayers(game, parse_roles(f"NH,{roles}"))  # its first player stays on the bench
        team = Team(game, [planner, strangers], seats=[0, 1, 1, 1])
        rewards[name] = float(play(game, team, GAMES, generator).reward[:, 0].mean())
        print(f"among {name}: {rewards[name]:.2f} of {possible:.2f} possible")
    return rewards


if __name__ == "__main__":
    main()
