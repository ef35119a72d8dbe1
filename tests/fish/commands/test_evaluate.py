"""`marlab fish eval`: an evaluation is a run with its results."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.fish.commands.evaluate import main
from marlab.fish.training.networks import KIND, PATTERN
from marlab.fish.training.train import FishTrainer
from marlab.lab.compare.command import CompareConfig, compare
from marlab.lab.config import altered
from marlab.lab.errors import UserError
from marlab.lab.runs.checkpoint import CheckpointStore
from marlab.lab.runs.records import read_run
from tests.fish.cases import SMALL


def test_an_evaluation_is_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = CheckpointStore(tmp_path, KIND, PATTERN).save(7, FishTrainer(SMALL).state_dict())
    words = "--episodes 2 --fish 4 --no-baselines --no-ceiling --device cpu".split()
    assert main([str(path), *words, "--output-dir", str(tmp_path / "eval")]) == 0
    info = read_run(tmp_path / "eval")
    assert info.status == "finished" and 0 <= info.results["survival"]["value"] <= 1
    assert "2 x 4 fish" in capsys.readouterr().out
    with pytest.raises(UserError, match="Name a checkpoint"):
        main([])


def test_compare_pairs_policies_on_the_same_arenas_and_never_across_seas(tmp_path: Path) -> None:
    words = "--episodes 4 --fish 5 --no-baselines --no-ceiling --device cpu --replays 0".split()
    for name, seed, sea in (("a", 1, "v32"), ("b", 2, "v32"), ("c", 2, "pack")):
        trainer = FishTrainer(altered(SMALL, seed=seed))
        path = CheckpointStore(tmp_path / f"models-{name}", KIND, PATTERN).save(7, trainer.state_dict())
        assert main([str(path), *words, "--sea", sea, "--output-dir", str(tmp_path / name)]) == 0
    one, two = (read_run(tmp_path / name).results["survival"]["value"] for name in "ab")
    pair = compare(CompareConfig(runs=(f"a={tmp_path / 'a'}", f"b={tmp_path / 'b'}"))).row("b").difference
    assert pair is not None and (pair.how, pair.pairs) == ("cases", 4)
    assert pair.value == pytest.approx(two - one, abs=1e-9)
    apart = compare(CompareConfig(runs=(f"a={tmp_path / 'a'}", f"c={tmp_path / 'c'}"))).row("c").difference
    assert apart is not None and apart.how == "single"
