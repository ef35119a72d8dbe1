"""Questions that the hunt's lab note left open, as trainings: docs/record/hunt-questions.md tells what came of them.

    python benchmarks/hunt_answers.py --device cuda --seconds 450 --output-dir answers prepare losses world planning
    python benchmarks/hunt_answers.py --device cuda --seconds 450 --output-dir answers buffer teams fall models
    python benchmarks/hunt_answers.py --tiny --output-dir answers fall --cells original   # a minute on a CPU
    python benchmarks/hunt_answers_figures.py --output-dir answers --images docs/images

Every cell is a training on 4x4 of some seeds side by side, small enough for minutes, and one file NAME.json with what
it logged; a cell that is there is not trained again, and one that the time cuts is kept as far as it came. Several
processes can share the cells (--part 0/4, 1/4, ...) once `prepare` has made the models that trainings begin with.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from hunt_answers_models import MODELS, prepare, vae_losses
from torch import Tensor, nn

import marlab.hunt.selfplay.trainer as training
from marlab.hunt.data.dataset import Dataset
from marlab.hunt.game.build import make_game
from marlab.hunt.museum.training import as_the_original, rows_after_exit
from marlab.hunt.planner.agent import KIND, SHIPPED, load_hop
from marlab.hunt.planner.config import PlanConfig
from marlab.hunt.planner.nets import PlayerNets
from marlab.hunt.planner.replay import Experience, Replay
from marlab.hunt.players.guests import GuestConfig
from marlab.hunt.players.policy import Team
from marlab.hunt.players.rollout import play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Role, parse_roles, team_members
from marlab.hunt.selfplay.config import HopTrainConfig, LearnConfig
from marlab.hunt.selfplay.play import SelfPlay
from marlab.hunt.world_model.model import load_world_model
from marlab.lab.device import choose_device
from marlab.lab.runs.checkpoint import save_checkpoint
from marlab.lab.search.config import SearchConfig

KEPT = ("episode/reward", "plan/behaviour_entropy", "moa/ce_online", "moa/floor", "moa/excess", "moa/top1", "moa/top3",
        "losses/value")  # fmt: skip
"""What is kept of every seed and iteration, under its last word."""
TEAMS = ("3NS", "3NH", "3RAND", "NS+2NH", "2NS+NH", "NS+NH+RAND", "2NS+RAND")
SEATS = 4


@dataclass(frozen=True)
class Cell:
    """A training: its settings, what is done to the finished trainer, and what holds while it trains."""

    config: HopTrainConfig
    adjust: Callable[[training.HopTrainer], None] = lambda trainer: None
    during: Callable[[], Any] = nullcontext
    seats: tuple[int, ...] = ()  # the learner's seat of every seed, where only one learns


def main() -> None:
    a = parse()
    torch.set_num_threads(1)
    a.output_dir.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + a.seconds
    data: list[Dataset] = []
    for question in a.questions:
        if question == "prepare":
            prepare(a, until)
        elif question == "losses":
            vae_losses(a, until)
        elif question == "planning":
            planning(a)
        else:
            cells = QUESTIONS[question](a)
            chosen = [name for name in cells if not a.cells or name in a.cells]
            part, parts = map(int, a.part.split("/"))
            for name in chosen[part::parts]:
                file = a.output_dir / f"{question}_{name}.json"
                if not file.exists() and time.monotonic() < until - 30:
                    file.write_text(json.dumps(train(cells[name], file.with_suffix(".pt"), data, a, until)))
                    print(f"{question} {name}: {told(json.loads(file.read_text()))}", flush=True)


def train(cell: Cell, weights: Path, data: list[Dataset], a: argparse.Namespace, until: float) -> dict[str, Any]:
    """Train until the end or until the time is up; keep the agents and what every seed earned in every iteration."""
    began, config = time.monotonic(), cell.config
    if config.load_data is not None:
        if not data:
            data.append(MODELS.dataset(a))
        training.load_dataset = lambda path, game=None: data[0]  # type: ignore[assignment]
    with cell.during():
        trainer = training.HopTrainer(config)
        cell.adjust(trainer)
        kept: list[dict[str, list[float | None]]] = []
        while trainer.step < trainer.total and time.monotonic() < until - 10:
            row = trainer.iterate()
            own = list(KEPT)
            values = {name: [row.get(f"seed_{seed}/{name}") for seed in trainer.seeds] for name in own}
            if cell.seats:
                values["learner"] = [
                    row.get(f"seed_{seed}/episode/reward_player_{seat + 1}")
                    for seed, seat in zip(trainer.seeds, cell.seats)
                ]
            kept.append({name.split("/")[-1]: value for name, value in values.items()})
    save_checkpoint(weights, KIND, trainer.step, {"agents": trainer.agents()})
    curves = {name: [row[name] for row in kept] for name in (kept[0] if kept else ())}  # [iterations][seeds]
    return {"iterations": trainer.step, "of": trainer.total, "seconds": round(time.monotonic() - began, 1),
            "seats": list(cell.seats), "curves": curves}  # fmt: skip


def told(found: dict[str, Any]) -> str:
    """A line about a training: what it earned at its best and at its end."""
    earned = found["curves"].get("learner") or found["curves"].get("reward") or []
    rows = [[x for x in row if x is not None] for row in earned]
    means = [sum(row) / len(row) for row in rows if row]
    tail = max(3, len(means) // 10)
    end = sum(means[-tail:]) / max(1, len(means[-tail:]))
    return f"{found['iterations']}/{found['of']} in {found['seconds']} s, best {max(means or [0]):.2f}, end {end:.2f}"


# --- the common settings ------------------------------------------------------------------------------------------


def small(a: argparse.Namespace, iterations: int, **changes: Any) -> HopTrainConfig:
    """A training of minutes, as in the museum: 64 games a seed, two trees of 16 simulations, no imagined guests."""
    games, steps = (8, 6) if a.tiny else (64, 12)
    plan = PlanConfig(trees=2, search=SearchConfig(simulations=4 if a.tiny else 16))
    learn = LearnConfig(
        updates=20, batch_size=512, moa_updates=8, moa_batch_size=128, warm_updates=5 if a.tiny else 1500
    )
    config = HopTrainConfig(
        variant="hop", seeds="0..1" if a.tiny else a.seeds, num_envs=games, steps=steps, plan=plan, learn=learn,
        device=a.device, record=a.device != "cpu", guests=GuestConfig(share=0.0), load_data=Path("memory"),
        load_moa=MODELS.file(a, "hunt"),
    )  # fmt: skip
    count = round((2 if a.tiny else iterations) * a.length)
    config = replace(config, total_steps=games * steps * count)
    return replace(config, **changes)


# --- what a dense world model does --------------------------------------------------------------------------------


def world(a: argparse.Namespace) -> dict[str, Cell]:
    """Trees, and one step, in the game itself, in a structured world model and in a dense one."""
    cells = {}
    for variant, short in (("hopplus-mcts-wm", "trees"), ("hopplus", "one-step")):
        for model in ("true", "structured", "dense"):
            config = small(a, 60, variant=variant, load_moa=MODELS.file(a, "latent"), exact_step=model == "true")
            if model != "true":
                config = replace(config, load_wm=MODELS.file(a, model), record=False)
            config = replace(config, learn=replace(config.learn, lessons=LearnConfig.lessons))
            cells[f"{short}_{model}"] = Cell(config)
    return cells


@torch.no_grad()
def planning(a: argparse.Namespace) -> None:
    """The agent that comes with the package, which was trained in the game itself, planning in each of the models."""
    agents = load_hop(SHIPPED / "hop_4x4.pt")
    game, episodes = make_game(agents.game, device=choose_device(a.device)), 8 if a.tiny else 300
    for model in ("true", "structured", "dense"):
        file = a.output_dir / f"planning_{model}.json"
        if file.exists():
            continue
        mind = agents.mind
        mind.config = replace(mind.config, variant="hopplus-mcts-wm", exact_step=model == "true")
        if model != "true":
            mind.world = [load_world_model(MODELS.file(a, model), agents.game, game.device)]
        found: dict[str, list[float]] = {"self-play": [], "among NS+2NH": []}
        for seed in agents.seeds:
            among = replace(agents, mind=mind).agent(game, seed, seats=[0])
            rules = RulePlayers(game, parse_roles("NS,NS,NH,NH"))
            for name, policy in (
                ("self-play", replace(agents, mind=mind).agent(game, seed)),
                ("among NS+2NH", Team(game, [among, rules], [0, 1, 1, 1])),
            ):
                chance = torch.Generator(device=game.device).manual_seed(20_260_303)
                reward = play(game, policy, episodes, chance).reward
                found[name].append(float(reward.mean() if name == "self-play" else reward[:, 0].mean()))
        file.write_text(json.dumps(found))
        print(f"planning in {model}: {found}", flush=True)


# --- the memory of what others did --------------------------------------------------------------------------------


def buffer(a: argparse.Namespace) -> dict[str, Cell]:
    """Models of others that learn from all steps of those who are there, or from what the original kept."""
    config = small(a, 80)
    return {
        "mended": Cell(config),
        "rows-after-exit": Cell(config, during=rows_after_exit),
        "successes-of-player-1": Cell(config, adjust=successes_of_player_one),
        "both": Cell(config, adjust=successes_of_player_one, during=rows_after_exit),
    }


class SuccessReplay(Replay):
    """A replay with a second memory beside it, of the steps of players who caught something."""

    def __init__(self, replay: Replay) -> None:
        self.__dict__ = replay.__dict__
        self.successes = Replay(replay.groups, replay.capacity, replay.store.select((0, 0)))

    def add(self, group: Tensor, steps: Experience) -> None:
        super().add(group, steps)
        caught = steps.value > 0
        self.successes.add(group[caught], steps.select(caught))


def successes_of_player_one(trainer: training.HopTrainer) -> None:
    """Models of others see only players who caught something, and only those of player 1 learn."""
    replay = trainer.replay = SuccessReplay(trainer.replay)
    learner, n = trainer.learner, trainer.game.players
    learn = learner.learn_others

    def one_observer(_: Replay, offline: Experience | None, lr: float) -> dict[str, Tensor]:
        if not bool((replay.successes.written > 0).all()):
            return {}
        models = [nets.others for nets in (learner.fast, learner.slow) if nets.others is not None]
        before = [[p.detach().clone() for p in one.moa.parameters()] for one in models]
        losses = learn(replay.successes, offline, lr)
        with torch.no_grad():
            for one, old in zip(models, before):
                for p, was in zip(one.moa.parameters(), old):
                    others = torch.arange(len(p), device=p.device) % n != 0
                    p[others] = was[others]
        return losses

    learner.learn_others = one_observer  # type: ignore[method-assign]


# --- one learner among rule-based players -------------------------------------------------------------------------


def teams(a: argparse.Namespace) -> dict[str, Cell]:
    """One learner among three rule-based players, every team and every seat side by side as seeds of one training."""
    pairs = [(team, seat) for team in TEAMS for seat in range(SEATS)]
    seats = tuple(seat for _, seat in pairs)
    count = f"0..{len(pairs) - 1}"
    cells = {}
    for variant, models in (("hop", "hunt"), ("hopplus-mcts", "latent"), ("hopplus", "latent")):
        config = small(a, 60, variant=variant, load_moa=MODELS.file(a, models), agent_roles="HOP,NH,NH,NH")
        if variant == "hopplus":
            config = replace(config, load_wm=MODELS.file(a, "structured"), record=False)
        cells[variant] = Cell(
            replace(config, seeds=count, num_envs=4 if a.tiny else 48), adjust=lambda t: seated(t, pairs), seats=seats
        )
    return cells


def seated(trainer: training.HopTrainer, pairs: list[tuple[str, int]]) -> None:
    """Seed k is the learner of pair k: the team it plays among, and its seat."""
    play, device, n = trainer.play, trainer.game.device, trainer.game.players
    rows = [_roles(team, seat) for team, seat in pairs]
    each = play.games
    rules = trainer.rules
    assert rules is not None

    def tensor(read: Callable[[Role], Any]) -> Tensor:
        return torch.tensor([[read(role) for role in row] for row in rows], device=device).repeat_interleave(each, 0)

    rules._kind, rules._value = tensor(lambda role: int(role.kind)), tensor(lambda role: role.value)
    rules._reverse = tensor(lambda role: role.reverse)
    play.rule_memory = rules.begin(len(pairs) * each, play.generator)
    mine = torch.zeros(len(pairs), n, device=device)
    mine[torch.arange(len(pairs)), torch.tensor([seat for _, seat in pairs])] = 1.0
    trainer.learner._learning = mine
    play.learns = mine.bool().repeat_interleave(each, 0)


def _roles(team: str, seat: int) -> list[Role]:
    """Who sits where; the learner's own entry is never asked."""
    others = parse_roles(",".join(team_members(team)))
    return [*others[:seat], others[0], *others[seat:]]


