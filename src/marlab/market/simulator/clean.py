"""One world with one agent, played by a Python that knows the simulator and the agent and nothing else.

    python clean.py TASK.json RESULT.json

This file is a program that imports nothing of this package: it tells how an agent behaves where only scml is installed.
The task names a folder to import from, the agent's module and class, its parameters, the world, and modules that must
not be imported. The result tells how long the start took, every answer of the agent with the time that it took, what it
raised, and what its code did that the league does not want: writing files, talking to a network, starting programs.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

JOINT = ("first_proposals", "counter_all")
SINGLE = ("propose", "respond")
NEVER = (
    "socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.exec", "os.fork", "os.remove", "os.rename",
    "os.mkdir", "shutil.rmtree",
)  # fmt: skip
"""Events of Python's audit hook that code of an agent has no reason to cause."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


class Blocked:
    """Refuses to import some packages, as if they were not installed."""

    def __init__(self, names: list[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Part of the import system."""
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r} (not part of a submission)", name=name)


class Watch:
    """Notes what code below a folder does."""

    def __init__(self, folder: str) -> None:
        self.seen: list[str] = []
        self._folder, self._on = folder, False
        sys.addaudithook(self._event)

    def start(self) -> None:
        """From now on; what the import of the agent reads is its own matter."""
        self._on = True

    def _event(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._on or (event != "open" and event not in NEVER):
            return
        if event == "open":
            path, mode, flags = (*args, None, None, None)[:3]
            writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
            if not writes and not (isinstance(flags, int) and flags & WRITING):
                return
            what = f"writes {path}"
        else:
            what = f"{event} {args[:1]}"
        frame: Any = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename.startswith(self._folder):
                self.seen.append(what[:200])
                return
            frame = frame.f_back


def main(task_file: str, result_file: str) -> None:
    """Play the task."""
    task = json.loads(Path(task_file).read_text())
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]
    warnings.simplefilter("ignore")
    started = time.process_time()  # not of the clock on the wall: a busy machine is not the agent's fault
    import scml.std

    simulator_s = time.process_time() - started
    if task["blocked"]:
        sys.meta_path.insert(0, Blocked(task["blocked"]))
    sys.path.insert(0, task["folder"])
    watch = Watch(task["folder"])
    started = time.process_time()
    cls = getattr(importlib.import_module(task["module"]), task["class"])
    cls(**task["parameters"])
    start_s = time.process_time() - started
    result: dict[str, Any] = {
        "simulator_s": simulator_s,
        "start_s": start_s,
        "is_standard": issubclass(cls, scml.std.StdAgent),
        "blocked": [name for name in task["blocked"] if name in sys.modules],
    }
    watch.start()
    result |= played(cls, task) if result["is_standard"] else {}
    result["unwanted"] = watch.seen
    Path(result_file).write_text(json.dumps(result))


def played(cls: type, task: dict[str, Any]) -> dict[str, Any]:
    """A seeded world in which the agent has the first seat of every level."""
    import numpy as np
    from negmas import mechanisms
    from scml.std import SCML2024StdWorld

    others = [getattr(importlib.import_module("scml.std.agents"), name) for name in task["others"]]
    levels = [level for level in range(task["levels"]) for _ in range(task["factories"])]
    types, mine = [], []
    for place, _ in enumerate(levels):
        own = place % task["factories"] == 0
        types.append(cls if own else others[place % len(others)])
        mine.append(own)
    with tempfile.TemporaryDirectory() as folder:
        random.seed(task["seed"])
        np.random.seed(task["seed"])
        config = SCML2024StdWorld.generate(
            agent_types=types,
            agent_params=[{"controller_params": task["parameters"]} if own else {} for own in mine],
            agent_processes=levels,
            n_processes=task["levels"],
            n_steps=task["days"],
            random_agent_types=False,
        )
        world = SCML2024StdWorld(
            **config, compact=True, no_logs=True, log_folder=folder, ignore_agent_exceptions=True,
            ignore_negotiation_exceptions=True, sync_calls=True, saved_details_level=0,
        )  # fmt: skip
        world.save_negotiations = False
        random.seed(task["seed"])
        np.random.seed(task["seed"])
        mechanisms.random = random.Random(task["seed"])  # the shared one counts the seconds that a negotiation takes
        log = _Log()
        owners = [owner for owner in world.agents.values() if type(owner.adapted_object) is cls]
        for owner in owners:
            log.listen(owner.adapted_object)
        world.run()
    raised = {owner.id: len(world.agent_exceptions.get(owner.id, [])) for owner in owners}
    scores = {owner.id: float(world.scores()[owner.id]) for owner in owners}
    return {
        "decisions": log.lines,
        "seconds": log.seconds,
        "raised": sum(raised.values()) + log.raised,
        "scores": scores,
        "init_s": log.init_s,
    }


class _Log:
    """Every answer of some agents in the order in which it was given."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.seconds: list[float] = []
        self.init_s = 0.0
        self.raised = 0
        self._depth = 0

    def listen(self, agent: Any) -> None:
        agent.init = self._timing_init(agent.init)
        for name in (*JOINT, *SINGLE):
            if hasattr(agent, name):
                setattr(agent, name, self._noting(agent, name, getattr(agent, name)))

    def _timing_init(self, call: Callable[[], None]) -> Callable[[], None]:
        def timed() -> None:
            started = time.process_time()
            call()
            self.init_s = max(self.init_s, time.process_time() - started)

        return timed

    def _noting(self, agent: Any, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            started = time.thread_time()
            try:
                answer = call(*args, **kwargs)
            except Exception:
                self.raised += self._depth == 1  # the simulator ends the negotiation and goes on
                raise
            finally:
                self._depth -= 1
            if self._depth == 0:
                self.seconds.append(time.thread_time() - started)
                self.lines.append(f"{agent.awi.current_step} {agent.id} {name} {_plain(answer)}")
            return answer

        return noted


def _plain(answer: Any) -> str:
    """An answer as text, partners in order of their names."""
    if isinstance(answer, dict):
        return "; ".join(f"{partner}: {_plain(value)}" for partner, value in sorted(answer.items()))
    response, outcome = getattr(answer, "response", answer), getattr(answer, "outcome", "")
    name = getattr(response, "name", response)
    values = [int(part) for part in outcome] if isinstance(outcome, tuple) else outcome
    return f"{[int(part) for part in name] if isinstance(name, tuple) else name} {values}".strip()


if __name__ == "__main__":
    main(*sys.argv[1:])
