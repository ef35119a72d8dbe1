"""Recorded games become a data set that trainers open without reading it (`marlab market samples`).

    runs/market/NAME/world_split.json        which worlds are for training, validation, test
    runs/market/NAME/data/                   the samples (dataset.py), one folder per split
    runs/market/NAME/statistics.json         counts and scales per split

The work is cut into parts of a few log files. A part that is finished stays: the same command with --resume goes on.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from marlab.lab.config import Preset, to_dict
from marlab.lab.engine.tasks import EngineConfig, Task, TaskResult, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress, stage
from marlab.lab.report.note import write_note
from marlab.lab.runs.files import read_json, write_json
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import say
from marlab.market.logs.find import LogFile, choose_experts, find_logs, place_of
from marlab.market.samples.command import SamplesCommand, SamplesConfig
from marlab.market.samples.dataset import SplitWriter, finish, load_part, open_dataset
from marlab.market.samples.goals import Backfill
from marlab.market.samples.npz import save_l4_samples, save_samples
from marlab.market.samples.options import SampleOptions
from marlab.market.samples.records import L4Samples, MacroSamples, MicroSamples
from marlab.market.samples.split import FILE as SPLIT_FILE
from marlab.market.samples.split import SPLITS, read_or_make_split, side_of
from marlab.market.samples.stats import describe, draw, table
from marlab.market.samples.work import make_part, refuse_many


class Part(NamedTuple):
    """A few log files of one split."""

    name: str
    split: str
    files: list[str]


def make_samples(
    config: SamplesConfig, options: RunOptions | None = None, *, engine: EngineConfig | str | None = None,
    preset: Preset | None = None, command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Make the data set of a folder of logs in a run directory; returns the run, closed."""
    asked = SamplesCommand.of(config)
    config, engine, quiet = asked.run_config(), asked.engine_config(engine), quiet or asked.quiet
    _backfill(config).network()  # refuses a network that does not fit before anything is read
    if not config.logs:
        raise UserError("Give a run of `marlab market collect` or a folder with logs: marlab market samples FOLDER.")
    place = place_of(config.logs)
    logs = find_logs(place)
    experts = choose_experts(config.agent_name, (kind for file in logs.logs for kind in file.types))
    files = [file for file in logs.logs if experts.intersection(file.types)]
    run = Run.open("market", config, options, preset=preset, command=command)
    try:
        with run:
            if not quiet:
                print(f"{len(files):,} log files of {', '.join(sorted(experts))}", flush=True)
            _make(config, run, _plan(config, run, place, files), sorted(experts), logs.bad, engine, quiet)
    except UserError:
        if not run.resumed:  # a request that was refused leaves its name free
            shutil.rmtree(run.path, ignore_errors=True)
        raise
    write_note(run.path)
    return run


def _make(
    config: SamplesConfig, run: Run, parts: list[Part], experts: list[str], bad: dict[str, str], engine: EngineConfig,
    quiet: bool,
) -> None:  # fmt: skip
    if not (run.path / "data" / "dataset.json").exists():
        summaries = _extract(config, run, parts, experts, engine, quiet)
        write_json(run.path / "reading.json", _reading(run, summaries, bad))
        _merge(config, run, parts, experts, quiet)
    shutil.rmtree(run.path / "parts", ignore_errors=True)
    with stage("statistics and figures", quiet):
        report(run, quiet)
    if config.npz:
        _export(run, config.options())


def _backfill(config: SamplesConfig) -> Backfill:
    return Backfill(config.goal_backfill, config.l2_model_path, config.device, options=config.options())


def _plan(config: SamplesConfig, run: Run, place: Path, files: list[LogFile]) -> list[Part]:
    """The parts of the work; a resumed run must find the same files as when it began."""
    group = "market" if config.split.split_by == "market" else "repeat"
    worlds = {file.world: str(getattr(file, group)) for file in files}
    path = config.split_file or run.path / SPLIT_FILE
    shared = config.split_file is not None
    side = side_of(read_or_make_split(path, place.as_posix(), worlds, config.split, shared))
    if shared:
        shutil.copyfile(path, run.path / SPLIT_FILE)
    parts = []
    for split in SPLITS:
        mine = [file.path.as_posix() for file in files if side[file.world] == split]
        chunks = [mine[i : i + config.chunk] for i in range(0, len(mine), config.chunk)]
        parts += [Part(f"{split}-{i:06d}", split, chunk) for i, chunk in enumerate(chunks)]
    plan = run.path / "plan.json"
    made = [list(part) for part in parts]
    if plan.exists() and read_json(plan, UserError) != made:
        raise UserError(f"The logs in {place} are not those that {run.path} was begun with; give another --name.")
    write_json(plan, made)
    return parts


