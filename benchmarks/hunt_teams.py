"""What planners earn in their first game among teams of rule-based players, as a share of the exact best response.

    python benchmarks/hunt_teams.py hop_4x4 --games 256
    python benchmarks/hunt_teams.py hop_8x8_b5 --games 64 --teams 3NH NS+2NH --solved 16

Planners play their best actions, from fresh starts and (with obstacles) on maps of the script's own; intervals are
95 % over games. The best response is solved for the first --solved starts, where the game allows it, and the share is
over these. Needs torch and numpy only; --json keeps what was found.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch

import marlab.hunt as hunt
from marlab.hunt.exact.best_response import reference_values, solvable
from marlab.hunt.players.characters import Character, parse_character
from marlab.hunt.players.policy import Team
from marlab.hunt.players.rollout import play
from marlab.hunt.players.strangers import seat_characters
from marlab.lab.stats import mean_interval

TEAMS = ("3NH", "NS+2NH", "2NS+NH", "3NS", "3RAND")
SEED = 20_261_116
"""Of starts, maps and players; no training uses it."""


def parse_team(text: str) -> list[Character]:
    """The players of a team such as NS+2NH."""
    found: list[Character] = []
    for word in text.split("+"):
        count = int(word[0]) if word[0].isdigit() else 1
        found += [parse_character(word.lstrip("0123456789"))] * count
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("agents", help="a shipped planner, a run or a file")
    parser.add_argument("--teams", nargs="*", default=list(TEAMS))
    parser.add_argument("--games", type=int, default=256)
    parser.add_argument("--solved", type=int, default=128, help="starts whose best response is solved; 0: none")
    parser.add_argument("--seed", type=int, default=None, help="which of the file's planners; the first by default")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seconds", type=float, default=3600.0, help="no team is begun after this time")
    parser.add_argument("--json", type=Path, default=None)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    begin, table = time.monotonic(), {}
    trained = hunt.load(arguments.agents)
    print(f"{arguments.agents}: first game of {arguments.games}, reward and 95 % interval")
    for team in arguments.teams:
        if time.monotonic() - begin > arguments.seconds:
            print(f"{team}: no time left")
            continue
        others = parse_team(team)
        game = hunt.make_game(trained.game, torch.Generator().manual_seed(SEED), device=arguments.device)
        chance = torch.Generator(arguments.device).manual_seed(SEED)
        starts = game.reset(arguments.games, chance)
        planner = trained.agent(game, arguments.seed, seats=[0])
        players = Team(game, [planner, seat_characters(game, [others[0], *others])], [0] + [1] * len(others))
        earned = play(game, players, arguments.games, chance, start=starts).reward[:, 0].double().tolist()
        row = {"reward": [float(x) for x in mean_interval(earned)]}
        text = "{:.3f} [{:.3f}, {:.3f}]".format(*row["reward"])
        if arguments.solved and solvable([others[0], *others], trained.game):
            few = starts.select(slice(0, arguments.solved))
            plain = hunt.make_game(trained.game, torch.Generator().manual_seed(SEED))  # solved on the CPU
            best = reference_values(plain, few.to("cpu"), [others[0], *others]).tolist()
            row["best"] = [float(x) for x in mean_interval(best)]
            row["share"] = [sum(earned[: len(best)]) / sum(best)]
            text += ", best response {:.3f} [{:.3f}, {:.3f}], share {:.3f}".format(*row["best"], row["share"][0])
        print(f"{team}: {text}", flush=True)
        table[team] = row
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({"agents": arguments.agents, "games": arguments.games, "teams": table}))


if __name__ == "__main__":
    main()
