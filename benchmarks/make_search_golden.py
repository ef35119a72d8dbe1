"""Reference trees for the search, made with mctx on small deterministic games and committed as JSON.

    python -m venv golden && golden/bin/pip install jax mctx
    golden/bin/python benchmarks/make_search_golden.py tests/golden/search

The tests compare the search with these files node by node and need neither JAX nor mctx. A game is a table: from every
state an action leads to a state with a reward and a discount; priors, values and legal actions are given per state.
Numbers are rounded before use, so that both sides read the same ones; mctx runs in double precision and without its
random tie-breaking, so that the first of equal actions is taken.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import mctx
import numpy as np

jax.config.update("jax_enable_x64", True)

IMPOSSIBLE = -1e9
"""A prior logit of illegal actions below the root, where mctx has no mask."""

CASES: dict[str, dict[str, Any]] = {
    "puct_plain": {"rule": "puct", "simulations": 64, "c1": 1.25},
    "puct_ties": {"rule": "puct", "simulations": 50, "c1": 5.0, "even_priors": True},
    "puct_illegal": {"rule": "puct", "simulations": 64, "c1": 2.0, "legal_share": 0.6},
    "puct_depth_3": {"rule": "puct", "simulations": 96, "c1": 0.5, "max_depth": 3, "states": 200},
    "puct_deep": {"rule": "puct", "simulations": 200, "c1": 0.3, "ends": 0.02},
    "gumbel_plain": {"rule": "gumbel", "simulations": 64, "considered": 16},
    "gumbel_no_chance": {"rule": "gumbel", "simulations": 50, "considered": 3, "gumbel_scale": 0.0},
    "gumbel_illegal": {"rule": "gumbel", "simulations": 64, "considered": 4, "legal_share": 0.6},
    "gumbel_ties": {"rule": "gumbel", "simulations": 96, "considered": 16, "even_priors": True, "actions": 7},
    "gumbel_depth_3": {"rule": "gumbel", "simulations": 80, "considered": 5, "max_depth": 3},
}


def draw_game(
    seed: int, states: int = 60, actions: int = 5, ends: float = 0.1, legal_share: float = 1.0, even: bool = False
) -> dict[str, np.ndarray]:
    """A random game; rewards are rare, a step ends the game with probability `ends`."""
    rng = np.random.default_rng(seed)
    legal = rng.random((states, actions)) < legal_share
    legal[np.arange(states), rng.integers(actions, size=states)] = True
    rewards = np.where(rng.random((states, actions)) < 0.3, rng.normal(size=(states, actions)), 0.0)
    return {
        "next": rng.integers(states, size=(states, actions)),
        "reward": rewards.round(4),
        "discount": np.where(rng.random((states, actions)) < ends, 0.0, 0.95),
        "logits": np.zeros((states, actions)) if even else rng.normal(size=(states, actions)).round(4),
        "value": rng.normal(size=states).round(4),
        "legal": legal,
    }


def run_mctx(game: dict[str, np.ndarray], roots: np.ndarray, case: dict[str, Any], seed: int) -> mctx.PolicyOutput:
    tables = {key: jnp.asarray(table) for key, table in game.items()}
    logits = jnp.where(tables["legal"], tables["logits"], IMPOSSIBLE)

    def step(params: Any, key: Any, action: Any, state: Any) -> tuple[mctx.RecurrentFnOutput, Any]:
        after = tables["next"][state, action]
        out = mctx.RecurrentFnOutput(
            reward=tables["reward"][state, action],
            discount=tables["discount"][state, action],
            prior_logits=logits[after],
            value=tables["value"][after],
        )
        return out, after

    start = jnp.asarray(roots)
    root = mctx.RootFnOutput(prior_logits=tables["logits"][start], value=tables["value"][start], embedding=start)
    common: dict[str, Any] = {
        "params": (),
        "rng_key": jax.random.PRNGKey(seed),
        "root": root,
        "recurrent_fn": step,
        "num_simulations": case["simulations"],
        "invalid_actions": ~tables["legal"][start],
        "max_depth": case.get("max_depth"),
    }
    if case["rule"] == "gumbel":
        return mctx.gumbel_muzero_policy(
            **common, max_num_considered_actions=case["considered"], gumbel_scale=case.get("gumbel_scale", 1.0)
        )
    with mock.patch("jax.random.uniform", lambda key, shape: jnp.zeros(shape)):
        return mctx.muzero_policy(**common, dirichlet_fraction=0.0, pb_c_init=case["c1"])


def golden(name: str, case: dict[str, Any], seed: int) -> dict[str, Any]:
    game = draw_game(
        seed,
        states=case.get("states", 60),
        actions=case.get("actions", 5),
        ends=case.get("ends", 0.1),
        legal_share=case.get("legal_share", 1.0),
        even=case.get("even_priors", False),
    )
    roots = np.arange(4)
    out = run_mctx(game, roots, case, seed)
    tree = out.search_tree
    found: dict[str, Any] = {
        "name": name,
        "made_with": f"mctx {version('mctx')}, jax {jax.__version__}",
        "case": case,
        "game": {key: table.tolist() for key, table in game.items()},
        "roots": roots.tolist(),
        "tree": {
            "children": np.asarray(tree.children_index).tolist(),
            "visits": np.asarray(tree.children_visits).tolist(),
            "value": np.asarray(tree.node_values).round(12).tolist(),
        },
        "policy": np.asarray(out.action_weights).round(12).tolist(),
        "q": np.asarray(tree.summary().qvalues).round(12).tolist(),
        "value": np.asarray(tree.summary().value).round(12).tolist(),
    }
    if case["rule"] == "gumbel":
        found["noise"] = np.asarray(tree.extra_data.root_gumbel).tolist()
        found["action"] = np.asarray(out.action).tolist()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the JSON files go")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (name, case) in enumerate(CASES.items()):
        text = json.dumps(golden(name, case, seed), separators=(",", ":"))
        (folder / f"{name}.json").write_text(text + "\n")
        print(f"{name}: {len(text) / 1024:.0f} kB")


if __name__ == "__main__":
    main()
