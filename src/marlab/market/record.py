"""Record worlds that somebody else makes: the same logs that `marlab market collect` writes.

    from marlab.market import record

    with record.attach(world, "logs"):          # a world of your own, before its first day
        world.run()

    @record.recorded("logs")                    # every world that this agent plays in, those of anac2024_std too
    class Mine(LitaAgentHRL): ...

A world's log is one file in the folder, written when its last day is over; `marlab market samples logs` reads it.
Nothing recorded changes what happens, and a recorder that fails leaves the world alone.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from marlab.lab.errors import UserError
from marlab.market.logs.worldfile import write_world
from marlab.market.logs.worldlog import WorldLog
from marlab.market.simulator.record import ForeignWorld, Recording, factories

Agent = TypeVar("Agent", bound=type)
_ATTACHED = "_marlab_recorder"


class Recorder:
    """The recorder of one world. `log` is there when the world has ended, `path` too if a folder was given."""

    log: WorldLog | None = None
    path: Path | None = None

    def __init__(self, world: Any, folder: Path | None) -> None:
        self._world, self._folder = world, folder
        self._recording = Recording(world, ForeignWorld(str(world.name), _market_of(world)))
        for hook, note in (
            ("simulation_step", self._stage),
            ("on_contract_concluded", self._contract),
            ("on_negotiation_end", self._negotiation),
            ("step", self._day),
        ):
            setattr(world, hook, _then(getattr(world, hook), note))
        setattr(world, _ATTACHED, self)

    def track(self, names: Iterable[str]) -> None:
        """Record the mornings and answers of these agents (ids of the world)."""
        for name in names:
            self._recording.track(self._world, name)

    def finish(self) -> WorldLog:
        """The log of what was played so far; a folder gets it as a file, once."""
        if self.log is None:
            self.log = self._recording.log(self._world)
            if self._folder is not None:
                path = _free(self._folder, str(self._world.name))
                try:
                    write_world(path, self.log)
                except BaseException:
                    path.unlink(missing_ok=True)
                    raise
                self.path = path
        return self.log

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.finish()

    def _stage(self, stage: int = 0) -> None:
        self._recording.guarded(self._recording.morning if stage == 0 else self._recording.evening, self._world)

    def _contract(self, contract: Any, to_be_signed_at: int) -> None:
        self._recording.guarded(self._recording.contract, self._world, contract)

    def _negotiation(self, info: Any) -> None:
        self._recording.guarded(self._recording.negotiation_ended, info)

    def _day(self, *_: Any, **__: Any) -> None:
        if self._world.current_step >= self._world.n_steps and self.log is None:
            try:
                self.finish()
            except Exception as error:  # a full disk costs the log, not somebody's tournament
                warnings.warn(f"World {self._world.name} was played and not recorded: {error}", stacklevel=2)


def attach(world: Any, output_dir: str | Path | None = None, agents: Iterable[str] | None = None) -> Recorder:
    """Record a world of the Standard league from its first day on.

    `output_dir`: the folder for its log; without one the log is the recorder's `log`. `agents`: ids or class names of
    those whose mornings and answers are recorded, everybody's by default; offers, contracts and prices always are.
    """
    if not hasattr(world, "agent_profiles") or not hasattr(world, "trading_prices") or not hasattr(world, "horizon"):
        raise UserError(f"{type(world).__name__} is no world of the Standard league: give a SCML2024StdWorld.")
    if world.current_step > 0:
        raise UserError(f"World {world.name} is on day {world.current_step}: attach the recorder before its first day.")
    known = {name: type(world.agents[name].adapted_object).__name__ for name in factories(world)}
    wanted = set(known) if agents is None else {agents} if isinstance(agents, str) else set(agents)
    chosen = [name for name, kind in known.items() if name in wanted or kind in wanted]
    unknown = wanted - set(known) - set(known.values())
    if unknown:
        raise UserError(f"World {world.name} has no agent {sorted(unknown)[0]}, only {', '.join(sorted(known))}.")
    recorder: Recorder = getattr(world, _ATTACHED, None) or Recorder(world, _folder(output_dir))
    recorder.track(chosen)
    return recorder


def recorded(output_dir: str | Path, *, everybody: bool = False) -> Callable[[Agent], Agent]:
    """A class decorator: worlds in which an agent of this class plays leave their log in `output_dir`.

    The class stays what it is, name and module included, so tournaments that import it by name in their own processes
    find the recorded one. `everybody`: record the answers of all agents of these worlds, not only of this class.
    """
    folder = _folder(output_dir)

    def decorate(cls: Agent) -> Agent:
        original = cls.init  # type: ignore[attr-defined]

        @wraps(original)
        def init(self: Any, *args: Any, **kwargs: Any) -> Any:
            world = self.awi._world
            if world.current_step == 0:
                try:
                    attach(world, folder, None if everybody else [self.id])
                except Exception as error:  # the agent plays on, whatever the recorder thinks of its world
                    warnings.warn(f"World {world.name} is not recorded: {error}", stacklevel=2)
            return original(self, *args, **kwargs)

        cls.init = init  # type: ignore[attr-defined]
        return cls

    return decorate


def _then(call: Callable[..., Any], note: Callable[..., None]) -> Callable[..., Any]:
    """Call, then tell the recorder with the same arguments."""

    def called(*args: Any, **kwargs: Any) -> Any:
        answer = call(*args, **kwargs)
        note(*args, **kwargs)
        return answer

    return called


def _market_of(world: Any) -> str:
    """A fingerprint of the market before anybody plays: its length, prices, and every factory's place and costs."""
    profiles = [(p.input_product, float(p.cost), int(p.n_lines)) for p in world.agent_profiles.values()]
    facts = (world.n_steps, [float(price) for price in world.catalog_prices], sorted(profiles))
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


def _folder(output_dir: str | Path | None) -> Path | None:
    if output_dir is None:
        return None
    folder = Path(output_dir).absolute()  # a tournament's processes may work somewhere else
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{output_dir} is a file; logs need a folder.")
    return folder


def _free(folder: Path, name: str) -> Path:
    """A name that no other world's log has; worlds of different processes may share a name."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:100] or "world"
    number = 0
    while True:
        path = folder / (f"{stem}.parquet" if number == 0 else f"{stem}-{number}.parquet")
        try:
            path.open("x").close()
        except FileExistsError:
            number += 1
        else:
            return path
