"""`marlab fish selfplay`: predator and shoal learn in turns, each against the other's newest and past networks.

All of it happens in the sea `intercept`, whose predator's limits the learned one has. The first opponent of every shoal
is that scripted predator, so a shoal that forgets it pays for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marlab.fish.measure.config import HELD_OUT_SEED
from marlab.fish.measure.policies import Policy, play
from marlab.fish.measure.probe import draw_seeds, greedy
from marlab.fish.sea.config import SeaConfig, decided
from marlab.fish.sea.dynamics import PredatorStep, SeaState
from marlab.fish.sea.learned import LearnedPredator, look, make_predator, obey, save_predator
from marlab.fish.sea.predators import nearest_prey, predator_step
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import named_sea
from marlab.fish.sea.world import FishWorld, Transition
from marlab.fish.training.networks import Frame, Trained, find_checkpoint, load_policy, net_for, save_policy
from marlab.fish.training.selfplay_config import SelfPlayConfig
from marlab.fish.training.train import LearnersWorld
from marlab.lab.config import Preset, to_dict
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.ppo.config import Activation, scheduled_lr
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.ppo import PPO
from marlab.lab.progress import Progress, stage
from marlab.lab.runs.checkpoint import CheckpointStore, Keep, building
from marlab.lab.runs.files import write_json
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import say

STALKING = 0.01
"""What a predator earns per step on top of a bite worth 1, if its prey is right before it."""


def blocks(arenas: int, opponents: int, newest: float) -> list[slice]:
    """Arenas of each opponent, oldest first; the newest (or only) one has the share `newest`, and at least one each."""
    rest = max(opponents - 1, round((1 - newest) * arenas)) if opponents > 1 else 0
    edges = [round(i * rest / max(1, opponents - 1)) for i in range(opponents)] + [arenas]
    return [slice(a, b) for a, b in pairwise(edges)]


class HunterWorld:
    """A sea as its predator lives it: rows [B, 1], frozen shoals, a reward of 1 for every fish that it eats."""

    def __init__(self, cfg: SeaConfig, arenas: int, shoals: Sequence[Policy], newest: float, seed: int, device: Any):
        self.choice = torch.zeros(arenas, dtype=torch.int64, device=device)
        self.world = FishWorld(
            cfg, arenas, seed=seed, device=device, hunter=lambda state: obey(state, cfg, self.choice)
        )  # fmt: skip
        self.cfg, self.shoals, self.parts = cfg, shoals, blocks(arenas, len(shoals), newest)

    @property
    def acting(self) -> Tensor:
        return ~self.world.waiting[:, None]

    def observe(self) -> Tensor:
        return look(self.world.state, self.cfg)[:, None]

    def step(self, actions: Tensor) -> Transition:
        self.choice.copy_(actions[:, 0])
        seen = self.world.observe()
        fish = torch.cat([shoal(seen[part]) for shoal, part in zip(self.shoals, self.parts)])
        resetting = self.world.waiting.clone()
        eaten = self.world.step(fish).terminated.sum(1)
        state, over = self.world.state, self.world.waiting
        prey = nearest_prey(state, self.cfg)
        close = (1 - prey.distance[:, 0] / self.cfg.predator_vision).clamp(min=0.0) * ~resetting
        left = state.alive.any(1)
        gain = eaten + STALKING * close
        return Transition(gain[:, None], (over & ~left)[:, None], (over & left)[:, None])


def mixed(steps: Sequence[PredatorStep], parts: Sequence[slice]) -> PredatorStep:
    """Another predator in every block of arenas; none of them carries a memory or has a pack."""

    def move(state: SeaState) -> SeaState:
        moved = [step(state.select(part)).predator for step, part in zip(steps, parts)]
        return state.with_predator(type(moved[0])(*(torch.cat(planes) for planes in zip(*moved))))

    return move


class SelfPlayTrainer:
    """Phases 0, 2, ... train a predator and phases 1, 3, ... a shoal; what they end with joins the pool."""

    def __init__(self, config: SelfPlayConfig) -> None:
        self.config, self.step, self.total = config, 0, config.total
        self.device = choose_device(config.device)
        self.rngs = Rngs(config.seed, self.device)
        self.cfg = decided(
            replace(named_sea("intercept"), num_fish=config.num_fish, include_neighbor_features=False), False
        )
        self.shape: tuple[tuple[int, ...], Activation, Frame] = (config.layers, "relu", "own")
        if config.shoal:
            first = load_policy(find_checkpoint(config.shoal), self.device)
            if first.sea.observation_size != self.cfg.observation_size:
                raise UserError(
                    f"{config.shoal} has {first.sea.observation_size} inputs; self-play needs a shoal of 11."
                )
            self.shape = first.hidden, first.activation, first.frame
            weights = first.net.state_dict()
        else:
            weights = self._shoal_net(self.rngs.torch("init shoal", "cpu")).state_dict()
        self.shoals: list[dict[str, Tensor]] = [{k: v.cpu().clone() for k, v in weights.items()}]
        self.predators: list[dict[str, Tensor]] = []
        self._begin_phase()

    # --- networks -------------------------------------------------------------------------------------------

    def _shoal_net(self, generator: torch.Generator | None = None) -> ActorCritic:
        hidden, activation, frame = self.shape
        return net_for(self.cfg, hidden, activation, generator, frame)

    def shoal_policy(self, weights: Mapping[str, Tensor]) -> Policy:
        return greedy(self._loaded(self._shoal_net(), weights))

    def hunter(self, weights: Mapping[str, Tensor]) -> LearnedPredator:
        return LearnedPredator(self._loaded(make_predator(self.config.layers), weights), self.config.layers, self.step)

    def _loaded(self, net: ActorCritic, weights: Mapping[str, Tensor]) -> ActorCritic:
        net.load_state_dict(dict(weights))
        return net.to(self.device).eval()

    # --- phases ---------------------------------------------------------------------------------------------

    @property
    def phase(self) -> int:
        return min(self.step, self.total - 1) // self.config.iterations

    def _begin_phase(self) -> None:
        """World and learner of the phase that `step` is in; the learner goes on from its side's last network."""
        config, seed = self.config, self.rngs.draw_seed("world")
        self.hunting = self.phase % 2 == 0
        self.view: HunterWorld | LearnersWorld
        if self.hunting:
            foes = [self.shoal_policy(weights) for weights in self.shoals]
            self.view = HunterWorld(self.cfg, config.num_envs, foes, config.newest, seed, self.device)
            self.world = self.view.world
            net = make_predator(config.layers, self.rngs.torch("init predator", "cpu"))
        else:
            steps = [predator_step(self.cfg), *(self.hunter(weights).step_in(self.cfg) for weights in self.predators)]
            mix = mixed(steps, blocks(config.num_envs, len(steps), config.newest))
            self.world = FishWorld(self.cfg, config.num_envs, seed=seed, device=self.device, hunter=mix)
            self.view, net = LearnersWorld(self.world, 1.0, survival=True), self._shoal_net()
        self.world.stagger(self.rngs.draw_seed("stagger"))
        before = self.predators if self.hunting else self.shoals
        if before:
            net.load_state_dict(before[-1])
        ppo = config.ppo if self.hunting else replace(config.ppo, batch_size=config.shoal_batch_size)
        self.ppo = PPO(net.to(self.device), ppo, self.rngs.torch("policy"))

    def iterate(self) -> Mapping[str, Any]:
        config = self.config
        progress = (self.step % config.iterations) / config.iterations
        rollout = self.ppo.collect(self.view, record=True)
        learned = self.ppo.update(rollout, scheduled_lr(config.ppo, progress), config.ppo.entropy_coef)
        if self.device.type == "cuda":
            self.world.refill()
        counted = self.world.pop_stats()
        metrics = {**learned, "selfplay/phase": float(self.phase), "selfplay/hunting": float(self.hunting)}
        if counted["episodes"]:
            metrics |= {"episode/survival": counted["survival_rate"], "episode/length": counted["episode_length"]}
        self.step += 1
        if self.step % config.iterations == 0:
            pool = self.predators if self.hunting else self.shoals
            pool.append({k: v.detach().cpu().clone() for k, v in self.ppo.net.state_dict().items()})
            if self.step < self.total:
                self._begin_phase()
        return metrics

    # --- saving ---------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "step": self.step, "config": to_dict(self.config), "shoals": self.shoals, "predators": self.predators,
            "ppo": self.ppo.state_dict(), "world": self.world.state_dict(), "rngs": self.rngs.state_dict(),
        }  # fmt: skip

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.step, self.shoals, self.predators = saved["step"], list(saved["shoals"]), list(saved["predators"])
        self._begin_phase()
        self.ppo.load_state_dict(saved["ppo"])
        self.world.load_state_dict(saved["world"])
        self.rngs.load_state_dict(saved["rngs"])


