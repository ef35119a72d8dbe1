"""The file of clones: what goes in comes out, and anything else is refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from marlab.lab.errors import UserError
from marlab.market.vector.builtin import Seated, play
from marlab.market.vector.clones import ClonePack, load
from marlab.market.vector.clones.pack import SHIPPED, plain_name
from tests.market.clone_cases import fresh_market, small_pack


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "clones.npz"
    path.write_bytes(small_pack().to_bytes())
    return path


def test_a_pack_survives_its_file(file: Path) -> None:
    pack, again = small_pack(), load(file)
    assert again.names == pack.names and again.about == pack.about
    for name, values in pack.weights.items():
        assert torch.allclose(again.weights[name], values, atol=5e-3)
    assert load(file).weights.keys() == pack.weights.keys()


def _changed(file: Path, options: dict[str, object] | None = None, **arrays: np.ndarray) -> None:
    with np.load(file) as old:
        kept = {name: old[name] for name in old.files}
    kept["options"] = np.array(json.dumps(json.loads(str(kept["options"])) | (options or {})))
    np.savez(file, **(kept | arrays))  # type: ignore[arg-type]


def test_damage_is_told_in_one_sentence(file: Path) -> None:
    whole = file.read_bytes()
    for content in (b"", b"nothing", whole[:200], whole[: len(whole) // 2], whole[:-30]):
        file.write_bytes(content)
        with pytest.raises(UserError, match="damaged or not a file"):
            load(file)
    with pytest.raises(UserError, match="does not exist"):
        load(file.with_name("none.npz"))


@pytest.mark.parametrize(
    ("options", "arrays", "words"),
    [
        ({"inputs": 0}, {}, "other inputs"),
        ({"format": "else"}, {}, "other inputs"),
        ({"names": []}, {}, "whose clones"),
        ({"hidden": 10**9}, {}, "width"),
        ({"hidden": 9}, {}, "another size"),
        ({}, {"weights.inputs": np.zeros((2, 3), np.float16)}, "another size"),
        ({}, {"weights.leave_round": np.full((2, 20, 1), np.nan, np.float16)}, "not finite"),
    ],
)
def test_wrong_contents_are_refused(
    file: Path, options: dict[str, object], arrays: dict[str, np.ndarray], words: str
) -> None:
    _changed(file, options, **arrays)
    with pytest.raises(UserError, match=words):
        load(file)


def test_an_object_in_the_file_is_never_unpickled(file: Path) -> None:
    _changed(file, None, **{"weights.inputs": np.array([{"a": 1}], dtype=object)})
    with pytest.raises(UserError, match="damaged"):
        load(file)


def test_a_stranger_is_refused_by_name() -> None:
    with pytest.raises(UserError, match="no clone of Nobody"):
        small_pack().policy("Nobody", fresh_market(), None)


def test_populations_mix_clones_rules_and_built_in_agents() -> None:
    market, pack = fresh_market(worlds=4), small_pack()
    names = [
        "Expert1",
        'marlab.market.agent.agent:LitaAgentHRL(mode="heuristic")',
        "SyncRandomStdAgent",
        "RandomStdAgent",
    ]
    generator = torch.Generator().manual_seed(0)
    who = torch.arange(market.setup.lines.numel()).view(market.setup.lines.shape) % len(names)
    both = pack.seated(market, names, who, generator)
    play(market, both, days=2)
    assert set(both.policies) == {1, 3, 4} and market.scores()[market.setup.exists].isfinite().all()


def test_one_expert_alone_plays_as_in_its_pack() -> None:
    """The same draws where the pack's other expert has no seat."""
    scores = []
    for alone in (True, False):
        market, pack = fresh_market(), small_pack(experts=1 if alone else 2)
        pack = ClonePack(pack.names, {name: small_pack(2).weights[name][: len(pack.names)] for name in pack.weights})
        generator, ones = torch.Generator().manual_seed(3), torch.ones_like(market.setup.lines)
        policy = pack.policy("Expert0", market, generator)
        play(market, Seated(market, ones, {1: policy}, None), days=2)
        scores.append(market.balance.clone())
    assert torch.equal(scores[0], scores[1])


def test_names_lose_their_modules_and_parameters() -> None:
    assert plain_name('a.b:Mine(mode="x:y")') == "Mine" and plain_name("a.b.Mine") == plain_name("Mine") == "Mine"


@pytest.mark.skipif(not SHIPPED.exists(), reason="none is shipped")
def test_the_shipped_pack_is_small_and_sound() -> None:
    pack = load()
    assert SHIPPED.stat().st_size < 2e6 and "PenguinAgent" in pack.names and isinstance(pack, ClonePack)
