"""Between generations: the learner plays among real experts, learns from it, and the clones are fitted again.

    runs/market/NAME/recorded/WORLD_ID.parquet   worlds of the simulator in which the learner sat, in full
    runs/market/NAME/experience/WORLD_ID...      what the learner lived through in them
    runs/market/NAME/clones_1/                   the run in which the clones were fitted for the first time, ...

Everything that is finished is kept: a training that was stopped plays and fits only what is missing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.lab.runs.records import read_run
from marlab.lab.runs.run import RunOptions
from marlab.lab.runs.trainer import Halfway
from marlab.market.networks import around as files
from marlab.market.online import ground_real
from marlab.market.online.ground_real import Seat
from marlab.market.online.net import AroundRule
from marlab.market.online.settings import OnlineConfig
from marlab.market.vector.replay import recorded_files


class Refits:
    """Real worlds and fits of one training."""

    def __init__(
        self, config: OnlineConfig, folder: Path, engine: EngineConfig, *, stop: Callable[[], bool],
        log: Callable[[str], None], quiet: bool = False,
    ) -> None:  # fmt: skip
        self.config, self.folder, self.engine = config, folder, engine
        self._stop, self._log, self._quiet = stop, log, quiet
        self.cloned: tuple[str, ...] = ()  # whose clones are fitted

    def turn(self, step: int) -> int:
        """Which refit comes before the generation with this number; 0: none."""
        parts = self.config.refits + 1
        points = [turn * self.config.generations // parts for turn in range(1, parts)]
        return points.index(step) + 1 if step in points else 0

    def play(self, turn: int, net: AroundRule) -> list[Seat]:
        """Real worlds with the learner as it is now; raises Halfway if it should stop before all are played."""
        config, kept = self.config, self.folder / "experience" / f"{turn}.npz"
        if kept.exists():  # the same network also plays what is missing
            weights = kept.read_bytes()
        else:
            kept.parent.mkdir(parents=True, exist_ok=True)
            files.save(kept, net.plain())
            weights = kept.read_bytes()
        specs = ground_real.planned(config, config.real_worlds, turn)
        done = ground_real.play(config, specs, weights, self.folder, self.engine, self._stop, self._log, self._quiet)
        if self._stop() and len(done) < len(specs):
            raise Halfway
        if not done:
            raise UserError("None of the real worlds could be played; log.txt says why.")
        return [seat for path in done for seat in ground_real.read(path)]

    def clones(self, turn: int) -> Path:
        """The clones, fitted to everything that is recorded so far."""
        from marlab.market.clones.clone import clone
        from marlab.market.clones.settings import CloneConfig

        path = self.folder / f"clones_{turn}"
        if not _is_finished(path):
            config = self.config
            data = self._all_recorded()
            asked = CloneConfig(
                self.cloned,
                recorded=data,
                units=config.refit_units,
                repeats=0,
                device=config.device,
                seed=config.seed + turn,
            )
            options = RunOptions(output_dir=path, resume=(path / "run.json").exists())
            clone(asked, options, quiet=self._quiet)
            if not _is_finished(path):
                raise Halfway
        return path / "clones.npz"

    def _all_recorded(self) -> Path:
        """The folder of all recorded worlds; those that were there before are linked into it."""
        folder = self.folder / ground_real.RECORDED
        if self.config.recorded is not None:
            for path in recorded_files(self.config.recorded):
                if not (folder / path.name).exists():
                    _link(path, folder / path.name)
        return folder


def _is_finished(run: Path) -> bool:
    """Whether a fit came to its end, tables and figures included."""
    return (run / "run.json").exists() and read_run(run).status == "finished"


def _link(path: Path, place: Path) -> None:
    try:
        os.link(path, place)
    except OSError:  # another disk
        shutil.copyfile(path, place)