# --- the table ------------------------------------------------------------------------------------------------


@torch.no_grad()
def survival_table(
    shoals: Mapping[str, Policy],
    predators: Mapping[str, PredatorStep],
    cfg: SeaConfig,
    seeds: Sequence[int],
    device: Any,
    played: Callable[[], None] = lambda: None,
) -> dict[str, dict[str, list[float]]]:
    """Survival arena by arena, of every shoal against every predator, all on the same arenas; `played` is called after
    each pair."""
    start, _ = seeded_reset(seeds, cfg, device=device)
    table: dict[str, dict[str, list[float]]] = {shoal: {} for shoal in shoals}
    for shoal, policy in shoals.items():
        for name, hunt in predators.items():
            table[shoal][name] = play(start, policy, cfg, hunt=hunt).survival.tolist()
            played()
    return table


def exploitability(means: Mapping[str, Mapping[str, float]]) -> tuple[dict[str, float], dict[str, float]]:
    """How much worse than the best of the table each shoal and each predator is against its own worst opponent."""
    worst = {shoal: min(row.values()) for shoal, row in means.items()}
    names = next(iter(means.values()))
    best = {name: max(row[name] for row in means.values()) for name in names}
    return (
        {shoal: max(worst.values()) - value for shoal, value in worst.items()},
        {name: value - min(best.values()) for name, value in best.items()},
    )


