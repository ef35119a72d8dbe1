"""`marlab market collect` and `marlab market export`: their flags. `collection` and `export` do the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from marlab.lab.command import RunCommand
from marlab.lab.engine.tasks import EngineConfig, EngineFlags, config_of, parse_parallelism
from marlab.lab.flags import OldFlags, parse
from marlab.market.collect.plan import MarketCollectConfig
from marlab.market.logs.worldlog import EVERYBODY

PRESETS = Path(__file__).parents[1] / "presets" / "collect"
OLD = OldFlags(
    renamed={"num_workers": ["--workers"]},
    ignored={
        "no_csv": "the simulator's own tables are off by default; --simulator-tables turns them on",
        "no_auto_collect": "logs are written into the run directory at once, nothing is gathered afterwards",
        "forced_logs_fraction": "the recorder keeps every world in full, so no share of them needs more logs",
        "foreground": "collecting in the foreground is the default; --background detaches",
    },
)


@dataclass(frozen=True)
class CollectCommand(EngineFlags, MarketCollectConfig):
    """`marlab market collect`: the worlds, and where they are played (which changes no log)."""

    parallelism: str | None = None
    """Older word for --engine: serial, parallel, loky, loky:FRACTION, dask."""
    resumable: bool = False
    """Older word for --resume that also starts a new collection."""
    simulator_tables: bool = False
    """Keep the simulator's own files of every world too (twice as slow), under simulator/ in the run directory."""

    def run_config(self) -> MarketCollectConfig:
        """What decides the logs: the part that a resumed collection must repeat."""
        return config_of(self, MarketCollectConfig)

    def engine_config(self, instead: EngineConfig | str | None = None) -> EngineConfig:
        """Where the worlds are played."""
        if self.parallelism is None or instead is not None:
            return super().engine_config(instead)
        engine = parse_parallelism(self.parallelism)
        return replace(engine, workers=self.workers or engine.workers, address=self.address)


@dataclass(frozen=True)
class ExportConfig:
    """Write what was recorded in the format of trackers: one file per tracked agent and world."""

    run: str
    """The run of `marlab market collect` (its name or folder), any folder with world logs, or one log."""
    format: Literal["tracker"] = "tracker"
    """tracker: tracker_logs/agent_*.json."""
    agent_name: str = EVERYBODY
    """Only this class, or classes whose name begins so; "all" means every agent whose decisions were recorded."""
    output_dir: Path | None = None
    """Folder that gets tracker_logs/; by default the run itself."""
    compressed: bool = False
    """Write .json.gz, about a twentieth of the size."""


main = RunCommand(
    "market collect", CollectCommand, "marlab.market.collect.collection:collect", presets=PRESETS, old=OLD
)


def export_main(argv: Sequence[str]) -> None:
    """The command."""
    config = parse(ExportConfig, argv, prog="marlab market export", positional=("run",))
    from marlab.market.collect.export import export

    done = export(config)
    for why in done.bad.values():
        print(f"left out: {why}")
    print(f"{done.files} files of {done.worlds} worlds, {done.size / 1e6:,.2f} MB, in {done.folder}")
