"""`marlab quickstart`: the market's whole loop, small: an expert is recorded, an agent learns by trial, five compete.

    runs/market/quickstart-worlds    PenguinAgent's games and a copy of it    as `marlab market clone` does
    runs/market/quickstart-online    an agent that learns by trial            as `marlab market online` does
    runs/market/quickstart-arena     the paired tournament                    as `marlab market play` does
    runs/market/quickstart           the results of all three, and the report page

Every stage is an ordinary run. The same command again goes on where it was stopped, or shows the results once more.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from marlab.lab.config import diff, from_dict, load_preset, to_dict
from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.lab.flags import parse
from marlab.lab.progress import stage
from marlab.lab.runs.records import plan_run, read_run
from marlab.lab.runs.run import Run, RunOptions
from marlab.market.arena.command import PRESETS as PLAY_PRESETS
from marlab.market.arena.plan import Arena, PlayConfig
from marlab.market.clones.command import PRESETS as CLONE_PRESETS
from marlab.market.clones.settings import CloneConfig
from marlab.market.online.command import PRESETS as ONLINE_PRESETS
from marlab.market.online.settings import BUILTINS, START_FILE, OnlineConfig
from marlab.market.simulator.experts import find_player

C = TypeVar("C")
COMMAND = ("marlab", "quickstart")
AGENT = "marlab.market.agent:LitaAgentHRL"
EXPERT = "PenguinAgent"
HEURISTIC = f"{AGENT}(mode=heuristic)"
GOAL = "see the market's whole loop once"
WELCOME = "PenguinAgent is recorded, LitaAgentHRL learns by trial, five agents compete: five minutes on two idle cores."


def _preset(kind: type[C], name: str, folder: Path) -> C:
    return from_dict(kind, load_preset(name, folder).values, f"preset {name}")


@dataclass(frozen=True)
class QuickstartConfig:
    """The three stages; where one reads what another wrote is filled in by `connected`."""

    worlds: CloneConfig = field(default_factory=lambda: _preset(CloneConfig, "quickstart", CLONE_PRESETS))
    online: OnlineConfig = field(default_factory=lambda: _preset(OnlineConfig, "small", ONLINE_PRESETS))
    play: PlayConfig = field(default_factory=lambda: _preset(PlayConfig, "quickstart", PLAY_PRESETS))

    def connected(self, name: str) -> QuickstartConfig:
        """The same with the folders of the runs of this name, and with the agents that compete."""
        learnt = run_folder(name, "online").as_posix()
        places = (learnt, f"{learnt}/checkpoints/{START_FILE}")
        trained, start = (f"{AGENT}(mode=learned, weights={place})" for place in places)
        clones = run_folder(name, "worlds") / "clones.npz"
        return QuickstartConfig(
            self.worlds,
            replace(self.online, clones=clones, opponents=(EXPERT, *BUILTINS)),
            replace(self.play, agents=(trained, start, HEURISTIC, "RandomStdAgent"), baseline=start),
        )


@dataclass(frozen=True)
class QuickstartCommand:
    """PenguinAgent is recorded, LitaAgentHRL learns by trial, five agents compete: five minutes on two cores. The same
    command again goes on where it was stopped."""

    name: str = "quickstart"
    """The runs are runs/market/NAME and NAME-worlds, NAME-online, NAME-arena."""
    workers: int | None = None
    """Worlds that are played at once; default: one for each core."""
    time_limit: float | None = None
    """End within this many minutes; the same command goes on from there."""


class Stage(NamedTuple):
    """One part of the loop, which is a run of its own."""

    key: str
    about: str
    config: Any
    work: Callable[[RunOptions], Run]


def run_folder(name: str, stage: str = "") -> Path:
    """The run directory of a stage, or of the whole."""
    return Path("runs/market") / (f"{name}-{stage}" if stage else name)


def stages(config: QuickstartConfig, engine: EngineConfig) -> list[Stage]:
    """The work in its order; `config` is a connected one."""
    from marlab.market.arena.play import play
    from marlab.market.clones.clone import clone
    from marlab.market.online.work import learn

    return [
        Stage("worlds", "PenguinAgent plays small worlds; all is recorded, and a small network becomes a copy of it",
              config.worlds, lambda options: _alone(clone, config.worlds, options, engine)),
        Stage("online", "LitaAgentHRL begins with a start that was made bad and learns by trial, in worlds with that "
              "copy, built-in agents and the rule", config.online,
              lambda options: _alone(learn, config.online, options, engine)),
        Stage("arena", "five agents play the same seats of the same new worlds of the simulator, each once",
              config.play, lambda options: play(config.play, options, engine=engine, command=COMMAND)),
    ]  # fmt: skip


def quickstart(
    config: QuickstartConfig, name: str = "quickstart", engine: EngineConfig | None = None,
    time_limit: float | None = None,
) -> int:  # fmt: skip
    """Do what is missing of the loop, then tell what came out; returns the exit code."""
    from marlab.lab.report.note import write_note
    from marlab.quickstart.report import next_steps, read_story, summary, verdict, write_report

    options = RunOptions(name=name, resume=True, time_limit=time_limit)  # refuses what cannot be a name
    config = config.connected(name)
    _refuse_what_cannot_work(config)
    todo, folder = stages(config, engine or EngineConfig("local")), run_folder(name)
    if not (_is_finished(folder, config) and all(_is_finished(run_folder(name, s.key), s.config) for s in todo)):
        _plan(todo, name)
        print(f"{WELCOME}\n", flush=True)
        with Run.open("market", config, options, command=COMMAND) as run:
            _work(run, todo, name)
            story = read_story(folder, config.play)
            run.add_results(story.results())
            run.set_verdict(*verdict(story))
        if run.status != "finished":
            print(f"Stopped ({run.reason}). The same command goes on from here: {_again(name)}")
            return run.exit_code
    story = read_story(folder, config.play)
    with stage("report"):
        page = write_report(story)
        write_note(folder)  # shows the figures of the report too
    print(f"\n{summary(story)}\n\nreport     {page}\n{next_steps(name)}")
    return 0


def _refuse_what_cannot_work(config: QuickstartConfig) -> None:
    """Everything that is missing is said now and not after minutes."""
    find_player(EXPERT)
    Arena(config.play)


def _work(run: Run, todo: list[Stage], name: str) -> None:
    """The stages that are not finished, one after the other."""
    from marlab.quickstart.report import stage_facts, stage_time

    for number, part in enumerate(todo, 1):
        path = run_folder(name, part.key)
        print(f"{number}/{len(todo)} {part.key}: {part.about}", flush=True)
        if not _is_finished(path, part.config):
            options = RunOptions(name=path.name, resume=True, parent=f"market/{name}", group=name)
            # The stages' own tables are for people who ask for one of them; progress goes to stderr and stays.
            with contextlib.redirect_stdout(io.StringIO()) as said:
                part.work(options)
            run.log(said.getvalue())
        info = read_run(path)
        if info.status == "finished":
            print(f"    {stage_facts(part.key, info)} ({stage_time(info)})\n    {path}", flush=True)
        if info.status != "finished" or run.should_stop():
            run.leave()


def _alone(work: Callable[..., Run], config: Any, options: RunOptions, engine: EngineConfig) -> Run:
    """On one thread: that repeats a training bit for bit on any number of cores, and work on small arrays gains nothing
    from more."""
    from marlab.lab.device import threads

    with threads(1):
        return work(config, options, engine=engine, command=COMMAND)


def _plan(todo: list[Stage], name: str) -> None:
    """Write all runs down before the first begins: `marlab runs` shows what is to come, and a process that is killed
    while it opens a run leaves one that can be opened again."""
    for path, goal in [(run_folder(name), GOAL), *((run_folder(name, s.key), s.about) for s in todo)]:
        if not (path / "run.json").exists():
            plan_run(f"market/{path.name}", goal, None, group=name)


def _is_finished(path: Path, config: Any) -> bool:
    """Whether a run is complete; refused if it was made with other settings than these."""
    if not (path / "run.json").exists() or (info := read_run(path)).status != "finished":
        return False
    changed = diff(info.config(), to_dict(config))
    if changed:
        key, was, now = changed[0]
        raise UserError(f"{path} was made with {key} = {was!r}, and now it is {now!r}; give another --name.")
    return True


def _again(name: str) -> str:
    return " ".join(COMMAND) + ("" if name == QuickstartCommand.name else f" --name {name}")


def main(argv: Sequence[str]) -> int:
    """`marlab quickstart [--name NAME] [--workers N]`"""
    asked = parse(QuickstartCommand, argv, prog=" ".join(COMMAND))
    engine = EngineConfig("local", asked.workers)
    return quickstart(QuickstartConfig(), asked.name, engine, asked.time_limit)
