"""Every command that writes, in a size of seconds: for tests that kill it or take its disk away."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marlab.lab.config import altered
from marlab.lab.runs.checkpoint import CheckpointError, load_checkpoint
from marlab.market.agent.layers import SHIPPED
from marlab.market.guide import add_options
from marlab.market.samples.options import SampleOptions
from tests.fish.cases import SMALL as FISH
from tests.fuzz.stage import hunt_data, market_logs, preset, recorded, runs, samples, weights
from tests.hunt.hop_cases import small_training
from tests.hunt.ppo_cases import small as small_ppo
from tests.test_sweeps import TINY_FISH


@dataclass(frozen=True)
class Writing:
    """A command in a folder of its own, which is the working directory; its run is there under `out`."""

    words: str
    prepare: Callable[[Path], None] = lambda folder: None
    """Puts there what the command needs."""
    out: str = "run"
    """Its --output-dir; empty: the words say where it writes."""
    resume: tuple[str, ...] = ("--resume",)
    """What is added to go on, once there is a run; () for a command that is simply called again."""
    shrink: Callable[[], None] = lambda: None
    """Makes what no flag makes small, in the process that works."""
    codes: tuple[int, ...] = (0,)
    """How it may end: a command may refuse to do again what is done, or find too little in so small a size."""
    share: float = 1.0
    """Of the kills that are tried: not all where a run is long, and its writes are mostly those of other commands."""

    def argv(self, root: Path) -> list[str]:
        """The words now: with --resume where there is a run."""
        words = self.words.split()
        if self.out:
            words += ["--output-dir", self.out]
        return [*words, *(self.resume if self.out and (root / self.out / "run.json").exists() else ())]


def _preset(config: Any) -> Callable[[Path], None]:
    return lambda folder: (folder / "p.toml").write_bytes(preset(config)) and None


def _copy(*make: Callable[[], Path]) -> Callable[[Path], None]:
    def copy(folder: Path) -> None:
        for made in make:
            shutil.copytree(made(), folder, dirs_exist_ok=True)

    return copy


def _l2(folder: Path) -> None:
    shutil.copytree(samples(), folder, dirs_exist_ok=True)
    (folder / "l2.pt").write_bytes(weights("l2"))
    add_options(folder / "l2.pt", SampleOptions())


def _few_cells() -> None:
    from marlab.fish.training import suite

    cells = suite.cells
    suite.cells = lambda cfg: iter({cell.axis: cell for cell in cells(cfg)}.values())  # one of each kind


def _tiny_quickstart() -> None:
    from marlab.quickstart import command
    from tests.quickstart.test_command import SERIAL, tiny

    whole = command.quickstart
    command.quickstart = lambda config, name, engine, limit: whole(tiny(), name, SERIAL, limit)  # type: ignore[misc]


def _still_curve() -> None:
    """A moving curve whose pictures are grey: painting them takes as long as the rest of the training."""
    from marlab.fish.measure import plots

    plots._pixels = lambda figure: np.full((8, 8, 3), len(figure.axes[0].lines), np.uint8)


VECTOR = "--shapes 2x2 --days 5 5 --learners 1 --hidden 8 --opponents RandomStdAgent --worlds 2 --device cpu"
ONLINE = "--generation-days 2 --rollout-days 1 --steer-worlds 2 --steer-days 5 --batch-size 64 --quiet"
SWEPT = " ".join(TINY_FISH).replace("1e-3,3e-3 --seeds 0..3", "1e-3")
CLONES = SHIPPED / "clones.npz"
LEARN = "--device cpu --seed 3 --l2-epochs 2 --l3-epochs 2 --l4-epochs 2 --l3-width 16 --l3-layers 1 --l3-batch-size 64"
POPULATION = " ".join(["SyncRandomStdAgent", "RandomStdAgent"] * 5)
SHOAL = altered(
    FISH, total_iterations=5, curriculum="3:3,4:2", checkpoint_interval=1, multi_eval_interval=2, num_envs=2,
    n_steps=16, n_epochs=1, video_max_steps=3, video_num_fish=2, eval_multi_fish=4, eval_multi_episodes=2,
)  # fmt: skip
WRITING = {
    "quickstart": Writing("quickstart --name tiny", out="", shrink=_tiny_quickstart, share=0.05),
    "fish train": Writing("fish train --preset p.toml", _preset(SHOAL), shrink=_still_curve),
    "fish eval": Writing("fish eval best --episodes 3 --fish 4 --device cpu"),
    "fish selfplay": Writing(
        "fish selfplay --rounds 1 --iterations 2 --num-envs 8 --num-fish 3 --hidden 8 --n-steps 8 --eval-arenas 1 "
        "--device cpu"
    ),
    "fish suite": Writing("fish suite best --arenas 1 --device cpu", shrink=_few_cells),
    "fish school": Writing("fish school shoal --arenas 2 --device cpu"),
    "fish probe": Writing("fish probe best --episodes 2 --fish 4 --device cpu --output-dir probe", out=""),
    "fish watch": Writing("fish watch sidestep --steps 4 --fish 3 --size 64 --film film.gif", out=""),
    "fish starts": Writing("fish starts ne:slow sw:0.5-1.5:24 --count 500", resume=()),
    "hunt check": Writing("hunt check --episodes 8 --layouts 2", resume=(), codes=(1,)),
    "hunt collect": Writing("hunt collect --preset msh_tiny --rows 2000"),
    "hunt pretrain vae": Writing(
        "hunt pretrain vae data --epochs 3 --vae-epochs 2 --belief-games 2 --no-overfit-check", _copy(hunt_data)
    ),
    "hunt pretrain world": Writing("hunt pretrain world data --rows 0 --epochs 3", _copy(hunt_data)),
    "hunt train ppo": Writing("hunt train --preset p.toml", _preset(small_ppo(total_steps=12 * 8 * 5))),
    "hunt train hop": Writing("hunt train --preset p.toml --pipeline.gates warn", _preset(small_training())),
    "hunt diagnose": Writing("hunt diagnose data --no-figures", _copy(hunt_data), resume=()),
    "hunt eval": Writing(
        "hunt eval NS --agents NH --parts self-play scenarios cross-play --scenarios visit_mixture NS+2NH --runs 4 "
        "--steps 35 --window 35 --layouts 4 --episodes 2 --device cpu --engine serial --quiet"
    ),
    "hunt watch": Writing("hunt watch NS --game msh_tiny --device cpu", resume=()),
    "market collect": Writing(
        "market collect --experts SyncRandomStdAgent RandomStdAgent --configs 2 --runs 1 --steps 5 --processes 2 2 "
        "--engine serial --quiet"
    ),
    "market samples": Writing(
        "market samples logs --agent-name all --chunk 1 --engine serial --quiet", _copy(market_logs)
    ),
    "market train": Writing(f"market train samples --phases l2,l3,l4 {LEARN}", _copy(samples)),
    "market online": Writing(f"market online {VECTOR} --generations 2 {ONLINE} --steer-every 2 --past-selves 1"),
    "market online --refits": Writing(
        f"market online {VECTOR} --clones {CLONES} --generations 2 {ONLINE} --refits 1 --real-worlds 2 "
        "--refit-units 2 --experts SyncRandomStdAgent RandomStdAgent --recorded recorded --steer-every 1 "
        "--opponents PenguinAgent RandomStdAgent "
        "--past-selves 0 --engine serial",
        _copy(recorded),
        share=0.3,
    ),
    "market habits": Writing(
        "market habits --steps 2 --batches 1 --markets 2 --draws 4 --days 5 --shapes 2x3 --opponents RandomStdAgent "
        "--device cpu"
    ),
    "market distill": Writing(
        f"market distill rule {VECTOR} --generations 3 --play-days 2 --steps 4 --batch 64 --compare-worlds 2 "
        "--compare-days 5"
    ),
    "market eval-l2": Writing("market eval-l2 l2.pt --data samples --device cpu", _l2, resume=()),
    "market play": Writing(
        "market play --agents RandomStdAgent GreedyStdAgent --configs 2 --days 5 5 --shapes 2x2 --no-trials "
        "--engine serial --quiet"
    ),
    "market new-agent": Writing("market new-agent MyAgent", out="", codes=(0, 2)),
    "market submit": Writing("market submit LitaAgentHRL --days 4", resume=()),
    "market clone": Writing(
        "market clone AS0 PenguinAgent --recorded recorded --units 12 --steps 4 --batch 16 --hidden 8 --repeats 0 "
        "--device cpu --quiet",
        _copy(recorded),
    ),
    "market verify": Writing(
        "market verify --worlds 2 --days 5 5 --policy-worlds 0 --populations Random --engine serial --keep kept",
        out="",
    ),
    "market fidelity": Writing(
        "market fidelity --sellers rule=LitaAgentHRL(mode=heuristic) imitation=LitaAgentHRL(mode=neural) "
        f"--population {POPULATION} RandomStdAgent --configs 2 --seats 2 --days 5 --repeats 2 --engine serial --quiet",
        share=0.3,
    ),
    "market configs": Writing("market configs configs.npz --count 2 --days 5 5", out=""),
    "market export": Writing("market export logs --output-dir exported", _copy(market_logs), out=""),
    "runs --plan": Writing("runs --plan fish/wider --goal why", _copy(runs), out="", codes=(0, 2)),
    "runs --abandon": Writing("runs --abandon fish/b --reason why", _copy(runs), out=""),
    "compare": Writing("compare fish/a fish/b", _copy(runs), resume=()),
    "sweep": Writing(f"sweep {SWEPT} --engine serial --quiet", share=0.3),
    "draw": Writing("draw hunt/p", _copy(runs), out=""),
    "report": Writing("report", _copy(runs), out=""),
    "note": Writing("note --all", _copy(runs), out=""),
}
"""A command of the table in `marlab.cli`, perhaps with what makes it another one."""


def assert_nothing_is_half_written(folder: Path) -> None:
    """Whatever stands under its name is whole: weights can be loaded, tables parsed."""
    for path in folder.rglob("*"):
        if path.name.startswith(".") or not path.is_file():
            continue
        if path.suffix == ".pt":
            try:
                load_checkpoint(path)
            except CheckpointError as error:
                raise AssertionError(f"{path} is damaged: {error}") from None
        elif path.suffix == ".json":
            json.loads(path.read_text())
