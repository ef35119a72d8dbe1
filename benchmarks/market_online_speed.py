"""How many decisions a second the ground of online learning makes: all seats, and the learner's own choices.

    python benchmarks/market_online_speed.py --worlds 256 --days 3                       # one core
    python benchmarks/market_online_speed.py --device cuda --worlds 2048 8192 32768 --seconds 15

Worlds of 3 x 4 factories, a learner in three selling seats, clones of entrants, built-in agents and the rule in the
others. A decision is one answer of one side in one negotiation. The same days count for play alone and for play with
learning (`mappo`, two passes). CPU seconds of one core on a processor, seconds on a GPU.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from machine import commit, describe

from marlab.market.online.ground_vector import Ground
from marlab.market.online.settings import OnlineConfig
from marlab.market.online.trainer import OnlineTrainer
from marlab.market.vector.clones import load

SHIPPED = Path(__file__).parents[1] / "src" / "marlab" / "market" / "shipped"


class Speed(NamedTuple):
    """What a second brings."""

    days: float  # of worlds
    decisions: float  # of all seats
    choices: float  # of the learner


class Counted:
    """A market's seats that count what is asked of them."""

    def __init__(self, seated: Any) -> None:
        self.seated, self.total = seated, torch.zeros((), dtype=torch.long)

    def __call__(self, market: Any) -> Any:
        self.total = self.total.to(market.device) + market.threads.running.sum()
        return self.seated(market)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.seated, name)


def trainer_of(worlds: int, device: torch.device) -> OnlineTrainer:
    """The learner at the rule."""
    pack = load(SHIPPED / "clones.npz")
    config = OnlineConfig(
        worlds=worlds, rollout_days=1, bonus=2.0, epochs=2, batch_size=16384, past_selves=0,
        clones=SHIPPED / "clones.npz", opponents=("rule", "RandomStdAgent", "SyncRandomStdAgent", *pack.names),
        device=str(device),
    )  # fmt: skip
    return OnlineTrainer(config, device)


def measured(worlds: int, days: int, device: torch.device, seconds: float) -> tuple[Speed, Speed]:
    """Play alone, and play with learning."""
    trainer = trainer_of(worlds, device)
    ground = Ground(trainer.config, trainer.net, trainer.pool, 0, device)
    counted = ground.seated = Counted(ground.seated)
    others, before = ground.others(), ground.play(1)  # everything is loaded and allocated

    def now() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()

    began, playing, choices, done = now(), 0.0, 0, 0
    counted.total *= 0
    while done < days and now() - began < seconds:
        morning = now()
        after = ground.play(1)
        playing += now() - morning
        choices, done = choices + len(after[0].seat), done + 1
        trainer.ppo.learn(trainer.rows(before, after, others)[0], 1e-4, 0.0)
        before = after
    total, all_of_it = int(counted.total), now() - began
    play, both = (Speed(worlds * done / t, total / t, choices / t) for t in (playing, all_of_it))
    return play, both


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, nargs="+", default=[256])
    parser.add_argument("--days", type=int, default=5, help="days that are measured, at most")
    parser.add_argument("--seconds", type=float, default=30.0, help="no day is begun after this")
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe()}, {commit()}")
    print("| worlds | | world-days/s | decisions/s, all seats | choices/s of the learner |\n|---|---|---|---|---|")
    for worlds in asked.worlds:
        found = measured(worlds, asked.days, torch.device(asked.device), asked.seconds)
        for name, speed in zip(("play", "play and learn"), found):
            cells = " | ".join(f"{value:,.0f}" for value in speed)
            print(f"| {worlds:,} | {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