def _act_by_game(self: SelfPlay, view: Any, plan: Any) -> tuple[Tensor, Tensor]:
    """`SelfPlay._act` with other learning seats in every game."""
    seats = self.learns
    rules, self.rules = self.rules, None
    policy, actions = _ACT(self, view, plan)
    self.rules = rules
    if rules is None:
        return policy, actions
    known = rules.probabilities(view, self.rule_memory)
    theirs, self.rule_memory = rules.act(view, self.rule_memory, self.generator)
    return torch.where(seats.unsqueeze(-1), policy, known), torch.where(seats, actions, theirs)


_ACT = SelfPlay._act
SelfPlay._act = _act_by_game  # type: ignore[method-assign]


# --- rise, then fall: what causes it ------------------------------------------------------------------------------


def fall(a: argparse.Namespace) -> dict[str, Cell]:
    """The original's habits, each mended alone, and with one module at a time that does not learn."""
    today = small(a, 126)
    old = as_the_original(today)
    search, learn = old.plan.search, old.learn
    normalised = replace(search, normalise=today.plan.search.normalise)
    mended = {
        "replay": replace(old, learn=replace(learn, replay=today.learn.replay)),
        "slow-weights": replace(old, learn=replace(learn, follow=today.learn.follow)),
        "scaled-beta": replace(old, plan=replace(old.plan, legacy_beta=0.0, target="improved", search=normalised)),
        "full-q": replace(old, plan=replace(old.plan, search=replace(search, legacy_q=False))),
        "falling-rate": replace(old, learn=replace(learn, final_learning_rate=today.learn.final_learning_rate)),
        "turned-boards": replace(old, learn=replace(learn, symmetries=True)),
    }
    return {
        "original": Cell(old),
        "today": Cell(today),
        "frozen-others": Cell(old, adjust=freeze_others),
        "frozen-prior": Cell(old, adjust=lambda t: freeze_half(t, "prior")),
        "frozen-value": Cell(old, adjust=lambda t: freeze_half(t, "value")),
        "frozen-all": Cell(old, adjust=freeze_all),
        **{f"mended-{name}": Cell(config) for name, config in mended.items()},
    }


