"""A killed evaluation goes on where it was, and never takes one measurement for another."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from marlab.hunt.evaluate import command as module
from marlab.hunt.evaluate.agents import find_agent, weights_digest
from marlab.hunt.evaluate.command import EvalConfig, evaluate
from marlab.hunt.evaluate.kept import FILE, Kept
from tests.hunt.evaluate_cases import hop_run, ppo_run


def small(*agents: str, **changes: object) -> EvalConfig:
    told = {"scenarios": ("3NH", "visit_random"), "runs": 4, "steps": 70, "window": 40, "layouts": 2, "episodes": 4}
    return EvalConfig(agents=agents, **{**told, "device": "cpu", **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("kept")
    return f"hop={hop_run(folder / 'hop')}", f"ppo={ppo_run(folder / 'ppo', '0')}"


def test_a_second_evaluation_plays_nothing_and_tells_the_same(
    tmp_path: Path, runs: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = small(*runs, parts=("self-play", "scenarios", "cross-play", "beliefs"))
    first = evaluate(config, kept=Kept(tmp_path / FILE))

    def no_more(*arguments: object, **more: object) -> None:
        raise AssertionError("something was measured again")

    for name in ("play_stream", "play", "start_values"):
        monkeypatch.setattr(module, name, no_more)
    monkeypatch.setattr("marlab.hunt.evaluate.beliefs.measure_beliefs", no_more)
    again = Kept(tmp_path / FILE)
    assert evaluate(config, kept=again).to_dict() == first.to_dict()
    assert again.found == len(again)
    before = (tmp_path / FILE).read_text()
    with pytest.raises(AssertionError, match="again"):
        evaluate(config, kept=Kept(tmp_path / FILE, anew=True))
    assert (tmp_path / FILE).read_text() == before  # nothing new was measured, so nothing was thrown away


def test_a_line_that_was_cut_off_is_measured_again(tmp_path: Path) -> None:
    config = small("NS", "NH", parts=("scenarios",))
    first = evaluate(config, kept=Kept(tmp_path / FILE))
    text = (tmp_path / FILE).read_text()
    whole = text.replace('"per_run"', '"somebody_else"', 1)  # a line that is JSON, but no score of ours
    (tmp_path / FILE).write_text(whole[: len(whole) * 2 // 3])
    kept = Kept(tmp_path / FILE)
    some = len(kept)
    assert 0 < some < text.count("\n")
    second = evaluate(config, kept=kept)
    # The last line of a key counts; the rest of the broken line harms nobody.
    assert len(kept) == text.count("\n") == len(Kept(tmp_path / FILE))
    names = {line.scenario.name for line in second.blocks[0].lines}
    assert names == {line.scenario.name for line in first.blocks[0].lines}


def test_anew_begins_the_file_again(tmp_path: Path) -> None:
    Kept(tmp_path / FILE).put(1, "old")
    kept = Kept(tmp_path / FILE, anew=True)
    assert kept.get("old") is None and len(Kept(tmp_path / FILE)) == 1
    kept.put(2, "new")
    kept.put(3, "newer")
    again = Kept(tmp_path / FILE)
    assert (again.get("old"), again.get("new"), again.get("newer"), len(again)) == (None, 2, 3, 2)


def test_files_of_evaluations_side_by_side_can_be_joined(tmp_path: Path, runs: tuple[str, str]) -> None:
    parts = {"parts": ("scenarios",)}
    for name, agents in (("a", runs[:1]), ("b", runs[1:])):
        evaluate(small(*agents, **parts), kept=Kept(tmp_path / name))
    (tmp_path / FILE).write_text((tmp_path / "a").read_text() + (tmp_path / "b").read_text())
    kept = Kept(tmp_path / FILE)
    before = len(kept)
    card = evaluate(small(*runs, **parts), kept=kept)
    assert len(kept) == before
    assert set(card.blocks[0].lines[0].scores) == {"hop", "ppo"}


def test_another_agent_setting_or_protocol_is_another_measurement(tmp_path: Path, runs: tuple[str, str]) -> None:
    hop = runs[0]
    identities = {find_agent(text).identity for text in (hop, f"{hop}?trees=1", f"{hop}?greedy=no", *runs[1:], "NS")}
    assert len(identities) == 5
    assert find_agent(hop).identity == find_agent(hop.replace("hop=", "other=")).identity  # a name changes nothing
    weights = [torch.zeros(2, 3), torch.ones(4)]
    assert weights_digest(weights) != weights_digest([torch.zeros(2, 3), torch.full((4,), 1.001)])
    kept = Kept(tmp_path / FILE)
    evaluate(small("NS", parts=("scenarios",)), kept=kept)
    size = len(kept)
    for changes in ({"steps": 80}, {"seed": 3}, {"runs": 8}):
        evaluate(small("NS", parts=("scenarios",), **changes), kept=kept)
        assert len(kept) > size
        size = len(kept)
