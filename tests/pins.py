"""What must not change while the house is rebuilt: the help of every command, and one tiny training per world.

    python -m tests.pins [help] [trainings] [NAME]     # write tests/golden/pins anew; do this in a commit of its own

A training is pinned by its metrics (times left out) and by the digest of every weight. Digests are equal to the bit on
one kind of processor only, so on another one the numbers are compared instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from marlab.cli import COMMANDS, Command, Table, main
from marlab.fish.training.train import FishTrainer
from marlab.hunt.ppo.train import PPOTrainer
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.market.agent.layers import SHIPPED
from marlab.market.learn.tables import DayTable, DecisionTable, RoundTable
from marlab.market.learn.trainers import (
    ActionTrainer,
    DayGoalTrainer,
    WeightTrainer,
    new_coordinator,
    new_executor,
    new_manager,
)
from marlab.market.networks.manager import KIND as L2_KIND
from marlab.market.networks.weights import L3_KIND, L4_KIND, load_network
from marlab.market.samples.dataset import concatenate
from marlab.market.samples.extract import extract, with_goals
from marlab.market.samples.options import SampleOptions

PINS = Path(__file__).parent / "golden" / "pins"
TIMES = ("time/", "charts/SPS", "time_")
RENAMED: tuple[tuple[str, str], ...] = (
    (r"^(l2_bc|l3_bc|l3_awr|l4_distill)/lr$", r"\1/learning_rate"),
    (r"charts/env_steps$", "progress/env_steps"),
    (r"charts/episode/avg_reward_per_episode_all_agents$", "episode/reward"),
    (r"agent_player_(\d+)/reward_avg_per_episode$", r"episode/reward_player_\1"),
    (r"charts/episode/episodes$", "episode/count"),
    (r"charts/episode/length$", "episode/length"),
    (r"charts/(outcome|guests)/", r"\1/"),
    (r"charts/entropy_coef$", "ppo/entropy_coef"),
    (r"charts/(beta|behaviour_entropy)$", r"plan/\1"),
    (r"^rollout/ep_len_mean$", "episode/length"),
    (r"^rollout/ep_rew_mean$", "episode/reward"),
    (r"^train/policy_gradient_loss$", "ppo/policy_loss"),
    (r"^train/", "ppo/"),
    (r"losses_player_\d+/moa/", "moa/"),
    (r"losses_player_(\d+)/", r"ppo/player_\1/"),
)
"""(pattern, replacement): how a pinned metric's name is said today; trainings are never pinned anew for a name."""


def todays_name(pinned: str) -> str:
    for pattern, name in RENAMED:
        pinned = re.sub(pattern, name, pinned)
    return pinned


def todays_names(value: Any) -> Any:
    """A pinned training with every metric under today's name."""
    if isinstance(value, dict):
        return {k: _named(v) if k == "metrics" and isinstance(v, list) else todays_names(v) for k, v in value.items()}
    return value


def _named(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{todays_name(k): v for k, v in unit.items()} for unit in metrics]