def _extract(
    config: SamplesConfig, run: Run, parts: list[Part], experts: list[str], engine: EngineConfig, quiet: bool
) -> list[dict[str, Any]]:
    """Let workers make all parts; returns what each of them tells about its log files."""
    folder = run.path / "parts"
    folder.mkdir(exist_ok=True)
    by_worker = _backfill(config) if config.device == "cpu" else Backfill("none")
    finished = [part for part in parts if (folder / f"{part.name}.json").exists()]
    options = to_dict(config.options())

    def tasks() -> Iterator[Task]:
        for part in parts:
            if part not in finished:
                yield Task(part.name, (part.files, experts, options, by_worker, str(folder / part.name)))

    size = {part.name: len(part.files) for part in parts}
    done = sum(size[part.name] for part in finished)
    with (
        Progress("samples", total=sum(size.values()), unit="logs", done=done, quiet=quiet) as bar,
        contextlib.closing(run_tasks(make_part, tasks(), engine, stop=run.must_stop)) as results,
    ):
        for result in results:
            bar.advance(size[result.key], decisions=_checked(result)["micro"])
    done = sum((folder / f"{part.name}.json").exists() for part in parts)
    if done < len(parts):
        run.set_verdict(say("market.samples_begun", done=done, parts=len(parts)), say("lab.go_on"))
        run.leave()
    return [read_json(folder / f"{part.name}.json", UserError) for part in parts]


def _checked(result: TaskResult) -> dict[str, Any]:
    if not result.ok:
        raise RuntimeError(f"part {result.key} failed ({result.kind}): {result.error}")
    return result.value


def _reading(run: Run, summaries: list[dict[str, Any]], unread: dict[str, str]) -> dict[str, Any]:
    """What was wrong with the files, summed; too many bad ones end the run."""
    bad = {**unread, **{path: why for part in summaries for path, why in part["bad"].items()}}
    files = sum(part["files"] for part in summaries) + len(unread)
    for why in bad.values():
        run.log(why)
    refuse_many(bad, files)
    missing: Counter[str] = Counter()
    for part in summaries:
        missing.update(part["missing"])
    counts = {
        "decisions_without_day": sum(part["without_day"] for part in summaries),
        "days_without_reward": sum(part["without_reward"] for part in summaries),
    }
    return {"files": files, "bad": bad, "missing": dict(missing), **counts}


def _merge(config: SamplesConfig, run: Run, parts: list[Part], experts: list[str], quiet: bool) -> None:
    """Append the parts in their order, so that the result does not depend on who finished first."""
    folder, data = run.path / "parts", run.path / "data"
    fill = _backfill(config) if config.device != "cpu" else Backfill("none")
    sizes = config.options().sizes
    writers = {split: SplitWriter(data / split, sizes) for split in SPLITS}
    with Progress("merging", total=len(parts), unit="parts", quiet=quiet) as bar:
        for part in parts:
            samples = load_part(folder / f"{part.name}.npz")
            writers[part.split].append(fill(samples))
            bar.advance(1)
    about = {**to_dict(config.options()), "experts": experts, "goal_backfill": config.goal_backfill}
    about["l2_model_path"] = None if config.l2_model_path is None else config.l2_model_path.as_posix()
    finish(data, writers, about)


def draw_again(run: Run, config: SamplesConfig, quiet: bool) -> None:
    """Statistics, figures, results and verdict from the samples."""
    report(run, quiet=True)


def report(run: Run, quiet: bool) -> None:
    """Statistics, figures, results and the verdict of a finished data set."""
    dataset = open_dataset(run.path)
    splits = {name: dataset.split(name) for name in dataset.splits}
    stats = {name: describe(samples) for name, samples in splits.items()}
    reading = read_json(run.path / "reading.json", UserError)
    write_json(run.path / "statistics.json", {**stats, "reading": reading})
    draw(splits["train"], stats["train"], run.path / "figures")
    results: dict[str, Any] = {}
    for name, counts in stats.items():
        results |= {f"{name}/{key}": counts[key] for key in ("worlds", "logs", "macro", "micro", "calls")}
    results |= {f"train/op_{name}": count for name, count in stats["train"]["ops"].items()}
    results |= {"bad_files": len(reading["bad"]), "decisions_without_day": reading["decisions_without_day"]}
    run.add_results(results)
    sizes = {name: stats["train"][name] for name in ("macro", "micro", "calls", "worlds")}
    others = {name: stats[name]["worlds"] if name in stats else 0 for name in ("val", "test")}
    run.set_verdict(say("market.samples", **sizes, **others), say("market.next_train"))
    if not quiet:
        print(table(stats))
        lacked = {**reading["missing"], "decisions without a record of their day": reading["decisions_without_day"]}
        lacked["days without a reward, of which awr learns nothing"] = reading["days_without_reward"]
        lacked = {name: count for name, count in lacked.items() if count}
        if lacked or reading["bad"]:
            print(f"{len(reading['bad'])} files could not be used; missing in the others: {json.dumps(lacked)}")
        print(f"data: {dataset.folder}")


def _export(run: Run, options: SampleOptions) -> None:
    """The same samples as plain arrays, one folder per split."""
    dataset = open_dataset(run.path)
    for name in dataset.splits:
        samples, folder = dataset.split(name), run.path / "npz" / name
        macro, micro = MacroSamples.view(samples, options), MicroSamples.view(samples, options)
        save_samples(macro, micro, folder, samples.sizes.horizon)
        if samples.rows("calls"):
            save_l4_samples(L4Samples.view(samples, options), folder)
