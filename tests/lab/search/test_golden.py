"""The search against trees made by mctx (benchmarks/make_search_golden.py), node by node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from marlab.lab.search.search import SearchConfig, search
from tests.lab.search.table_game import ENGINES, TableGame

FOLDER = Path(__file__).parents[2] / "golden" / "search"
FILES = sorted(FOLDER.glob("*.json"))


def tensor(values: Any) -> Tensor:
    return torch.from_numpy(np.array(values))  # floats stay double


def config_of(case: dict[str, Any], engine: Literal["tensors", "native"]) -> SearchConfig:
    names = ("simulations", "max_depth", "c1", "considered", "gumbel_scale")
    given = {name: case[name] for name in names if name in case}
    return SearchConfig(root=case["rule"], unvisited="lowest", engine=engine, **given)


def test_there_are_golden_trees_for_both_rules() -> None:
    rules = [path.name.split("_")[0] for path in FILES]
    assert rules.count("puct") >= 3 and rules.count("gumbel") >= 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_equals_mctx(path: Path, engine: Literal["tensors", "native"]) -> None:
    golden = json.loads(path.read_text())
    config = config_of(golden["case"], engine)
    assert config.simulations >= 50
    game = TableGame(**{key: tensor(values) for key, values in golden["game"].items()})
    roots = tensor(golden["roots"])
    noise = tensor(golden["noise"]) if "noise" in golden else None
    found = search(game.evaluate(roots), (roots,), game.expand, config, noise=noise)

    wanted = {key: tensor(values) for key, values in golden["tree"].items()}
    tree = found.tree
    assert tree.depth.amax() >= 3
    live = (tree.depth >= 0) & ((tree.discount != 0) | (tree.depth == 0))  # mctx goes on below an end, we do not
    assert torch.equal(tree.visits[live].long(), wanted["visits"][live])
    assert torch.equal(tree.children[..., 0][live], wanted["children"][live])
    torch.testing.assert_close(tree.value[live], wanted["value"][live], rtol=0, atol=1e-9)

    visited = found.visits > 0
    torch.testing.assert_close(found.value, tensor(golden["value"]), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.q[visited], tensor(golden["q"])[visited], rtol=0, atol=1e-9)
    torch.testing.assert_close(found.policy, tensor(golden["policy"]), rtol=0, atol=1e-9)
    if "action" in golden:
        assert torch.equal(found.action, tensor(golden["action"]))
