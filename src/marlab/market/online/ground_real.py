"""The ground that judges: worlds of the simulator in engine workers, with the learner in selling seats.

A task plays one world and returns two things: its record, from which clones can be fitted again, and what the learner
lived through in each of its seats. `transitions` puts many such seats into the layout of the vector market's ground, so
the same trainer learns from both.
"""

from __future__ import annotations

import contextlib
import io
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marlab.lab.engine.keeper import task_folder
from marlab.lab.engine.tasks import EngineConfig, Task, run_tasks
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.arrays import read_npz
from marlab.lab.runs.files import replacing, trusting
from marlab.market.agent.learning import Experience, played_by
from marlab.market.online.credit import Rewards
from marlab.market.online.ground_vector import Rows
from marlab.market.online.settings import OnlineConfig
from marlab.market.simulator.seating import Deck, processes_of, shape_of
from marlab.market.simulator.worlds import WorldSpec
from marlab.market.vector.rounds import ROUNDS

LEARNER = "learner"
"""Stands for the learner in the agents of a world that is planned."""
AGENT = 'marlab.market.agent.learning:LearningAgent(weights="{}", seed={})'
NAME = "LearningAgent"
RECORDED, LIVED = "recorded", "experience"
"""Folders of worlds in full, and of what learners lived through in them."""


def planned(config: OnlineConfig, count: int, turn: int) -> list[WorldSpec]:
    """Worlds of the config's shapes: experts drawn so that everybody plays equally often, the learner sells."""
    draw = random.Random(f"real ground {config.seed} {turn}")
    deck, specs = Deck(config.experts, draw), []
    for number in range(count):
        shape = shape_of(config.shapes[number % len(config.shapes)])
        sizes = [draw.randint(3, 6) for _ in range(draw.randint(2, 4))] if shape is None else [shape[1]] * shape[0]
        processes = processes_of(sizes)
        agents = deck.deal(len(processes))
        sells = [place for place, level in enumerate(processes) if level < len(sizes) - 1]
        for place in draw.sample(sells, min(config.learners, len(sells))):
            agents[place] = LEARNER
        seeds = draw.randrange(2**31), draw.randrange(2**31)
        days = draw.randint(*config.days)
        world_id = f"real-{config.seed}-{turn}-{number:04d}"
        specs.append(WorldSpec(world_id, *seeds, days, processes, tuple(agents), (True,) * len(agents)))
    return specs


def play_task(spec: dict[str, Any], weights: bytes) -> tuple[bytes, bytes]:
    """The engine's task: one world; its record, and what the learners in it lived through."""
    from marlab.market.simulator.record import as_bytes, record_world

    plan = WorldSpec.from_dict(spec)
    file = Path(tempfile.mkdtemp(prefix="marlab-learner-", dir=task_folder())) / "around.npz"
    file.write_bytes(weights)
    agent = AGENT.format(file, plan.seed)
    agents = tuple(agent if name == LEARNER else name for name in plan.agents)
    lived: dict[str, Experience] = {}

    def look(world: Any) -> None:
        for name, seat in played_by(world.agents).items():
            lived[name] = seat.experience(float(world.current_balance(name)), plan.n_steps)

    log = record_world(replace(plan, agents=agents), look=look)
    kinds = {agent["id"]: agent["type"] for agent in log.agents}
    return as_bytes(log), to_bytes(lived, kinds, plan)


def play(
    config: OnlineConfig, specs: Sequence[WorldSpec], weights: bytes, folder: Path, engine: EngineConfig,
    stop: Callable[[], bool] = lambda: False, say: Callable[[str], None] = lambda text: None, quiet: bool = False,
) -> list[Path]:  # fmt: skip
    """Play what is missing of these worlds into a folder; where the experience of all that succeeded lies."""
    recorded, lived = folder / RECORDED, folder / LIVED
    for each in (recorded, lived):
        each.mkdir(parents=True, exist_ok=True)
    parts = {spec.world_id: lived / f"{spec.world_id}.npz" for spec in specs}
    waiting = [spec for spec in specs if not parts[spec.world_id].exists()]
    tasks = [Task(spec.world_id, (spec.to_dict(), weights), time_limit_s=config.world_timeout) for spec in waiting]
    with (
        Progress("real worlds", total=len(specs), done=len(specs) - len(waiting), unit="worlds", quiet=quiet) as bar,
        contextlib.closing(run_tasks(play_task, tasks, engine, stop=stop)) as results,
    ):
        for result in results:
            if result.ok:
                record, experience = result.value  # a world that counts has both files
                for path, content in ((recorded / f"{result.key}.parquet", record), (parts[result.key], experience)):
                    with replacing(path) as temporary:
                        temporary.write_bytes(content)
            else:
                say(f"real world {result.key} failed ({result.kind}): {result.error.strip()[-500:]}")
            bar.advance(1, failures=0 if result.ok else 1)
    return [path for path in parts.values() if path.exists()]


