"""Speed of the hunt: the batched game beside the scalar rules on one CPU core, and 65,536 games on a GPU.

    python benchmarks/hunt_game.py                     # about two minutes on one core; then the GPU, if there is one
    python benchmarks/hunt_game.py --presets msh_4x4   # one game only

An env-step is one step of one game with all its players (four), restarts included; an agent-step would be four times
as many. "step" is the game's step with restarts, "world" the same as PPO's world with its statistics, "world + view"
also makes the observations and masks of all players, "rules" lets rule-based players choose. The scalar rules are
those of `marlab.hunt.game.scalar`, one game at a time, without statistics. CPU rates are per second of CPU time of
one thread, the median of several rounds taken in turn with the scalar rules. GPU rates
are wall time with one synchronisation at the end.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
import traceback
from collections.abc import Callable

import torch
from machine import commit, describe

from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import game_config
from marlab.hunt.game.scalar import Rules
from marlab.hunt.players.glance import PlainObserver
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import parse_roles
from marlab.hunt.ppo.world import HuntWorld

ROUNDS, ROUND_S = 5, 0.5
CPU_GAMES = (1024, 4096, 16_384)
GPU_GAMES, GPU_STEPS = 65_536, 300
RULES = "NS,NH,RAND,NS"


# --- one CPU core -------------------------------------------------------------------------------------------------


def scalar_stepper(name: str, view: bool) -> Callable[[], int]:
    """A function that plays 35 steps in plain Python, restarts included, and says how many env-steps that was."""
    config = game_config(name)
    rules, glance, rng = Rules(config), PlainObserver(config), random.Random(0)
    starts = [rules.start(rng) for _ in range(20)]  # drawing obstacles is not what is compared: both sides have a pool
    actions = [[rng.randrange(config.actions) for _ in range(config.players)] for _ in range(1000)]
    agents = [str(seat) for seat in range(config.players)]
    seat = {agent: i for i, agent in enumerate(agents)}
    now = [rng.choice(starts)]

    def play() -> int:
        for _ in range(35):
            step = rules.step(now[0], rng.choice(actions))
            if view:
                glance.all(rules, step.after, agents, seat)
            now[0] = rng.choice(starts) if step.over else step.after
        return 35

    return play


def game_stepper(name: str, games: int) -> Callable[[], int]:
    """The same for the batched game: steps, and fresh starts where an episode ended."""
    generator = torch.Generator().manual_seed(0)
    game = make_game(game_config(name), generator, maps=256)
    actions = torch.randint(0, game.actions, (16, games, game.players), generator=generator)
    now = [game.reset(games, generator)]

    def play() -> int:
        for k in range(4):
            after, outcome = game.step(now[0], actions[k])
            ended = outcome.over.nonzero().squeeze(1)
            if ended.numel():
                after = after.renewed(ended, game.reset(ended.numel(), generator))
            now[0] = after
        return 4 * games

    return play


def world_stepper(name: str, games: int, view: bool, rules: bool = False) -> Callable[[], int]:
    """The same for the world that PPO learns in."""
    generator = torch.Generator().manual_seed(0)
    game = make_game(game_config(name), generator, maps=256)
    players = RulePlayers(game, parse_roles(RULES)) if rules else None
    world = HuntWorld(game, games, generator)
    actions = torch.randint(0, game.actions, (16, games, game.players), generator=generator)

    def play() -> int:
        for k in range(4):
            chosen = actions[k]
            if players is not None:
                chosen = players.act(world.view, players.begin(games, generator), generator)[0]
            world.step(chosen)
            if view:
                world.observe()
        return 4 * games

    return play


def cpu_rates(steppers: dict[str, Callable[[], int]]) -> dict[str, float]:
    """Env-steps per CPU second of each, measured in turn so that a busy machine slows all alike."""
    rates: dict[str, list[float]] = {name: [] for name in steppers}
    for _ in range(ROUNDS + 1):
        for name, play in steppers.items():
            done, start = 0, time.process_time()
            while time.process_time() - start < ROUND_S:
                done += play()
            rates[name].append(done / (time.process_time() - start))
    return {name: statistics.median(found[1:]) for name, found in rates.items()}  # the first round warms up


def cpu_part(name: str) -> None:
    steppers: dict[str, Callable[[int], Callable[[], int]]] = {
        "step": lambda games: game_stepper(name, games),
        "world": lambda games: world_stepper(name, games, False),
        "world + view": lambda games: world_stepper(name, games, True),
    }
    for label, make in steppers.items():
        compared = {"scalar": scalar_stepper(name, view="view" in label)}
        rates = cpu_rates(compared | {f"{games} games": make(games) for games in CPU_GAMES})
        base = rates.pop("scalar")
        print(f"{name}, {label}: scalar rules {base:,.0f} env-steps/s")
        for key, rate in rates.items():
            print(f"  {key:<13} {rate:>12,.0f} env-steps/s   {rate / base:6.0f} x")
    if game_config(name).rules == "hunt":
        rate = cpu_rates({"rules": world_stepper(name, 4096, False, rules=True)})["rules"]
        print(f"{name}, world with rule-based players, 4096 games: {rate:,.0f} env-steps/s")


# --- a GPU --------------------------------------------------------------------------------------------------------


def gpu_world(name: str, games: int) -> HuntWorld:
    game = make_game(game_config(name), torch.Generator().manual_seed(0), maps=1024, device="cuda")
    return HuntWorld(game, games, torch.Generator("cuda").manual_seed(1))


def gpu_actions(world: HuntWorld) -> list[torch.Tensor]:
    generator = torch.Generator("cuda").manual_seed(2)
    shape = (world.games, world.game.players)
    return [torch.randint(0, world.game.actions, shape, generator=generator, device="cuda") for _ in range(16)]


def gpu_rate(play: Callable[[int], None]) -> float:
    """Seconds per step, the median of three rounds."""
    found = []
    for round_number in range(4):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for k in range(GPU_STEPS):
            play(k)
        torch.cuda.synchronize()
        if round_number:
            found.append((time.perf_counter() - start) / GPU_STEPS)
    return statistics.median(found)


def gpu_part(name: str) -> None:
    world = gpu_world(name, GPU_GAMES)
    actions = gpu_actions(world)

    def tell(label: str, seconds: float) -> None:
        steps = GPU_GAMES / seconds
        print(f"{name}, {GPU_GAMES} games, {label}: {steps / 1e6:,.1f} M env-steps/s, {seconds * 1e6:,.0f} us a step")

    tell("step", gpu_rate(lambda k: _ignore(world.step(actions[k % 16]))))

    def seen(k: int) -> None:
        world.step(actions[k % 16])
        world.observe()

    tell("step + view", gpu_rate(seen))
    if world.game.config.rules == "hunt":
        players = RulePlayers(world.game, parse_roles(RULES))
        memory = players.begin(GPU_GAMES, world.generator)
        tell("rules", gpu_rate(lambda k: _ignore(world.step(players.act(world.view, memory, world.generator)[0]))))
    print(f"  peak memory {torch.cuda.max_memory_allocated() / 2**20:,.0f} MiB")


def _ignore(value: object) -> None:
    """A statement in a lambda."""


def attempt(part: Callable[..., None], *arguments: object) -> None:
    """One failing part must not lose the others."""
    try:
        part(*arguments)
    except Exception:
        print(f"FAILED {part.__name__}{arguments}:\n{traceback.format_exc()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", default=["msh_4x4", "msh_8x8_b5"], help="games to measure")
    parser.add_argument("--skip-cpu", action="store_true", help="only the GPU part")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe()}, commit {commit()}")
    for name in arguments.presets:
        if not arguments.skip_cpu:
            attempt(cpu_part, name)
        if torch.cuda.is_available():
            attempt(gpu_part, name)


if __name__ == "__main__":
    main()
