"""Balances of small vector-market worlds for every kind of policy; `python -m tests.market.vector_golden` writes them.

A refactoring of policies, rules or the market must leave the file as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.market.agent.batched import Batched
from marlab.market.agent.layers import SHIPPED, load_habits
from marlab.market.agent.settings import AgentSettings
from marlab.market.networks.around import AroundNet
from marlab.market.online.net import AroundRule
from marlab.market.online.player import Player
from marlab.market.rules import around
from marlab.market.vector.builtin import BUILTIN, Seated, by_name, play
from marlab.market.vector.clones import load
from marlab.market.vector.configs import shipped
from marlab.market.vector.market import Market
from marlab.market.vector.rule_w import RuleW
from marlab.market.vector.seats import Policy
from marlab.market.vector.setup import make_setup

GOLDEN = Path(__file__).parents[1] / "golden" / "market" / "vector.json"
DAYS = 5
POLICY = 4
"""Number of the policy that a world is about; 0 to 3 are Random, SyncRandom, Greedy and the rule."""
ROUNDED = ("four layers", "around", "clones")
"""Policies with networks in single precision."""
Make = Callable[[Market, torch.Tensor, torch.Generator], dict[int, Policy]]


def network() -> AroundNet:
    """A network around the rule with some weights that change its choices."""
    draw = np.random.default_rng(3)
    sizes = ((24, around.INPUTS), (around.CHOICES, 24))
    return AroundNet(
        tuple(
            (draw.normal(size=size).astype(np.float32) / np.sqrt(size[1]), np.zeros(size[0], np.float32))
            for size in sizes
        ),
        bonus=0.5,
    )


def _player(market: Market, mine: torch.Tensor, _: torch.Generator) -> dict[int, Policy]:
    rule = RuleW(market, chosen=mine)
    return {-1: rule, POLICY: Player(market, rule, mine, AroundRule.of(network()), None)}


def _batched(**settings: Any) -> Make:
    return lambda market, mine, draw: {POLICY: Batched(market, AgentSettings(**settings), draw, chosen=mine)}


POLICIES: dict[str, Make] = {
    "rule in arrays": lambda market, mine, _: {POLICY: RuleW(market, chosen=mine)},
    "rule in C": lambda market, mine, _: {POLICY: RuleW(market, chosen=mine, quick=True)},
    "habits": lambda market, mine, _: {
        POLICY: RuleW(market, chosen=mine, habits=load_habits(SHIPPED / "habits.json"), quick=True)
    },
    "four layers": _batched(mode="neural"),
    "guide": _batched(mode="heuristic", l1="guide"),
    "around": _player,
    "clones": lambda market, mine, draw: {POLICY: load().policy("PenguinAgent", market, draw)},
}


def balances(name: str) -> list[Any]:
    """[W, L, A] at the end: every second seat is played by the policy."""
    configs = shipped().take([0, 1])
    market = Market(make_setup(configs, torch.float64))
    draw = torch.Generator().manual_seed(7)
    seats = torch.arange(market.setup.lines.numel()).view(market.setup.lines.shape)
    mine = (seats % 2 == 0) & market.setup.exists
    others = (seats // 2) % POLICY
    kind = torch.where(mine, POLICY, others)
    built_in = {i: by_name(agent, draw) for i, agent in enumerate(BUILTIN) if i}
    policies = {**built_in, 3: RuleW(market, chosen=kind == 3), **POLICIES[name](market, mine, draw)}
    play(market, Seated(market, kind, policies, draw), DAYS)
    found: list[Any] = market.balance.cpu().double().numpy().round(6).tolist()
    return found


def text() -> str:
    """All policies."""
    worlds = {name: balances(name) for name in POLICIES}
    return json.dumps(worlds).replace(' "', '\n "').replace("}", "\n}\n")


def golden() -> dict[str, list[Any]]:
    """The balances of the file."""
    found: dict[str, list[Any]] = json.loads(GOLDEN.read_text())
    return found


if __name__ == "__main__":
    GOLDEN.write_text(text())
