"""Damaged and crafted weights: archives with flipped bits, packed or doubled entries, states of the wrong shape."""

from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from tests.fuzz import stage
from tests.fuzz.guard import Case
from tests.fuzz.values import damaged, json_value, word


def _fish(path: Path) -> None:
    from marlab.fish.training.networks import load_policy

    net = load_policy(path)
    net.net.logits(torch.zeros(2, net.sea.observation_size))


def _ppo(path: Path) -> None:
    from marlab.hunt.game.build import make_game
    from marlab.hunt.ppo.network import load_agents

    agents = load_agents(path)
    agents.policy(make_game(agents.game, torch.Generator(), maps=1))


def _planner(path: Path) -> None:
    from marlab.hunt.game.build import make_game
    from marlab.hunt.planner.agent import load_hop

    agents = load_hop(path)
    agents.policy(make_game(agents.game, torch.Generator(), maps=1))


def _goals(path: Path) -> None:
    from marlab.hunt.others.models import load_goal_models

    load_goal_models(path)


def _world(path: Path) -> None:
    from marlab.hunt.world_model.model import load_world_model

    load_world_model(path)


def _market(kind: str) -> Callable[[Path], None]:
    def load(path: Path) -> None:
        from marlab.market.networks.weights import load_network

        load_network(path, f"market/{kind}")

    return load


LOADERS: dict[str, Callable[[Path], None]] = {
    "fish": _fish, "policy": _fish, "ppo": _ppo, "planner": _planner, "goals": _goals, "world": _world,
    "l2": _market("l2"), "l3": _market("l3"), "l4": _market("l4"),
}  # fmt: skip


def changed_state(value: Any, rng: random.Random) -> Any:
    """The same state with one value, key, length, shape or number type changed."""
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = rng.choice(list(value))
        fate = rng.random()
        if fate < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if fate < 0.15:
            return {(word(rng) if k == key else k): v for k, v in value.items()}
        return {k: changed_state(v, rng) if k == key else v for k, v in value.items()}
    if isinstance(value, list | tuple) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        new = [changed_state(v, rng) if i == at else v for i, v in enumerate(value)]
        return new[:at] if rng.random() < 0.2 else new
    if isinstance(value, torch.Tensor) and rng.random() < 0.85:
        return _changed_tensor(value, rng)
    return rng.choice((json_value(rng), 10**6, 10**12, -1, [10**6] * 3, [1] * 100_000, torch.zeros(3), ()))


def _changed_tensor(value: torch.Tensor, rng: random.Random) -> torch.Tensor:
    size = max(1, value.numel())
    return rng.choice((
        lambda: value.flatten(), lambda: value.unsqueeze(0), lambda: value[..., :0], lambda: value.double(),
        lambda: value.to(torch.int8), lambda: value.bool(), lambda: value.to(torch.complex64), lambda: value.to("meta"),
        lambda: torch.zeros(1).expand(1 << 40), lambda: torch.full((size,), float("nan")).reshape(value.shape or (1,)),
        lambda: torch.zeros(0), lambda: torch.zeros(()), lambda: value.float().reshape(-1).to_sparse(),
        lambda: torch.nn.Parameter(value.float().clone()), lambda: value.t() if value.dim() == 2 else value[None],
    ))()  # fmt: skip


def saved(state: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def rewritten(data: bytes, rng: random.Random) -> bytes:
    """The archive with its entries packed, doubled, renamed, marked or grown."""
    source = zipfile.ZipFile(io.BytesIO(data))
    target = io.BytesIO()
    kind = rng.randrange(7)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED if kind == 0 else zipfile.ZIP_STORED) as out:
        entries = source.infolist()
        chosen = rng.choice(entries).filename
        for entry in entries:
            name, content = entry.filename, source.read(entry)
            if name == chosen and kind == 1:
                name += "/"
            if name == chosen and kind == 2:
                content = content + b"\x00" * rng.choice((1, 64, 10**6))
            if name == chosen and kind == 3:
                content = content[: rng.randrange(len(content) + 1)]
            if name == chosen and kind == 4:
                name = rng.choice(("../../etc/x", "/abs", "archive/data.pkl", "", "a" * 300))
            if name == chosen and kind == 5:
                out.writestr(zipfile.ZipInfo("archive/bomb"), b"\x00" * 10**6, zipfile.ZIP_DEFLATED)
            if name == chosen and kind == 6:
                continue
            out.writestr(zipfile.ZipInfo(name), content)
    return target.getvalue()


MARKET = ("l2", "l3", "l4")


def case(seed: int, number: int) -> Case:
    """Weights of fish and hunt."""
    return _case("weights", [kind for kind in LOADERS if kind not in MARKET], seed, number)


def market_case(seed: int, number: int) -> Case:
    """Weights of the market's layers."""
    return _case("layers", MARKET, seed, number)


def _case(family: str, kinds: Sequence[str], seed: int, number: int) -> Case:
    rng = random.Random(f"{family} {seed} {number}")
    kind = rng.choice(kinds)
    healthy = stage.weights(kind)
    way = rng.random()
    if way < 0.3:
        data, told = damaged(healthy, rng), "bytes"
    elif way < 0.4:
        data, told = rewritten(healthy, rng), "entries"
    else:
        content = torch.load(io.BytesIO(healthy), weights_only=True)
        told = "state"
        if rng.random() < 0.8:
            content["state"] = changed_state(content["state"], rng)
        else:
            content = changed_state(content, rng)
        data = saved(content)
    loader = LOADERS[kind]
    return Case(family, number, f"{kind}: {told}", lambda: loader(Path("x.pt")), files={"x.pt": data})