def commands(table: Table = COMMANDS, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    for word, entry in table.items():
        if isinstance(entry, Command):
            yield (*words, word), entry
        else:
            yield from commands(entry, (*words, word))
    if not words:
        yield ("hunt", "train", "--variant", "hopplus-mcts"), COMMANDS["hunt"]["train"]  # type: ignore[index, misc]


def help_text(words: tuple[str, ...]) -> str:
    """What `marlab WORDS --help` prints on a terminal of 120 columns."""
    said = io.StringIO()
    sizes = {"COLUMNS": "120", "LINES": "50", "NO_COLOR": "1", "TERM": "dumb"}
    with mock.patch.dict(os.environ, sizes), contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([*words, "--help"])
    return said.getvalue()


def machine() -> str:
    """What decides how sums are rounded."""
    info = Path("/proc/cpuinfo")
    names = [x.partition(":")[2].strip() for x in info.read_text().splitlines() if "model name" in x]
    name = names[0] if names else platform.processor()
    return f"{name}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}"


def digests(state: Any, name: str = "") -> dict[str, str]:
    """The digest of every tensor of a state, by its path."""
    if isinstance(state, torch.Tensor):
        return {name: hashlib.sha256(state.detach().cpu().contiguous().numpy().tobytes()).hexdigest()[:16]}
    if isinstance(state, Mapping):
        items = ((str(k), v) for k, v in state.items())
    elif isinstance(state, (list, tuple)):
        items = ((str(i), v) for i, v in enumerate(state))
    else:
        return {}
    return {k: v for key, value in items for k, v in digests(value, f"{name}/{key}".lstrip("/")).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, (torch.Tensor, np.ndarray, np.generic)):
        return value.tolist()
    return value


def follow(trainer: Any, units: int, modules: Mapping[str, Any]) -> dict[str, Any]:
    """Train some units; metrics of every unit, and digests and sums of the weights that they lead to."""
    metrics = []
    for _ in range(units):
        values = {k: _plain(v) for k, v in trainer.iterate().items() if not k.startswith(TIMES)}
        metrics.append(dict(sorted(values.items())))
    weights = {name: module.state_dict() for name, module in modules.items()}
    sums = {f"{m}/{k}": float(v.double().abs().sum()) for m, state in weights.items() for k, v in state.items()}
    return {"metrics": json.loads(json.dumps(metrics)), "weights": digests(weights), "sums": sums}


def fish() -> dict[str, Any]:
    from tests.fish.cases import SMALL

    trainer = FishTrainer(SMALL)
    return follow(trainer, 8, {"net": trainer.net})


def hunt_ppo() -> dict[str, Any]:
    from tests.hunt.ppo_cases import small

    trainer = PPOTrainer(small())
    return follow(trainer, 4, {str(i): x.ppo.net for i, x in enumerate(trainer.learners)})


def hunt_planner() -> dict[str, Any]:
    from tests.hunt.hop_cases import small_training

    trainer = SelfPlayTrainer(small_training())
    return follow(trainer, 4, {"fast": trainer.learner.fast, "slow": trainer.learner.slow})


def hunt_moves() -> dict[str, Any]:
    """What shipped planners do in twelve games, imagined in tensors and in C, and what scripted players do."""
    from marlab.hunt.api import load
    from marlab.hunt.game.build import make_game
    from marlab.hunt.game.config import game_config
    from marlab.hunt.planner.agent import HopAgent, HopAgents
    from marlab.hunt.planner.config import Engine
    from marlab.hunt.players.characters import parse_character
    from marlab.hunt.players.policy import Policy
    from marlab.hunt.players.rollout import moments
    from marlab.hunt.players.strangers import policy_for

    def moves(game: Any, policy: Policy, games: int) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(7)
        start = game.reset(games, generator)
        actions, sums = [], torch.zeros(4, dtype=torch.float64)
        for moment in moments(game, policy, start, policy.begin(games, generator), generator):
            actions.append("".join(str(a) for a in moment.outcome.executed.flatten().tolist()))
            if isinstance(policy, HopAgent):
                why = policy.explain()
                told = (why.belief.square(), why.plan.visits.square(), why.plan.value, why.plan.q)
                sums += torch.stack([x.double().sum() for x in told])
        return {"actions": actions, **({"sums": sums.tolist()} if isinstance(policy, HopAgent) else {})}

    found: dict[str, Any] = {}
    for name, games in (("hop_4x4", 12), ("hop_8x8_b5", 4), ("hop_far", 12)):
        agents = load(name)
        assert isinstance(agents, HopAgents)
        game = make_game(agents.game, torch.Generator().manual_seed(3))
        engines: tuple[Engine, ...] = ("tensors", "native")
        for engine in engines:
            agent = agents.agent(game, engine=engine)
            found[f"{name}/{engine}"] = moves(game, agent, games)
    game = make_game(game_config("msh_4x4"))
    for text in ("GRIM(1)", "TFT", "NOISY(0.2,NS)", "KEEP", "MIX(0.5)", "SWITCH(4)"):
        found[text] = moves(game, policy_for(parse_character(text))(game), 12)
    return found


def hunt_reports() -> dict[str, Any]:
    """What tiny runs of every offline training and of PPO write at their end: numbers of a file, added up by entry."""
    from tests.hunt.diagnose.conftest import Runs

    def sums(value: Any, depth: int) -> Any:
        if isinstance(value, dict) and depth:
            return {k: sums(v, depth - 1) for k, v in sorted(value.items())}
        if isinstance(value, (dict, list)):
            each = [sums(v, 0) for v in (value.values() if isinstance(value, dict) else value)]
            return float(sum(v for v in each if isinstance(v, (int, float))))
        return value if isinstance(value, (int, float)) else None

    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        files = {
            "goals": "eval/final.json", "world": "world_report.json", "ppo": "evaluation.json",
            "reply": "evaluation.json",
        }  # fmt: skip
        return {kind: sums(json.loads((runs[kind] / file).read_text()), 3) for kind, file in files.items()}


def _market_samples() -> Any:
    from tests.market.sample_tools import tracked_logs

    made = concatenate([extract(log, SampleOptions()) for log in tracked_logs()])
    return with_goals(made, made.macro["label"])


def market() -> dict[str, Any]:
    from tests.market.learn_cases import CPU, SMALL

    samples = _market_samples()
    days, decisions, rounds = DayTable(samples, CPU), DecisionTable(samples, CPU), RoundTable(samples, CPU)
    trainers = {
        "l2": DayGoalTrainer(new_manager(SMALL, samples.sizes), days, days, SMALL, CPU),
        "l3": ActionTrainer(new_executor(SMALL, 40), decisions, decisions, SMALL, CPU),
        "l4": WeightTrainer(new_coordinator(SMALL, 40), rounds, None, SMALL, CPU),
    }
    return {name: follow(t, 2, {"model": t.model}) for name, t in trainers.items()}


def shipped() -> dict[str, Any]:
    """The weights that come with the package, as the loader gives them."""
    files = {"l2_bc": L2_KIND, "l3_awr": L3_KIND, "l4_distill": L4_KIND}
    states = {name: load_network(SHIPPED / f"{name}.pt", kind).state_dict() for name, kind in files.items()}
    sums = {f"{m}/{k}": float(v.double().abs().sum()) for m, state in states.items() for k, v in state.items()}
    return {"weights": digests(states), "sums": sums}


TRAININGS: dict[str, Callable[[], dict[str, Any]]] = {
    "fish": fish, "hunt_ppo": hunt_ppo, "hunt_planner": hunt_planner,
    "hunt_moves": hunt_moves, "hunt_reports": hunt_reports, "market": market, "shipped": shipped,
}  # fmt: skip


def help_file(words: tuple[str, ...]) -> Path:
    return PINS / "help" / f"{'_'.join(words)}.txt"


def write(what: list[str]) -> None:
    if "help" in what or not what:
        (PINS / "help").mkdir(parents=True, exist_ok=True)
        for old in (PINS / "help").glob("*.txt"):
            old.unlink()
        for words, _ in commands():
            help_file(words).write_text(help_text(words))
    if not what or "trainings" in what or set(TRAININGS) & set(what):
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            for name in [name for name in TRAININGS if name in what] or TRAININGS:
                make = TRAININGS[name]
                (PINS / f"{name}.json").write_text(json.dumps({"machine": machine(), **make()}, indent=1) + "\n")


if __name__ == "__main__":
    write(sys.argv[1:])
