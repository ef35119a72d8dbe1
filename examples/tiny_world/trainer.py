"""The world that PPO drives, the training, and what the trained policy is measured by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from examples.tiny_world import rules
from examples.tiny_world.config import TinyConfig
from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.ppo.choices import best
from marlab.lab.ppo.config import scheduled_lr
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.ppo.ppo import PPO
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import say


class Step(NamedTuple):
    reward: Tensor  # [B, 2]
    terminated: Tensor  # [B, 2] bool: they met
    truncated: Tensor  # [B, 2] bool: time was up


class TinyWorld:
    """The contract of `marlab.lab.ppo.ppo.World`: after its last step a ring shows where it ended, and the next step
    ignores its moves and brings the new start (it resets one step late)."""

    def __init__(self, config: TinyConfig, generator: torch.Generator) -> None:
        self.config, self.generator = config, generator
        self.state = rules.start(config.rings, config.n_cells, generator)
        self.fewest = rules.fewest_steps(self.state, config.n_cells)  # [B] of the episode's start
        self.over = torch.zeros_like(self.state.time, dtype=torch.bool)  # [B]
        self.sums = torch.zeros(3, device=generator.device)  # episodes, their steps, the fewest steps possible

    @property
    def acting(self) -> Tensor:
        return ~self.over[:, None].expand(-1, 2)

    def observe(self) -> Tensor:
        return rules.observe(self.state, self.config.n_cells)

    def step(self, moves: Tensor) -> Step:
        config, begins = self.config, self.over
        played = rules.step(self.state, moves, config.n_cells)
        fresh = rules.start(config.rings, config.n_cells, self.generator)
        self.state = rules.choose(begins, fresh, played)
        self.fewest = torch.where(begins, rules.fewest_steps(fresh, config.n_cells), self.fewest)
        met = rules.met(self.state) & ~begins
        late = ~met & (self.state.time >= config.time_limit_steps)
        self.over = met | late
        self.sums += torch.stack([torch.ones_like(self.fewest), self.state.time, self.fewest])[:, self.over].sum(-1)
        reward = torch.where(begins, 0.0, torch.where(met, 1.0, -0.05))
        return Step(*(x[:, None].expand(-1, 2) for x in (reward, met, late)))

    def pop_stats(self) -> dict[str, float]:
        """Means over the episodes that ended since the last call; nothing where none did."""
        episodes, steps, fewest = self.sums.tolist()
        self.sums.zero_()
        if episodes == 0:
            return {}
        return {"episode/count": episodes, "episode/length": steps / episodes, "episode/possible": fewest / episodes}

    def state_dict(self) -> dict[str, Any]:
        return {"state": list(self.state), "fewest": self.fewest, "over": self.over, "sums": self.sums}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.state = rules.State(*saved["state"])
        self.fewest, self.over, self.sums = saved["fewest"], saved["over"], saved["sums"]


class TinyTrainer:
    """`marlab.lab.runs.trainer.Trainer`: one rollout and its update a step; `drive` does the rest."""

    def __init__(self, config: TinyConfig) -> None:
        self.config, self.step, self.total = config, 0, config.iterations
        self.device = choose_device(config.device)
        self.rngs = Rngs(config.seed, self.device)
        self.world = TinyWorld(config, self.rngs.torch("world"))
        net = ActorCritic(config.n_cells, [rules.MOVES], config.hidden, generator=self.rngs.torch("init", "cpu"))
        self.ppo = PPO(net.to(self.device), config.ppo, self.rngs.torch("policy"))

    def iterate(self) -> Mapping[str, Any]:
        ppo = self.config.ppo
        rollout = self.ppo.collect(self.world)
        learned = self.ppo.update(rollout, scheduled_lr(ppo, self.step / self.total), ppo.entropy_coef)
        self.step += 1
        return {**learned, **self.world.pop_stats()}

    def state_dict(self) -> dict[str, Any]:
        parts = {"ppo": self.ppo.state_dict(), "world": self.world.state_dict(), "rngs": self.rngs.state_dict()}
        return {"step": self.step, **parts}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.step = saved["step"]
        self.ppo.load_state_dict(saved["ppo"])
        self.world.load_state_dict(saved["world"])
        self.rngs.load_state_dict(saved["rngs"])


@torch.no_grad()
def steps_too_many(net: ActorCritic, config: TinyConfig, rings: int = 1000) -> Tensor:
    """[rings]: steps beyond the fewest possible until they meet, on starts that training did not draw."""
    generator = torch.Generator(next(net.parameters()).device).manual_seed(20_000 + config.seed)
    state = rules.start(rings, config.n_cells, generator)
    fewest = rules.fewest_steps(state, config.n_cells)
    for _ in range(config.time_limit_steps):
        after = rules.step(state, best(net.logits(rules.observe(state, config.n_cells)), net.heads), config.n_cells)
        state = rules.choose(rules.met(state), state, after)
    return state.time - fewest


def train(
    config: TinyConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Train in a run directory, measure, and keep the result with its interval."""
    torch.set_num_threads(1)  # networks as small as these are slower on more
    trainer = TinyTrainer(config)  # refuses a missing GPU before anything is written
    with Run.open("tiny", config, options, preset=preset, command=command) as run:
        store = CheckpointStore(run.checkpoints, "tiny", "model_{step}.pt", Keep(last=2))
        drive(trainer, run, store, save_every=10, unit="iterations", show=("episode/length",), quiet=quiet)
        mean, low, high = map(float, mean_interval(steps_too_many(trainer.ppo.net, config).cpu()))
        note = "1,000 new starts; 0 is the best possible"
        run.add_results({"steps too many": {"value": mean, "low": low, "high": high, "unit": "steps", "note": note}})
        reached = "lab.at_the_best" if mean == 0 else "lab.short_of_best"
        measured = {"what": "The number of steps beyond the fewest possible", "size": "1,000 new starts"}
        run.set_verdict(say(reached, value=mean, interval=(low, high), best=0, **measured), say("lab.look"))
    return run
