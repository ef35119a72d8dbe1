"""The trainer of planning agents: all seeds, seats and trees in one batch, complete in its `state_dict`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from marlab.hunt.data.dataset import load_dataset
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import REWARD_SCALE
from marlab.hunt.game.rules import Game
from marlab.hunt.others.models import LoadedModels, load_goal_models
from marlab.hunt.planner.agent import HopAgent, agents_state
from marlab.hunt.planner.mind import PlannerModels
from marlab.hunt.planner.replay import Experience, RankedRewards, Replay
from marlab.hunt.players.episodes import (
    BEHAVIOUR_ENTROPY,
    BETA,
    ENV_STEPS,
    EXCESS,
    SCALED_SPREAD,
    episode_metrics,
    seed_means,
)
from marlab.hunt.players.policy import Policy, Team
from marlab.hunt.players.rollout import Episodes, play
from marlab.hunt.players.rules import RulePlayers
from marlab.hunt.players.seats import Kind, parse_seats, parse_seeds
from marlab.hunt.selfplay.config import LEARNER, GuardConfig, HopTrainConfig
from marlab.hunt.selfplay.gates import Gates
from marlab.hunt.selfplay.learn import BestWeights, PlannerLearner
from marlab.hunt.selfplay.offline import goals_of, offline_experience
from marlab.hunt.selfplay.play import PAIR_SUMS, SelfPlay
from marlab.hunt.selfplay.warm import WarmStart
from marlab.hunt.world_model.model import WorldModel, load_world_model
from marlab.lab.config import to_dict
from marlab.lab.device import choose_device
from marlab.lab.ppo.timing import Stopwatch
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.trainer import Halfway, complete
from marlab.lab.search.search import timed_searches

GATES = Gates()
FIRST_BETA = 5.0
PATIENCE = 0.1
"""Share of the training that passes before alarms count."""
SMOOTHING = 0.9
"""Weight of the past in the smoothed reward that rollbacks go by."""
WAIT = 10
"""Iterations after a start or a rollback before the next rollback."""
ENTROPY = 0.01
"""Entropy bonus of the prior at the start; it falls linearly to 0."""
MOA_LEARNING_RATE = 1e-3
"""Of the models of others; it does not fall, because players go on changing."""


class RollbackMonitor:
    """The smoothed reward of every seed, its best, and what was done about it."""

    def __init__(self, config: GuardConfig, seeds: int, best: BestWeights) -> None:
        self.config, self.best_weights = config, best
        self.smooth = [math.nan] * seeds
        self.best = [-math.inf] * seeds
        self.since = [0] * seeds
        self.rollbacks = [0] * seeds

    def follow(self, rewards: list[float | None]) -> list[int]:
        """Take in each seed's mean reward of an iteration (None without an episode); returns seeds sent back."""
        returned = []
        for place, reward in enumerate(rewards):
            self.since[place] += 1
            if reward is None:
                continue
            past, keep = self.smooth[place], SMOOTHING
            self.smooth[place] = reward if math.isnan(past) else keep * past + (1 - keep) * reward
            if self.smooth[place] >= self.best[place]:
                self.best[place] = self.smooth[place]
                self.best_weights.keep(place)
            elif self._has_regressed(place):
                self.best_weights.restore(place)
                self.smooth[place], self.since[place] = self.best[place], 0
                self.rollbacks[place] += 1
                returned.append(place)
        return returned

    def _has_regressed(self, place: int) -> bool:
        drop = self.config.drop
        return drop > 0 and self.since[place] >= WAIT and self.smooth[place] < (1 - drop) * self.best[place]

    def alarms(self, progress: float, entropy: float, spread: float, excess: float | None) -> dict[str, bool]:
        """Which alarms ring, by name. `spread` is beta times the normalised spread of Q."""
        if progress < PATIENCE:
            return {"entropy": False, "q_spread": False, "moa_excess": False}
        return {
            "entropy": entropy > GATES.behaviour_entropy,
            "q_spread": spread < GATES.scaled_spread,
            "moa_excess": excess is not None and excess > GATES.online_excess,
        }

    def state_dict(self) -> dict[str, Any]:
        return {
            "smooth": self.smooth,
            "best": self.best,
            "since": self.since,
            "rollbacks": self.rollbacks,
            "weights": self.best_weights.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.smooth, self.best = list(state["smooth"]), list(state["best"])
        self.since, self.rollbacks = list(state["since"]), list(state["rollbacks"])
        self.best_weights.load_state_dict(state["weights"])


Say = Callable[[str], None]
FIRST_RANKS = 100
"""r2: rewards of random play that its buffers begin with."""


class Resources(NamedTuple):
    """What a training starts from."""

    offline: Experience | None
    models: LoadedModels | None
    world: WorldModel | None


def load_resources(config: HopTrainConfig, device: torch.device) -> Resources:
    """Read what the config points to; whatever does not fit its game is refused here."""
    mind = config.mind
    models = world = offline = None
    if mind.parts.coplayers == "learned" and config.load_moa is not None:
        models = load_goal_models(config.load_moa, config.game, device=device)
    if mind.parts.world_model and not config.exact_step and config.load_wm is not None:
        world = load_world_model(config.load_wm, config.game, device).requires_grad_(False)
    goals_of(mind, models)  # refuses models that do not fit
    if config.load_data is not None:
        dataset = load_dataset(config.load_data, config.game)
        offline = offline_experience(dataset, "train", mind, models, device)
    return Resources(offline, models, world)


class SelfPlayTrainer:
    """All learners of a command, one iteration of games and updates at a time."""

    def __init__(self, config: HopTrainConfig, say: Say = lambda text: None) -> None:
        self.config, self.say = config, say
        self.device = choose_device(config.device)
        self.step, self.total = 0, config.iterations
        self.played = 0  # steps of the games in the iteration under way
        self.should_stop: Callable[[], bool] = lambda: False
        self.seeds = parse_seeds(config.seeds)
        self.seats, self.roles = parse_seats(config.agent_roles, config.game.players, LEARNER)
        label = ",".join(map(str, self.seeds))
        self.rngs = Rngs(self.seeds[0], self.device)
        self.game = make_game(config.game, self.rngs.torch("maps", "cpu"), device=self.device)
        self.offline, models, world = load_resources(config, self.device)
        goals = goals_of(config.mind, models)
        mind = PlannerModels(config.game, config.mind, goals, self.seeds, world).to(self.device)
        if mind.others is not None and models is not None:
            mind.others.take(models.models)
        self.learner = PlannerLearner(mind, config.learn, self.rngs.torch(f"learning of seeds {label}"))
        self.learner.set_learning_seats(self.seats)
        self.rules = None if len(self.seats) == self.game.players else RulePlayers(self.game, self.roles)
        self.warm: WarmStart | None = None  # what of the warm start is still to be done
        self.lessons: Experience | None = None  # what prior and value go on learning beside their own games
        if self.offline is not None:
            imagine = models is not None and config.learn.hindsight
            warm = WarmStart(self.learner, self.offline, self.rngs.torch("warm start"), imagine=imagine)
            self.warm = warm if warm.total else None
            if config.learn.lessons and not config.r2:  # ranks and rewards are not the same currency
                self.lessons = warm.lessons()
        generator = self.rngs.torch(f"games of seeds {label}")
        ranked = self._random_ranks(generator) if config.r2 else None
        self.planner = self.learner.slow.planner(self.game)
        self.planner.ranked = ranked
        if config.plan.engine == "graph" and self.device.type == "cuda":
            self.planner.engine = "graph"
        self.play = SelfPlay(
            self.game, self.learner.slow, self.planner, config.num_envs, generator,
            learns=self.seats, rules=self.rules, ranked=ranked, guests=config.guests,
            rows_after_exit=config.learn.legacy_moa_buffer == "rows-after-exit",
        )  # fmt: skip
        rings = len(self.seeds) * self.game.players
        self.replay = Replay(rings, config.learn.replay, self._like())
        self.successes: Replay[Experience] | None = None  # what models of others learn from instead
        if config.learn.legacy_moa_buffer == "successes-only":
            self.successes = Replay(rings, config.learn.replay, self._like())
        self.guard = RollbackMonitor(config.guard, len(self.seeds), BestWeights(self.learner))
        self.watch = Stopwatch(self.device)
        self._rung: set[str] = set()

    def _like(self) -> Experience:
        """One step with the shapes and types of all."""
        diary, n, count = self.play.diary, self.game.players, self.learner.fast.count
        number = torch.zeros((), dtype=torch.int64, device=self.device)
        some = torch.zeros((), device=self.device)
        goal = torch.zeros(n - 1, count, device=self.device)
        believed = torch.stack([goal, goal])
        return Experience(
            diary.rows[0, 0, 0], some, number, diary.policy[0, 0, 0], some, goal, believed, diary.code[0, 0, 0], number
        )

    def _random_ranks(self, generator: torch.Generator) -> RankedRewards:
        episodes = play(self.game, RulePlayers(self.game, [Kind.RAND] * self.game.players), FIRST_RANKS, generator)
        first = episodes.reward.flatten()[:FIRST_RANKS] * REWARD_SCALE
        return RankedRewards(first.expand(len(self.seeds), -1))

    # --- one iteration ------------------------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Do what of the warm start is not done yet, and begin with what it taught."""
        if self.warm is None:
            return
        while not complete(self.warm):
            self.warm.iterate()
        self.begin_warm()

    def begin_warm(self) -> None:
        """Begin with what the warm start has taught so far."""
        if self.warm is not None:
            self.warm.copy_to_learner()
            self.warm = None
            self.guard.best_weights = BestWeights(self.learner)

    def iterate(self) -> Mapping[str, Any]:
        """Some steps of all games, then updates of all networks; `Halfway` after any step where it should stop."""
        self.warm_up()
        c, progress = self.config, self.step / self.total
        beta = FIRST_BETA + (c.plan.beta_end - FIRST_BETA) * progress
        self.planner.rollout = c.rollout_share * max(0.0, 1.0 - 3.0 * progress)
        if not self.played:
            self.play.clear_sums()
        with self.watch("rollout"), timed_searches(self.watch):
            while self.played < c.steps:
                self.play.step(self.replay, self.step, beta, self.successes)
                self.played += 1
                if self.should_stop():
                    raise Halfway
        rate = c.learn.learning_rate + (c.learn.final_learning_rate - c.learn.learning_rate) * progress
        losses: dict[str, dict[str, Tensor]] = {}
        if bool((self.replay.written > 0).all()):  # every player of every seed has finished an episode
            with self.watch("train"):
                entropy = ENTROPY * (1 - progress)
                losses["players"] = self.learner.learn_players(self.replay, rate, entropy, self.lessons)
                known = self.replay if self.successes is None else self.successes
                losses["moa"] = self.learner.learn_others(known, self.offline, MOA_LEARNING_RATE)
                losses["moa"] |= self.learner.learn_histories(self.play.histories, MOA_LEARNING_RATE)
        self.step, self.played = self.step + 1, 0
        return self._metrics(losses, beta, progress)

    # --- metrics --------------------------------------------------------------------------------------------------

    def _metrics(self, losses: Mapping[str, Mapping[str, Tensor]], beta: float, progress: float) -> dict[str, Any]:
        """Every seed's numbers under its own name, and their means over seeds without one."""
        stats = self.play.ended.means()
        per_seed = [episode_metrics(values) for values in stats]
        behaviour = (self.play.entropy[:, 0] / self.play.entropy[:, 1].clamp_min(1)).tolist()
        plan = self._plan_metrics()
        pairs = self._pair_metrics()
        for place, values in enumerate(per_seed):
            values[BEHAVIOUR_ENTROPY] = behaviour[place]
            values |= pairs[place]
            earned, episodes = self.play.beside[place].tolist()
            if episodes:
                values["guests/reward"] = earned / episodes
            for name, loss in losses.get("players", {}).items():
                values[f"losses/{name}"] = float(loss.unflatten(0, (len(self.seeds), -1)).mean(1)[place])
        games = self.config.num_envs * self.config.steps
        row: dict[str, Any] = {ENV_STEPS: self.step * games, BETA: beta, **plan}
        row |= {f"moa/{name}": float(value) for name, value in losses.get("moa", {}).items()}
        row |= seed_means(per_seed)
        row |= self._watch_over(stats, row, beta, progress)
        for seed, values in zip(self.seeds, per_seed):
            row |= {f"seed_{seed}/{name}": value for name, value in values.items()}
        return row | self._timings(games * len(self.seeds))

    def _plan_metrics(self) -> dict[str, float]:
        plans = [metrics for metrics in self.play.plans if metrics]
        if not plans:
            return {}
        names = list(plans[0])
        table = torch.stack([torch.stack([metrics[name].float() for name in names]) for metrics in plans])
        means, most = table.mean(0).tolist(), table.amax(0).tolist()
        values = dict(zip(names, means))
        values["depth_max"] = most[names.index("depth_max")]
        return {f"plan/{name}": value for name, value in values.items()}

    def _pair_metrics(self) -> list[dict[str, float]]:
        """The published figures for every pair of observer and other, and their means, per seed."""
        if self.learner.fast.others is None:
            return [{} for _ in self.seeds]
        n, actions = self.game.players, self.game.actions
        per_seed = []
        for pairs, believed in zip(self.play.pairs.tolist(), self.play.believed.tolist()):
            values: dict[str, float] = {}
            total = [0.0] * len(PAIR_SUMS)
            for i in range(n):
                for k in range(n - 1):
                    j, sums = (i + k + 1) % n, pairs[i][k]
                    values |= _pair_tags(i, j, sums, actions)
                    if believed[i][k][1]:
                        values[f"belief/{i + 1}->{j + 1}/stag"] = believed[i][k][0] / believed[i][k][1]
                    total = [a + b for a, b in zip(total, sums)]
            rows = max(total[0], 1.0)
            means = {name: value / rows for name, value in zip(PAIR_SUMS[1:], total[1:])}
            values |= {f"moa/{'ce_online' if name == 'ce' else name}": value for name, value in means.items()}
            per_seed.append(values | {EXCESS: means["ce"] - means["floor"]})
        return per_seed

    def _watch_over(
        self, stats: list[dict[str, float]], row: Mapping[str, Any], beta: float, progress: float
    ) -> dict[str, Any]:
        """Alarms, rollbacks, and what the guard knows."""
        spread = beta * row.get(SCALED_SPREAD, 0.0)
        alarms = self.guard.alarms(progress, row[BEHAVIOUR_ENTROPY], spread, row.get(EXCESS))
        state = (
            f"behaviour entropy {row[BEHAVIOUR_ENTROPY]:.2f} nats, beta x Q-spread {spread:.2f}, "
            f"MOA excess {row.get(EXCESS, 0.0):.2f} nats"
        )
        for name in alarms:
            if alarms[name] and name not in self._rung:
                self.say(f"iteration {self.step}: alarm {name}: {state}")
        self._rung = {name for name, rings in alarms.items() if rings}
        for place in self.guard.follow([values.get("reward") for values in stats]):
            self.say(
                f"iteration {self.step}: seed {self.seeds[place]} fell from {self.guard.best[place]:.3f} and goes "
                "back to its best weights"
            )
        best = [value for value in self.guard.best if value > float("-inf")]
        return {
            **{f"alarm/{name}": float(rings) for name, rings in alarms.items()},
            "guard/rollbacks": float(sum(self.guard.rollbacks)),
            **({"guard/best_smoothed_reward": sum(best) / len(best)} if best else {}),
        }

    def _timings(self, game_steps: int) -> dict[str, float]:
        """Seconds of the iteration; select, expand, backup and final are parts of the rollout."""
        parts = {"rollout": 0.0, "train": 0.0, **self.watch.pop()}
        spent = parts["rollout"] + parts["train"]
        return {**{f"time/{k}": v for k, v in parts.items()}, "time/steps_per_second": game_steps / max(spent, 1e-9)}

    # --- playing ------------------------------------------------------------------------------------------------

    def policy(self, game: Game, seeds: Sequence[int], *, greedy: bool = True) -> Policy:
        """Agents of some seeds, for blocks of games, in the seats where they learned; rules play the others.

        Their searches are not recorded: making CUDA graphs of them takes longer than a few episodes.
        """
        plan = replace(self.config.plan, engine="native")
        mind = self.learner.slow.some(seeds).to(self.device)
        agent = HopAgent(game, mind, seats=self.seats, greedy=greedy, plan=plan)
        if self.rules is None:
            return agent
        return Team(game, [RulePlayers(game, self.roles), agent], [int(s in self.seats) for s in range(game.players)])

    # --- evaluation (`marlab.hunt.players.evaluation`) ------------------------------------------------------------

    @cached_property
    def evaluation_game(self) -> Game:
        """On obstacle maps of its own."""
        c, maps = self.config, Rngs(self.seeds[0]).torch("evaluation maps")
        return make_game(c.game, maps, device=self.device)

    def about(self) -> dict[str, Any]:
        c = self.config
        return {"game": to_dict(c.game), "learning_seats": list(self.seats), "variant": c.variant}

    def episodes(self, mode: str, size: int, stream: str, tick: Callable[[], None]) -> list[Episodes]:
        policy = self.policy(self.evaluation_game, self.seeds, greedy=mode == "greedy")
        generator = Rngs(self.seeds[0], self.device).torch(stream)
        played = play(self.evaluation_game, policy, size * len(self.seeds), generator, tick=tick)
        return [Episodes(*(x[k * size : (k + 1) * size] for x in played)) for k in range(len(self.seeds))]

    # --- saving -------------------------------------------------------------------------------------------------

    def agents(self) -> dict[str, Any]:
        """What `agents_of` reads."""
        return agents_state(self.config.game, self.config.mind, self.learner.slow)

    def state_dict(self) -> dict[str, Any]:
        replay = self.replay.state_dict()
        if self.successes is not None:
            replay["successes"] = self.successes.state_dict()
        return {
            "step": self.step, "agents": self.agents(), "learner": self.learner.state_dict(),
            "play": self.play.state_dict(), "replay": replay, "guard": self.guard.state_dict(),
            "rngs": self.rngs.state_dict(), "rung": sorted(self._rung), "played": self.played,
            "sums": self.play.sums() if self.played else None,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step, self.played, self.warm = state["step"], state["played"], None
        self.learner.load_state_dict(state["learner"])
        if "replay" in state:  # a lost memory fills again
            self.replay.load_state_dict(state["replay"])
            if self.successes is not None:
                self.successes.load_state_dict(state["replay"]["successes"])
        self.guard.load_state_dict(state["guard"])
        self.rngs.load_state_dict(state["rngs"])
        self.play.load_state_dict(state["play"])
        self._rung = set(state["rung"])
        if self.played:
            self.play.load_sums(state["sums"])


def _pair_tags(i: int, j: int, sums: list[float], actions: int) -> dict[str, float]:
    """The published names for one pair; nothing without rows."""
    rows, ce, top1, top3, floor = sums[: len(PAIR_SUMS)]
    if not rows:
        return {}
    head = f"moa/{i + 1}->{j + 1}"
    values = {"acc_top1": top1, "acc_top3": top3, "ce_loss": ce, "floor": floor, "excess": ce - floor}
    tags = {f"{head}/{name}": value / rows for name, value in values.items()}
    right, seen = sums[len(PAIR_SUMS) : len(PAIR_SUMS) + actions], sums[len(PAIR_SUMS) + actions :]
    return tags | {f"{head}/per_class_acc/{a}": right[a] / seen[a] for a in range(actions) if seen[a]}
