"""Train a shoal of fish, then let the trained policy play in the environment that it was trained for.

python -m examples.train_a_shoal

This training is far too short to be good; the shipped policy shows what a longer one reaches.
"""

from pathlib import Path
from typing import Any

import marlab.fish as fish
from marlab.lab.runs.run import RunOptions

SHORT = {"total_iterations": 2, "curriculum": "25:2", "num_envs": 16, "skip_final_eval": True, "device": "cpu"}


def survivors(env: Any, policy: Any, seed: int) -> float:
    """Share of the fish that are alive when the episode ends."""
    observation, info = env.reset(seed=seed)
    over = False
    while not over:
        observation, _, terminated, truncated, info = env.step(policy(observation))
        over = terminated or truncated
    return float(info["survival_rate"])


def main(folder: Path = Path("runs/fish/train_a_shoal")) -> dict[str, float]:
    """Survival in one episode: after a training of seconds, and of the shipped policy."""
    run = fish.train(preset="quickstart", options=RunOptions(output_dir=folder), quiet=True, **SHORT)
    shipped = fish.load("best")
    scores = {
        "trained for seconds": survivors(run.env(), run.policy(), seed=1),
        "shipped": survivors(shipped.env(), shipped.policy(), seed=1),
    }
    for name, share in scores.items():
        print(f"{name:<20} {share:.0%} of the fish survive")
    print(f"The run is in {run.path}.")
    return scores


if __name__ == "__main__":
    main()
