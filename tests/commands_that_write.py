"""Every training and collection in a size of seconds, and whether two of its runs came to the same.

Used where commands are killed or run out of disk: what went on afterwards must equal what was never disturbed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from marlab.lab.runs.checkpoint import CheckpointError, load_checkpoint
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.testing import assert_same
from marlab.market.agent.layers import SHIPPED
from tests.fish.cases import SMALL as FISH
from tests.fuzz.stage import hunt_data, market_logs, preset, recorded, samples
from tests.hunt.hop_cases import small_training
from tests.hunt.ppo_cases import small as small_ppo

TIMES = (
    "time",
    "charts/SPS",
    "seconds",
    "cpu_s",
    "worker",
    "peak_mb",
    "attempts",
    "created",
    "generated_at",
    "timestamp",
)
UNEQUAL = {"run.json", "log.txt", "lock", "note.md", "plan.json", "config.json"}
"""Files that tell when, where and how often, which is what differs."""


@dataclass(frozen=True)
class Writing:
    """A command without its --output-dir."""

    words: str
    """{files} stands for a folder with what `prepare` put there."""
    prepare: Callable[[Path], None] = lambda folder: None
    resume: tuple[str, ...] = ("--resume",)
    """How it goes on; () for one that simply begins again."""

    def argv(self, files: Path, out: Path) -> list[str]:
        return [*self.words.format(files=files).split(), "--output-dir", str(out)]


def _write_preset(config: Any) -> Callable[[Path], None]:
    return lambda folder: (folder / "p.toml").write_bytes(preset(config)) and None


def _copy(make: Callable[[], Path]) -> Callable[[Path], None]:
    def copy(folder: Path) -> None:
        import shutil

        shutil.copytree(make(), folder, dirs_exist_ok=True)

    return copy


VECTOR = (
    "--shapes 2x3 --days 5 5 --learners 2 --hidden 8 --opponents SyncRandomStdAgent RandomStdAgent --generations 3 "
    "--worlds 2 --device cpu"
)
CLONES = SHIPPED / "clones.npz"
MARKET = (
    "--device cpu --seed 3 --l2-epochs 3 --l3-epochs 2 --l4-epochs 2 --l3-width 16 --l3-layers 1 --l3-batch-size 64"
)
WRITING = {
    "fish train": Writing("fish train --preset {files}/p.toml", _write_preset(FISH)),
    "fish selfplay": Writing(
        "fish selfplay --rounds 1 --iterations 3 --num-envs 8 --num-fish 3 --hidden 8 --n-steps 16 --eval-arenas 2 "
        "--device cpu"
    ),
    "fish suite": Writing("fish suite best --arenas 1 --device cpu"),
    "fish school": Writing("fish school shoal --arenas 2 --device cpu"),
    "fish starts": Writing("fish starts ne:slow sw:0.5-1.5:24 --count 2000", resume=()),
    "hunt collect": Writing("hunt collect --preset msh_tiny --rows 4000"),
    "hunt pretrain vae": Writing(
        "hunt pretrain vae {files}/data --epochs 6 --vae-epochs 3 --belief-games 4 --no-overfit-check", _copy(hunt_data)
    ),
    "hunt pretrain world": Writing("hunt pretrain world {files}/data --rows 0 --epochs 8", _copy(hunt_data)),
    "hunt train ppo": Writing("hunt train --preset {files}/p.toml", _write_preset(small_ppo(total_steps=12 * 8 * 12))),
    "hunt train hop": Writing(
        "hunt train --preset {files}/p.toml --pipeline.gates warn", _write_preset(small_training())
    ),
    "market collect": Writing(
        "market collect --experts SyncRandomStdAgent RandomStdAgent --configs 2 --runs 1 --steps 6 --processes 2 2 "
        "--engine serial --quiet"
    ),
    "market samples": Writing(
        "market samples {files}/logs --agent-name all --chunk 1 --engine serial --quiet", _copy(market_logs)
    ),
    "market clone": Writing(
        "market clone AS0 PenguinAgent --recorded {files}/recorded --units 12 --steps 4 --batch 16 --hidden 8 "
        "--repeats 0 --device cpu --quiet",
        _copy(recorded),
    ),
    "market online": Writing(
        f"market online {VECTOR} --generation-days 2 --rollout-days 1 --steer-every 2 --steer-worlds 2 "
        "--steer-days 5 --batch-size 64 --past-selves 1 --quiet"
    ),
    "market online --refits": Writing(
        "market online --shapes 2x3 --days 5 5 --learners 2 --hidden 8 --generations 2 --worlds 2 --device cpu "
        f"--clones {CLONES} --opponents PenguinAgent RandomStdAgent --refits 1 --real-worlds 2 --refit-units 2 "
        "--experts SyncRandomStdAgent RandomStdAgent --recorded {files}/recorded --generation-days 2 --rollout-days 1 "
        "--steer-every 1 --steer-worlds 2 --steer-days 5 --batch-size 64 --past-selves 0 --engine serial --quiet",
        _copy(recorded),
    ),
    "market habits": Writing(
        "market habits --steps 3 --batches 1 --markets 2 --draws 4 --days 5 --shapes 2x3 --opponents RandomStdAgent "
        "--device cpu"
    ),
    "market distill": Writing(
        f"market distill rule {VECTOR} --play-days 2 --steps 4 --batch 64 --compare-worlds 2 --compare-days 5"
    ),
    "market fidelity": Writing(
        "market fidelity --sellers rule=LitaAgentHRL(mode=heuristic) imitation=LitaAgentHRL(mode=neural) "
        f"--population {' '.join(['SyncRandomStdAgent', 'RandomStdAgent'] * 5)} RandomStdAgent --configs 2 --seats 2 "
        "--days 5 --repeats 2 --engine serial --quiet"
    ),
    "market train": Writing(f"market train {{files}}/samples --phases l2,l3,l4 {MARKET}", _copy(samples)),
}

ELSEWHERE = {
    "fish eval": "tests/test_evaluation_kills.py",
    "hunt eval": "tests/test_evaluation_kills.py",
    "market play": "tests/test_evaluation_kills.py",
    "sweep": "tests/test_sweeps.py",
    "quickstart": "tests/quickstart/test_command.py",
}
"""Commands with a run of their own that are killed or cut short in another file."""
NOTHING_TO_GO_ON_WITH = {
    "fish probe": "figures and films of one probe", "fish watch": "one film", "hunt check": "prints",
    "hunt watch": "one film", "hunt diagnose": "figures of a finished run",
    "market eval-l2": "one table", "market new-agent": "a small folder that must not be there before",
    "market submit": "one archive", "market verify": "whole worlds, each once", "market configs": "one file",
    "market export": "one file for each world", "runs": "one record", "compare": "a table and a figure",
    "draw": "makes again what is there already", "report": "pages of what is there already",
    "note": "one note for each run",
}  # fmt: skip
"""Commands without a run of their own, and what they write: after a kill they are simply called again."""


def assert_equal_runs(ours: Path, theirs: Path) -> None:
    """Everything that two runs computed is equal: results, metrics, weights, data."""
    if (theirs / "run.json").exists():
        mine, other = read_run(ours), read_run(theirs)
        assert mine.status == other.status == "finished"
        assert_same(_untimed(mine.results), _untimed(other.results))
    metrics = [[_untimed(row) for row in read_metrics(path / "metrics.jsonl")] for path in (ours, theirs)]
    assert_same(*metrics)
    mine_files, other_files = _files(ours), _files(theirs)
    assert set(mine_files) == set(other_files)
    for name, path in mine_files.items():
        _assert_equal_files(name, path, other_files[name])


def _files(folder: Path) -> dict[str, Path]:
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        told = path.name in UNEQUAL or path.suffix in (".png", ".md", ".mp4", ".gif", ".html") or "/tb/" in f"/{name}"
        if path.is_file() and not hidden and not told and path.name != "metrics.jsonl":
            found[name] = path
    return found


def _assert_equal_files(name: str, ours: Path, theirs: Path) -> None:
    if ours.suffix == ".pt":
        mine, other = (_state(path) for path in (ours, theirs))
        assert_same(mine, other)
    elif ours.suffix == ".json":
        assert _untimed(json.loads(ours.read_text())) == _untimed(json.loads(theirs.read_text())), name
    elif ours.suffix == ".jsonl":
        assert_same(_rows(ours), _rows(theirs))
    elif ours.suffix == ".parquet":
        assert _table(ours).equals(_table(theirs)), name
    else:
        assert ours.read_bytes() == theirs.read_bytes(), name


def _table(path: Path) -> Any:
    """A table without its times; the parts in which it was written do not count."""
    table = pq.read_table(path)
    return table.select([name for name in table.column_names if not name.startswith(TIMES)])


def _rows(path: Path) -> list[Any]:
    """The lines of a file that is appended to; where they have steps, those that a resumed process wrote again once."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    stepped = all("step" in line or "resume" in line for line in lines)
    rows = [_untimed(row) for row in (read_metrics(path) if stepped else lines)]
    return rows if stepped else sorted(rows, key=str)  # worlds finish in any order


def _state(path: Path) -> Any:
    """What a checkpoint holds; of a memory that it names by name and checksum only the name: its file has a date."""
    state = load_checkpoint(path).state
    if isinstance(state, dict) and isinstance(state.get("memory"), list | tuple) and len(state["memory"]) == 2:
        state = {**state, "memory": state["memory"][0]}
    return state


def _untimed(value: Any) -> Any:
    """The same without times."""
    if isinstance(value, dict):
        return {k: _untimed(v) for k, v in value.items() if not str(k).startswith(TIMES)}
    return [_untimed(item) for item in value] if isinstance(value, list) else value


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