# --- files of experience --------------------------------------------------------------------------------------------


def to_bytes(lived: dict[str, Experience], kinds: dict[str, str], spec: WorldSpec) -> bytes:
    """An .npz file: all seats one after the other, with who their buyers and rivals were."""
    names = list(lived)
    arrays: dict[str, Any] = {"days": np.array(spec.n_steps), "seats": np.array(names)}
    rivals = {name: [kinds[o] for o in kinds if _level(o) == _level(name) and o != name] for name in names}
    for number, name in enumerate(names):
        seat = lived[name]
        for field in Experience._fields[:-1]:
            arrays[f"{number}.{field}"] = getattr(seat, field)
        arrays[f"{number}.buyers"] = np.array([kinds[buyer] for buyer in seat.buyers], dtype=np.str_)
        arrays[f"{number}.rivals"] = np.array(rivals[name], dtype=np.str_)
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def _level(name: str) -> str:
    return name.rpartition("@")[2]


class Seat:
    """What one seat lived through, from a file."""

    def __init__(self, arrays: dict[str, Any], number: int, days: int) -> None:
        self.days = days
        own = {name: arrays[f"{number}.{name}"] for name in Experience._fields[:-1]}
        self.lived = Experience(**own, buyers=())
        self.buyers: list[str] = arrays[f"{number}.buyers"].tolist()
        self.rivals: list[str] = arrays[f"{number}.rivals"].tolist()


def read(path: Path) -> list[Seat]:
    """The seats of a file."""
    arrays = read_npz(path, "the experience of a learner")
    with trusting(f"{path} holds no experience of a learner"):
        return [Seat(arrays, number, int(arrays["days"])) for number in range(len(arrays["seats"]))]


# --- the layout that the trainer learns from ------------------------------------------------------------------------


def transitions(
    seats: Sequence[Seat],
    logp: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor],
    device: torch.device | str = "cpu",
) -> tuple[Rows, Rewards]:
    """Choices and rewards of some seats. `logp` [M]: log-probabilities of choices given inputs and masks."""
    seats = [seat for seat in seats if len(seat.lived.day)]
    if not seats:
        raise UserError("Nobody had anything to choose in these worlds.")
    lived = [seat.lived for seat in seats]
    days, wide = max(seat.days for seat in seats), max(len(seat.buyers) for seat in seats)
    own = torch.zeros((days * ROUNDS, len(seats), wide))
    evening = torch.zeros((days, len(seats)))
    ended = torch.zeros((days, len(seats)), dtype=torch.bool)
    for number, (seat, each) in enumerate(zip(seats, lived)):
        day, turn, partner = (torch.as_tensor(each.sale[:, column]).long() for column in range(3))
        own[:, number].index_put_(
            (day * ROUNDS + turn.clamp(max=ROUNDS - 1), partner),
            torch.as_tensor(each.sale[:, 3]).float(),
            accumulate=True,
        )
        evening[: seat.days, number] = torch.as_tensor(each.evening).float()
        ended[seat.days - 1, number] = True
    step, partner, x, mask, choices = (
        torch.as_tensor(np.concatenate(part)).to(device)
        for part in (
            [e.day * ROUNDS + np.minimum(e.round, ROUNDS - 1) for e in lived],
            [e.partner for e in lived],
            [e.x for e in lived],
            [e.mask for e in lived],
            [e.choices for e in lived],
        )
    )
    place = np.concatenate([np.full(len(e.day), number) for number, e in enumerate(lived)])
    rows = Rows(step, torch.as_tensor(place).to(device), partner, x, mask, choices, logp(x, mask, choices))
    return rows, Rewards(own.to(device), evening.to(device), ended.to(device))


def others(seats: Sequence[Seat], names: Sequence[str]) -> torch.Tensor:
    """[N, K, 3 kinds] what only a central critic sees, as the vector market's ground tells it; strangers are zeros."""
    number = {name: place for place, name in enumerate(names)}
    number[NAME] = number.get(LEARNER, 1)
    seats = [seat for seat in seats if len(seat.lived.day)]
    wide, kinds = max(len(seat.buyers) for seat in seats), len(names)
    out = torch.zeros((len(seats), wide, 3, kinds))
    for n, seat in enumerate(seats):
        partner = torch.zeros((wide, kinds))
        for k, buyer in enumerate(seat.buyers):
            if buyer in number:
                partner[k, number[buyer]] = 1.0
        rivals = torch.zeros(kinds)
        for rival in [*seat.rivals, NAME]:
            if rival in number:
                rivals[number[rival]] += 1.0 / (1 + len(seat.rivals))
        out[n, :, 0], out[n, :, 1], out[n, :, 2] = partner, partner.mean(0), rivals
    return out.flatten(2)