# --- the command ----------------------------------------------------------------------------------------------


def selfplay(
    config: SelfPlayConfig, options: RunOptions | None = None, *, preset: Preset | None = None,
    command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Train in a run directory, then play every shoal against every predator."""
    with stage("preparing", quiet):
        trainer = SelfPlayTrainer(config)
        run = Run.open("fish", config, options, preset=preset, command=command)
    with run:
        run.set_device(trainer.device)
        store = CheckpointStore(run.checkpoints, SelfPlayConfig.KIND, "selfplay_{step}.pt", Keep(last=2))
        if run.budget.limited:
            run.budget.expect("table", time_of_a_pair(trainer) * (config.rounds + 1) ** 2)
        done = drive(
            trainer, run, store, save_every=config.iterations, unit="iterations", show=("episode/survival",),
            quiet=quiet, stay=True,
        )  # fmt: skip
        if not run.signalled:
            with run.budget.part("table"):
                finish(trainer, run, done, quiet)
    return run


def draw_again(run: Run, config: SelfPlayConfig, quiet: bool) -> None:
    """The table once more, from the newest checkpoint."""
    trainer = SelfPlayTrainer(replace(config, device="auto"))
    checkpoint, _ = CheckpointStore(run.checkpoints, SelfPlayConfig.KIND, "selfplay_{step}.pt").load_latest()
    if checkpoint is None:
        raise UserError(f"{run.path} has no checkpoint yet, so there is nothing to draw.")
    with building(checkpoint.path, "the state of this training"):
        trainer.load_state_dict(checkpoint.state)
    finish(trainer, run, trainer.step >= trainer.total, quiet)


def time_of_a_pair(trainer: SelfPlayTrainer) -> float:
    """Seconds that one cell of the table takes."""
    began = time.monotonic()
    seeds = draw_seeds(np.random.default_rng(HELD_OUT_SEED), trainer.config.eval_arenas)
    shoal, predator = trainer.shoal_policy(trainer.shoals[0]), predator_step(trainer.cfg)
    survival_table({"": shoal}, {"": predator}, trainer.cfg, seeds, trainer.device)
    return time.monotonic() - began


def finish(trainer: SelfPlayTrainer, run: Run, done: bool, quiet: bool) -> None:
    """The table, its files, results and the verdict."""
    if len(trainer.shoals) < 2:  # no side has answered the other yet
        run.set_verdict(say("fish.not_judged"), say("lab.go_on"))
        return
    config = trainer.config
    seeds = draw_seeds(np.random.default_rng(HELD_OUT_SEED), config.eval_arenas)
    hunters = {f"predator {i}": trainer.hunter(weights) for i, weights in enumerate(trainer.predators, start=1)}
    steps = {"intercept": predator_step(trainer.cfg), **{n: h.step_in(trainer.cfg) for n, h in hunters.items()}}
    shoals = {f"shoal {i}": trainer.shoal_policy(weights) for i, weights in enumerate(trainer.shoals)}
    with Progress("playing the table", total=len(shoals) * len(steps), unit="pairs", quiet=quiet) as bar:
        table = survival_table(shoals, steps, trainer.cfg, seeds, trainer.device, bar.advance)
    means = {s: {p: float(np.mean(v)) for p, v in row.items()} for s, row in table.items()}
    of_shoals, of_predators = exploitability(means)
    write_json(
        run.path / "selfplay.json",
        {"survival": table, "means": means, "exploitability": {**of_shoals, **of_predators}, "arenas": seeds},
    )  # fmt: skip
    for name, hunter in hunters.items():
        save_predator(hunter, run.path / f"{name.replace(' ', '_')}.pt")
    hidden, activation, frame = trainer.shape
    for number, weights in enumerate(trainer.shoals):
        net = trainer._loaded(trainer._shoal_net(), weights).cpu()
        trained = Trained(net, trainer.cfg, hidden, activation, trainer.step, frame)
        save_policy(trained, run.path / f"shoal_{number}.pt")
    rounds = [answered(table, number) for number in range(1, len(shoals))]
    drop, back = rounds[0]
    last = f"shoal {len(shoals) - 1}"
    worst = min(means[last], key=lambda name: means[last][name])
    note = f"{config.eval_arenas} x {config.num_fish} held-out fish"
    run.add_results({
        f"{what}{'' if number == 1 else f', round {number}'}": {**each, "unit": "share of fish, paired", "note": note}
        for number, pair in enumerate(rounds, start=1)
        for what, each in zip(("learned predator minus intercept", "next shoal wins back"), pair)
    })  # fmt: skip
    run.add_results({
        "last shoal against the worst predator": {
            **_interval(table[last][worst]), "unit": "share of fish", "note": f"{worst}, {note}",
        },
    })  # fmt: skip
    run.set_verdict(
        say(
            "fish.learned_predator", lost=-drop["value"], lost_interval=(-drop["high"], -drop["low"]),
            back=back["value"], back_interval=(back["low"], back["high"]), arenas=config.eval_arenas,
        ),
        say("fish.next_table" if done else "lab.go_on"),
    )  # fmt: skip


def answered(table: Mapping[str, Mapping[str, Sequence[float]]], number: int) -> tuple[dict[str, float], ...]:
    """What the predator of a round changes for the shoal that it learned to hunt, and what the next shoal wins back."""
    shoal, predator = f"shoal {number - 1}", f"predator {number}"
    return _pair(table, shoal, "intercept", predator), _pair(table, shoal, predator, predator, 1)


def _interval(values: Sequence[float]) -> dict[str, float]:
    mean, low, high = (float(v) for v in mean_interval(np.array(values)))
    return {"value": mean, "low": low, "high": high}


def _pair(
    table: Mapping[str, Mapping[str, Sequence[float]]], shoal: str, before: str, after: str, later: int = 0
) -> dict[str, float]:
    """Survival of (the `later`-th next) shoal against `after` minus that of `shoal` against `before`, paired."""
    then = f"shoal {int(shoal.split()[-1]) + later}"
    return _interval([a - b for a, b in zip(table[then][after], table[shoal][before])])
