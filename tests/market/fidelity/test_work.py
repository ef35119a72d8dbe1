"""`marlab market fidelity` as a run: what is missing is played, the table is drawn, the verdict says what was found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marlab.lab.errors import UserError
from marlab.lab.runs.run import RunOptions
from marlab.market.fidelity import real, vector, work
from marlab.market.fidelity.command import FidelityCommand
from marlab.market.fidelity.plan import POPULATION, FidelityConfig, seats_of
from marlab.market.vector.configs import shipped

pytest.importorskip("scml")
DIFFERENCE = {"rule": 0.0, "guide-L1": -0.3, "economic-L1": -0.1}


def asked(**more: Any) -> FidelityCommand:
    usual = FidelityConfig()
    sellers = tuple(seller for seller in usual.sellers if seller.split("=")[0] in DIFFERENCE)
    return FidelityCommand(sellers=sellers, configs=6, repeats=2, quiet=True, **more)


def scores(config: FidelityConfig) -> dict[str, float]:
    rng = np.random.default_rng(1)
    return {
        seat.world(config.agent(name)).world_id: 1 + DIFFERENCE[name] + 0.01 * rng.normal()
        for seat in seats_of(config)
        for name in config.names
    }


@pytest.fixture
def markets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither market plays: the vector market shows twice the differences."""
    factor = {"rule": 0.0, "guide-L1": -0.5, "economic-L1": -0.15}

    def batch(configs: Any, seats: Any, agents: Any, repeats: int, *more: Any) -> Any:
        return np.array(list(factor.values()))[:, None, None] + np.zeros((len(agents), len(seats), repeats))

    monkeypatch.setattr(vector, "play_batch", batch)
    monkeypatch.setattr(real, "draw_configs", lambda seats: shipped().take(range(len(seats))))


def test_scores_of_another_machine_are_taken_over_and_compared(markets: None, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.json"
    command = asked(real=file)
    file.write_text(json.dumps(scores(command.run_config())))
    run = work.fidelity(command, RunOptions(output_dir=tmp_path / "gate"))
    assert not run.unfinished and run.results["spearman first"] == pytest.approx(1)
    assert "ranks sellers as the simulator does: 4 of 4" in run.verdict[0]
    assert (run.path / "figures" / "fidelity.png").exists() and "guide-L1" in (run.path / "tables.md").read_text()
    stored = json.loads((run.path / "results.json").read_text())
    assert stored["seats"] == {"first": 12, "middle": 12} and stored["repeats"] == 2


def test_what_cannot_be_compared_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    for command, why in (
        (asked(real=tmp_path / "none.json"), "does not exist"),
        (asked(clones=tmp_path / "none.npz"), "does not exist"),
        (FidelityCommand(sellers=("rule=LitaAgentHRL", "a=RandomStdAgent"), quiet=True), "cannot sell"),
        (asked(population=("Nobody", *POPULATION[1:])), "Nobody"),
    ):
        with pytest.raises(UserError, match=why):
            work.fidelity(command, RunOptions(output_dir=tmp_path / "runs"))
    assert not (tmp_path / "runs").exists()