def freeze_others(trainer: training.HopTrainer) -> None:
    trainer.learner.learn_others = lambda *_: {}  # type: ignore[method-assign]


def freeze_all(trainer: training.HopTrainer) -> None:
    """Nobody learns after the warm start: what is left of a curve is how games that began together drift apart."""
    freeze_others(trainer)
    trainer.learner.learn_players = lambda *_: {}  # type: ignore[method-assign]


class HalfFrozen(nn.Module):
    """Prior of one network and value of another; what goals add to both is carried side by side."""

    def __init__(self, prior: PlayerNets, value: PlayerNets) -> None:
        super().__init__()
        self.prior, self.value, self.copies = prior, value, prior.copies

    def goal_input(self, goals: Tensor) -> Tensor | None:
        parts = [nets.goal_input(goals) for nets in (self.prior, self.value)]
        return None if parts[0] is None else torch.cat([x for x in parts if x is not None], -1)

    def forward(self, rows: Tensor, time: Tensor, goal_input: Tensor | None) -> tuple[Tensor, Tensor]:
        first, second = (None, None) if goal_input is None else goal_input.chunk(2, -1)
        return self.prior(rows, time, first)[0], self.value(rows, time, second)[1]


def freeze_half(trainer: training.HopTrainer, what: str) -> None:
    """Plan with the prior (or the value) as it is after the warm start, and the other half as it learns."""
    trainer.warm_up()
    slow = trainer.learner.slow.players
    fixed = copy.deepcopy(slow).requires_grad_(False)
    pair = (fixed, slow) if what == "prior" else (slow, fixed)
    trainer.planner.nets = HalfFrozen(*pair)  # type: ignore[assignment]


