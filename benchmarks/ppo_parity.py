"""Does marlab's PPO learn as well as others? Equal budgets, five seeds, the same settings on both sides.

    python benchmarks/ppo_parity.py --game cartpole     # against stable-baselines3
    python benchmarks/ppo_parity.py --game doors        # masked actions, against sb3-contrib's MaskablePPO

The score of a run is the mean return over the last fifth of the budget and, beside it, the return of the final
arg-max policy over 100 new episodes. Shown: mean over seeds, and a 95 % bootstrap interval of the difference.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from machine import commit, describe
from toy_worlds import CartPole, Doors, gym_doors

from marlab.lab.ppo.choices import apply_mask, best
from marlab.lab.ppo.config import PPOConfig
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.ppo import PPO, View
from marlab.lab.runs.rng import Rngs

ENVS, STEPS, EPOCHS, BATCH, LR, EVALUATION = 8, 128, 4, 256, 3e-4, 100


class Score(NamedTuple):
    training: float
    final: float


def ours(make: Callable[[int, torch.Generator], Any], inputs: int, choices: int, budget: int, seed: int) -> Score:
    rngs = Rngs(seed)
    net = ActorCritic(inputs, (choices,), (64, 64), generator=rngs.torch("init"))
    ppo = PPO(net, PPOConfig(n_steps=STEPS, n_epochs=EPOCHS, batch_size=BATCH, learning_rate=LR), rngs.torch("policy"))
    world = make(ENVS, rngs.torch("world"))
    used, late = 0, False
    while used < budget:
        if used >= budget * 4 // 5 and not late:
            world.finished.clear()
            late = True
        # Our worlds spend a step on each reset; only steps that were really played count against the budget.
        used += int(ppo.update(ppo.collect(world), LR, 0.0)["ppo/samples"])
    trained = torch.cat(world.finished).mean().item()

    test = make(EVALUATION, rngs.torch("test"))
    returns, open_ = torch.zeros(EVALUATION), torch.ones(EVALUATION, dtype=torch.bool)
    with torch.no_grad():
        while bool(open_.any()):
            view: View = test.observe()
            result = test.step(best(apply_mask(net.logits(view.obs), view.mask), (choices,)))
            returns += result.reward[:, 0] * open_
            open_ &= ~(result.terminated | result.truncated)[:, 0]
    return Score(trained, returns.mean().item())


def theirs(algorithm: Any, env: Any, budget: int, seed: int, masked: bool) -> Score:
    from stable_baselines3.common.env_util import make_vec_env

    venv = make_vec_env(env, n_envs=ENVS, seed=seed)
    settings = {"n_steps": STEPS, "n_epochs": EPOCHS, "batch_size": BATCH, "learning_rate": LR, "device": "cpu"}
    model = algorithm("MlpPolicy", venv, seed=seed, stats_window_size=10**6, **settings)
    model.learn(budget * 4 // 5)
    model.ep_info_buffer.clear()
    model.learn(budget - budget * 4 // 5, reset_num_timesteps=False)
    trained = float(np.mean([e["r"] for e in model.ep_info_buffer]))
    if masked:
        from sb3_contrib.common.maskable.evaluation import evaluate_policy
    else:
        from stable_baselines3.common.evaluation import evaluate_policy
    final, _ = evaluate_policy(model, make_vec_env(env, n_envs=4, seed=seed + 10_000), EVALUATION, deterministic=True)
    return Score(trained, float(final))


def interval(ours_: list[float], theirs_: list[float]) -> tuple[float, float, float]:
    """Difference of means and its 95 % bootstrap interval over seeds."""
    rng = np.random.default_rng(0)
    a, b = np.array(ours_), np.array(theirs_)
    draws = rng.choice(a, (20_000, len(a))).mean(1) - rng.choice(b, (20_000, len(b))).mean(1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return float(a.mean() - b.mean()), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", choices=["cartpole", "doors"], default="cartpole")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget", type=int, default=None, help="environment steps per seed")
    parser.add_argument("--out", type=Path, default=None, help="write the scores as JSON")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.game == "cartpole":
        from stable_baselines3 import PPO as REFERENCE

        name, env, make, inputs, choices, budget = "stable-baselines3", "CartPole-v1", CartPole, 4, 2, 102_400
    else:
        from sb3_contrib import MaskablePPO as REFERENCE

        name, env, make, inputs, choices, budget = "MaskablePPO", gym_doors, Doors, 17, 8, 40_960
    budget = args.budget or budget
    print(f"{describe()}, commit {commit()}")
    print(
        f"{args.game}: {budget:,} steps, {ENVS} environments x {STEPS}, {EPOCHS} epochs of {BATCH}, lr {LR}, 64-64 tanh"
    )
    scores: dict[str, list[Score]] = {"marlab": [], name: []}
    for seed in range(args.seeds):
        scores["marlab"].append(ours(make, inputs, choices, budget, seed))
        scores[name].append(theirs(REFERENCE, env, budget, seed, args.game == "doors"))
        print(f"seed {seed}: marlab {scores['marlab'][-1]}, {name} {scores[name][-1]}", flush=True)
    for kind in Score._fields:
        a, b = ([getattr(s, kind) for s in scores[k]] for k in ("marlab", name))
        gap, low, high = interval(a, b)
        print(
            f"{kind}: marlab {np.mean(a):.2f}, {name} {np.mean(b):.2f}, difference {gap:+.2f} [{low:+.2f}, {high:+.2f}]"
        )
    if args.out:
        args.out.write_text(json.dumps({k: [s._asdict() for s in v] for k, v in scores.items()}, indent=2))


if __name__ == "__main__":
    main()
