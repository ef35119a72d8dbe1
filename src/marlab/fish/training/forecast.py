"""How long a training will take, said before it starts: a few steps and gradients are timed and multiplied.

The original learned from one fish per arena. Here every fish is a sample, so its own command costs some 25 times as
many gradients; whoever pastes it hears so, and how to have an answer in a quarter of an hour.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from marlab.fish.envs.frame import Scene, paint
from marlab.fish.measure.compare import ARENAS, LADDER, ladder
from marlab.fish.measure.policies import Policy, moments
from marlab.fish.measure.probe import greedy
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.constants import EPISODE_STEPS
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.world import FishWorld
from marlab.fish.training import assemble
from marlab.fish.training.config import FishTrainConfig
from marlab.lab.config import altered
from marlab.lab.film import can_film
from marlab.lab.ppo.nets import ActorCritic
from marlab.lab.progress import duration
from marlab.lab.runs.budget import WORTH_SAYING_S, Budget

QUARTER_S = 15 * 60.0
WORTH_ASKING_S = 10 * 60.0
"""Whoever sits at a terminal is asked before what takes longer."""
FEW = 3
"""Steps and gradients that are timed."""
TIMED_STEPS = 10
SMALL_WORK = 5e11
"""Multiplications of a training that is over before anybody asks; it is not timed."""
LONG_ITERATION_S = 10.0
FEWEST_ARENAS = 16


def time_of_an_episode(policy: Policy, cfg: SeaConfig, arenas: int, device: torch.device) -> float:
    """Seconds that a batch of arenas takes, from a few of its steps."""
    start, _ = seeded_reset(list(range(arenas)), cfg, device=device)
    marks = []
    for moment in moments(start, policy, cfg, TIMED_STEPS + 1):
        moment.state.alive.any().item()  # waits for the device
        marks.append(time.monotonic())
    return (marks[-1] - marks[0]) / TIMED_STEPS * EPISODE_STEPS


@dataclass(frozen=True)
class Pace:
    """What the parts of a training take on this machine, in seconds."""

    step: float  # all arenas, with as many fish as the fullest phase has, and the policy's choice
    gradient: float  # one minibatch
    probe: float
    ending: float

    def iteration(self, config: FishTrainConfig, fish: int) -> float:
        fullest = max(phase.num_fish for phase in config.phases)
        return config.ppo.n_steps * self.step * fish / fullest + gradients(config, fish) * self.gradient

    def iterations(self, config: FishTrainConfig) -> float:
        return sum(p.iterations * self.iteration(config, p.num_fish) for p in config.phases)

    def done_in(self, config: FishTrainConfig, seconds: float) -> int:
        """Iterations, with their probes, that end within so many seconds; early phases may have fewer fish."""
        for phase in config.phases:
            each = self.iteration(config, phase.num_fish)
            for iteration in range(phase.first, phase.last + 1):
                seconds -= each
                if seconds < 0:
                    return iteration - 1
                seconds -= self.probe * config.measure.probe_due(iteration)
        return config.iterations

    def whole(self, config: FishTrainConfig) -> float:
        return self.iterations(config) + probes(config) * self.probe + self.ending


def gradients(config: FishTrainConfig, fish: int) -> int:
    """Gradient steps of one iteration."""
    rows = config.ppo.n_steps * config.num_envs * (1 if config.rules.action_mode == "broadcast" else fish)
    return config.ppo.n_epochs * math.ceil(rows / config.ppo.batch_size)


def probes(config: FishTrainConfig) -> int:
    return sum(config.measure.probe_due(iteration) for iteration in range(1, config.iterations + 1))


def work(config: FishTrainConfig, net: ActorCritic) -> float:
    """Multiplications of all gradients."""
    weights = sum(p.numel() for p in net.parameters())
    steps = sum(p.iterations * gradients(config, p.num_fish) for p in config.phases)
    return 3.0 * steps * config.ppo.batch_size * weights


def pace(config: FishTrainConfig, net: ActorCritic, device: torch.device) -> Pace | None:
    """Measured in a second or two; None for a training that is short anyway, and on a GPU, where all are."""
    if device.type != "cpu" or work(config, net) < SMALL_WORK:
        return None
    cfg = assemble.sea_config(config, max(phase.num_fish for phase in config.phases))
    return Pace(_step(config, cfg, net), _gradient(config, cfg, net), _probe(config, net), _ending(config, net))


def _best_of(work: Callable[[], object]) -> float:
    """Seconds of one piece of work: the quickest of a few, after one that warms up; a busy machine is slower."""
    seconds = []
    for _ in range(FEW + 1):
        began = time.monotonic()
        work()
        seconds.append(time.monotonic() - began)
    return min(seconds[1:])


def _step(config: FishTrainConfig, cfg: SeaConfig, net: ActorCritic) -> float:
    world = FishWorld(cfg, config.num_envs)

    @torch.no_grad()
    def step() -> None:
        obs = world.observe()
        net.value(obs)
        world.step(net.logits(obs).argmax(-1))

    return _best_of(step)


def _gradient(config: FishTrainConfig, cfg: SeaConfig, net: ActorCritic) -> float:
    mine = copy.deepcopy(net)
    optimiser = torch.optim.Adam(mine.parameters(), lr=0.0)
    obs = torch.zeros(config.ppo.batch_size, cfg.observation_size)

    def descend() -> None:
        optimiser.zero_grad()
        (mine.logits(obs).log_softmax(-1).mean() + mine.value(obs).mean()).backward()
        optimiser.step()

    return _best_of(descend)


def _films(films: int, steps: int, cfg: SeaConfig) -> float:
    if films <= 0 or not can_film():
        return 0.0
    start, _ = seeded_reset([0], cfg)
    frame = _best_of(lambda: paint(Scene.of(start, 0)))
    return 2.0 * films * (steps + 1) * frame  # encoding takes as long as painting


def _probe(config: FishTrainConfig, net: ActorCritic) -> float:
    measure = config.measure
    if not probes(config):
        return 0.0
    cfg = assemble.sea_config(config, measure.eval_multi_fish)
    arenas = measure.multi_eval_probe_episodes + measure.multi_eval_fixed_episodes
    films = _films(measure.tail_replay_count, measure.video_max_steps, cfg)
    return time_of_an_episode(greedy(net), cfg, arenas, torch.device("cpu")) + films


def _ending(config: FishTrainConfig, net: ActorCritic) -> float:
    measure, cpu = config.measure, torch.device("cpu")
    if measure.skip_final_eval:
        return 0.0
    cfg = assemble.sea_config(config, max(1, measure.eval_multi_fish))
    arenas = min(ARENAS, measure.eval_multi_episodes)
    batch = 2 * time_of_an_episode(greedy(net), cfg, arenas, cpu)  # the last model and the best
    batch += len(LADDER) * time_of_an_episode(ladder(cpu)["sidestep"], cfg, arenas, cpu)
    films = _films(2, measure.video_max_steps, assemble.sea_config(config, max(1, measure.video_num_fish)))
    return batch * measure.eval_multi_episodes / arenas + films * (measure.video_num_fish > 0)


# --- in words ---------------------------------------------------------------------------------------------------------


def told(config: FishTrainConfig, pace: Pace, budget: Budget) -> list[str]:
    """What to say before the first iteration; nothing about a training of seconds."""
    whole, longest = pace.whole(config), max(pace.iteration(config, p.num_fish) for p in config.phases)
    if whole <= WORTH_SAYING_S:
        return []
    cost = f"{config.iterations} iterations of up to {duration(longest)}"
    lines = [f"this training takes about {duration(whole)} on this machine: {cost}, then probes, films and evaluation"]
    if budget.limited:
        done = pace.done_in(config, budget.left())
        if not budget.fits(whole):
            lines.append(f"the time limit of {duration(budget.limit_s)} stops it after about {done} of them")
    elif whole > QUARTER_S and (shorter := ways(config, pace)):
        lines.append("to have it in 15 minutes: " + "; or ".join(shorter))
    return lines


def ways(config: FishTrainConfig, pace: Pace) -> list[str]:
    """What makes it a quarter of an hour, each with what it costs."""
    done = pace.done_in(config, QUARTER_S - pace.ending)
    found = [f"--time-limit 15 ends it there, evaluation and figures included (about {done} iterations)"] * (done > 0)
    fixed = pace.whole(config) - pace.iterations(config)
    share = (QUARTER_S - fixed) / pace.iterations(config)
    arenas = 2 ** int(math.log2(max(1.0, share * config.num_envs)))
    if arenas >= FEWEST_ARENAS and not config.compat:
        seconds = fixed + pace.iterations(config) * arenas / config.num_envs
        found.append(f"--num-envs {arenas} plays all iterations with fewer arenas (about {duration(seconds)})")
    if not config.compat and config.num_envs >= 64:
        original = pace.whole(altered(config, compat=True))
        if original <= QUARTER_S:
            found.append(f"--compat learns from one fish per arena, as the original did (about {duration(original)})")
    return found


def no_time_for_one(config: FishTrainConfig, pace: Pace, budget: Budget) -> str | None:
    """A sentence where not even the first iteration can end before the time limit."""
    first = pace.iteration(config, config.phases[0].num_fish)
    if not budget.limited or first < LONG_ITERATION_S or budget.fits(first):
        return None
    return (
        f"one iteration takes about {duration(first)} on this machine, longer than what the time limit leaves; "
        "give it more time, or fewer arenas (--num-envs)"
    )