# --- do bad models of others explain it? --------------------------------------------------------------------------


def models(a: argparse.Namespace) -> dict[str, Cell]:
    """The original's habits and today's, each with good, spoilt and no models of others."""
    cells = {}
    for habits in ("original", "today"):
        base = small(a, 126)
        base = as_the_original(base) if habits == "original" else base
        nobody = replace(base, load_moa=None)
        spoilt = replace(base, learn=replace(base.learn, legacy_double_softmax=True))
        cells |= {
            f"{habits}_spoilt": Cell(spoilt),
            f"{habits}_random": Cell(replace(nobody, variant="mcts-random")),
            f"{habits}_self": Cell(replace(nobody, variant="mcts-self")),
        }
    cells["today_frozen"] = Cell(small(a, 126), adjust=freeze_others)
    return cells


QUESTIONS: dict[str, Callable[[argparse.Namespace], dict[str, Cell]]] = {
    "world": world, "buffer": buffer, "teams": teams, "fall": fall, "models": models,
}  # fmt: skip


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="+", choices=("prepare", "losses", "planning", *QUESTIONS))
    parser.add_argument("--cells", nargs="*", help="only these trainings")
    parser.add_argument("--part", default="0/1", help="which of the trainings, such as 1/4")
    parser.add_argument("--seeds", default="0..4")
    parser.add_argument("--length", type=float, default=1.0, help="times as many iterations")
    parser.add_argument("--rows", type=int, default=107_010, help="offline rows")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop in time for this")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tiny", action="store_true", help="to see that it runs")
    parser.add_argument("--output-dir", type=Path, default=Path("answers"))
    arguments = parser.parse_args()
    if arguments.tiny:
        arguments.rows = 4000
    return arguments


if __name__ == "__main__":
    main()
