"""`marlab hunt train --variant ppo`: the PPO baseline, alone in all seats or among rule-based players."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

from marlab.hunt.data.dataset import Dataset, load_dataset
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import REWARD_SCALE
from marlab.hunt.game.rules import Game
from marlab.hunt.players.characters import parse_character
from marlab.hunt.players.episodes import (
    ENV_STEPS,
    REWARD,
    episode_metrics,
    seed_means,
    value_error,
)
from marlab.hunt.players.evaluation import conclude, keep_time
from marlab.hunt.players.policy import Policy, Team
from marlab.hunt.players.rollout import Episodes, play
from marlab.hunt.players.seats import Kind, Role, learning_seats, parse_seeds
from marlab.hunt.players.strangers import seat_characters
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.figures import draw_curves
from marlab.hunt.ppo.learners import Learner, NetworkBatch, SeedWorld, value_errors
from marlab.hunt.ppo.network import KIND, PATTERN, NetworkPolicy, PlayerNet
from marlab.hunt.ppo.warm import lessons, warm_start
from marlab.hunt.ppo.world import HuntWorld
from marlab.lab.config import Preset, to_dict
from marlab.lab.device import choose_device
from marlab.lab.ppo.config import scheduled_lr
from marlab.lab.ppo.ppo import PPO, Rollout
from marlab.lab.progress import stage
from marlab.lab.runs.checkpoint import Keep
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.split import SplitStore
from marlab.lab.runs.trainer import drive

SAVE_EVERY = 25
"""Iterations between checkpoints."""


class PPOTrainer:
    """All learners of a command, one rollout and update at a time, complete in its `state_dict`."""

    def __init__(self, config: PPOTrainConfig, data: Dataset | None = None) -> None:
        """data: offline data for the warm start; by default that of `load_data`, if it names any."""
        self.config, self.device = config, choose_device(config.device)
        self.step, self.total = 0, config.iterations
        self.seeds = parse_seeds(config.seeds)
        self.seats, names = learning_seats(config.agent_roles, config.game.players)
        self.roles = [Role(Kind.RAND) if name is None else parse_character(name) for name in names]
        self._data = load_dataset(config.load_data, config.game) if data is None and config.load_data else data
        # Seeds share one world, so its stream is that of the whole list; networks and updates are each seed's own.
        self.rngs = Rngs(self.seeds[0], self.device)
        label = ",".join(map(str, self.seeds))
        game = make_game(config.played, self.rngs.torch("maps", "cpu"), device=self.device)
        alone = len(self.seats) == game.players
        world = HuntWorld(
            game,
            config.num_envs * len(self.seeds),
            self.rngs.torch(f"world of seeds {label}"),
            seats=self.seats,
            others=None if alone else seat_characters(game, self.roles),
            stay=config.stay,
            guests=config.guests,
            paths=config.network.paths,
        )
        self.world = SeedWorld(world, len(self.seeds), REWARD_SCALE)
        self.learners = [
            self._learner(game, place, column)
            for place in range(len(self.seeds))
            for column in ([None] if config.networks == "shared" else range(len(self.seats)))
        ]
        self.collector = self.learners[0].ppo
        if len(self.learners) > 1:
            crowd = NetworkBatch([cast(PlayerNet, learner.ppo.net) for learner in self.learners], len(self.seeds))
            self.collector = PPO(cast(Any, crowd), config.ppo, self.rngs.torch(f"actions of seeds {label}"))

    def _learner(self, game: Game, place: int, column: int | None) -> Learner:
        seed = self.seeds[place]
        rngs = Rngs(seed, self.device)
        seat = None if column is None else self.seats[column]
        purpose = "all seats" if seat is None else f"seat {seat}"
        net = PlayerNet(game, self.config.network, rngs.torch(f"init/{purpose}", "cpu")).to(self.device)
        seats = len(self.seats) if seat is None else 1
        batch = max(1, self.config.ppo.batch_size * seats // game.players)
        policy = PPO(cast(Any, net), replace(self.config.ppo, batch_size=batch), rngs.torch(f"policy/{purpose}"))
        return Learner(seed, place, seat, column, policy)

    # --- one iteration ------------------------------------------------------------------------------------------

    def iterate(self) -> Mapping[str, Any]:
        """A rollout of all games, then an update of every learner on its own rows."""
        config = self.config
        if self.step == 0 and self._data is not None:
            self._warm_start(self._data)
        progress = self.step / self.total
        rate = scheduled_lr(config.ppo, progress)
        entropy = config.ppo.entropy_coef * (1.0 - progress)
        rollout = self.collector.collect(self.world)
        errors = self._value_errors(rollout)
        learned = {
            learner.key: learner.ppo.update(learner.rows(rollout, config.num_envs), rate, entropy)
            for learner in self.learners
        }
        self.step += 1
        return self._metrics(learned, errors, self.world.pop_stats(), entropy)

    def _warm_start(self, data: Dataset) -> None:
        """What rule-based players do and earn, before the first game."""
        config = self.config
        taught = lessons(data, config.ppo.gamma, config.network.paths, self.device)
        for learner in self.learners:
            generator = Rngs(learner.seed, self.device).torch(f"warm start/{learner.key}")
            warm_start(cast(PlayerNet, learner.ppo.net), taught, config.warm_updates, generator)

    def _value_errors(self, rollout: Rollout) -> list[list[float]]:
        """Per seed and learning seat: the mean squared value error, in reward units squared."""
        sums = value_errors(rollout, self.config.ppo).unflatten(1, (len(self.seeds), -1)).sum(2)  # [2, S, L]
        return (sums[0] / sums[1].clamp_min(1) / REWARD_SCALE**2).tolist()

    def _metrics(
        self,
        learned: Mapping[str, Mapping[str, float]],
        errors: list[list[float]],
        stats: list[dict[str, float]],
        entropy: float,
    ) -> dict[str, Any]:
        """Every seed's numbers under its own name, and their means over seeds without one."""
        per_seed: list[dict[str, float]] = []
        for place in range(len(self.seeds)):
            values = episode_metrics(stats[place])
            for seat, error in zip(self.seats, errors[place]):
                values[value_error(seat)] = error
            for learner in self.learners:
                if learner.place == place:
                    head = "ppo" if learner.seat is None else f"ppo/player_{learner.seat + 1}"
                    values |= {f"{head}/{k.removeprefix('ppo/')}": v for k, v in learned[learner.key].items()}
            per_seed.append(values)
        games = self.config.num_envs * self.config.ppo.n_steps
        row: dict[str, Any] = {ENV_STEPS: self.step * games, "ppo/entropy_coef": entropy}
        row |= seed_means(per_seed)
        for seed, values in zip(self.seeds, per_seed):
            row |= {f"seed_{seed}/{name}": value for name, value in values.items()}
        return row | self._timings(games * len(self.seeds))

    def _timings(self, game_steps: int) -> dict[str, float]:
        parts: dict[str, float] = {}
        watches = {id(p.timing): p.timing for p in [self.collector, *(learner.ppo for learner in self.learners)]}
        for watch in watches.values():
            for name, seconds in watch.pop().items():
                parts[name] = parts.get(name, 0.0) + seconds
        rollout, train = parts.get("world", 0.0) + parts.get("policy", 0.0), parts.get("learning", 0.0)
        return {
            "time/rollout": rollout,
            "time/train": train,
            "time/world": parts.get("world", 0.0),
            "time/policy": parts.get("policy", 0.0),
            "time/steps_per_second": game_steps / max(rollout + train, 1e-9),
        }

    # --- playing ------------------------------------------------------------------------------------------------

    def policy(self, game: Game, seed: int, *, greedy: bool = False) -> Policy:
        """A seed's networks in the seats where they learned, rule-based players in the others."""
        mine = [learner for learner in self.learners if learner.seed == seed]
        net_of = {seat: 0 if mine[0].seat is None else i for i, seat in enumerate(self.seats)}
        nets = [cast(PlayerNet, learner.ppo.net) for learner in mine]
        policy = NetworkPolicy(game, nets, [net_of.get(s, 0) for s in range(game.players)], greedy=greedy)
        if len(self.seats) == game.players:
            return policy
        others = seat_characters(game, self.roles)
        return Team(game, [others, policy], [int(s in self.seats) for s in range(game.players)])

    # --- evaluation (`marlab.hunt.players.evaluation`) ------------------------------------------------------------

    @cached_property
    def evaluation_game(self) -> Game:
        """In the game's own (selfish) rewards, on obstacle maps of its own."""
        config, maps = self.config, Rngs(self.seeds[0]).torch("evaluation maps")
        return make_game(config.game, maps, device=self.device)

    def about(self) -> dict[str, Any]:
        return {"game": to_dict(self.config.game), "learning_seats": list(self.seats)}

    def episodes(self, mode: str, size: int, stream: str, tick: Callable[[], None]) -> list[Episodes]:
        game, played = self.evaluation_game, []
        for seed in self.seeds:
            policy = self.policy(game, seed, greedy=mode == "greedy")
            played.append(play(game, policy, size, Rngs(seed, self.device).torch(stream), tick=tick))
        return played

    # --- saving -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        config = self.config
        agents = {
            "game": to_dict(config.game),
            "network": to_dict(config.network),
            "seeds": list(self.seeds),
            "seats": list(self.seats),
            "shared": config.networks == "shared",
            "weights": {learner.key: learner.ppo.net.state_dict() for learner in self.learners},
        }
        learners = {learner.key: learner.ppo.state_dict() for learner in self.learners}
        return {
            "step": self.step,
            "agents": agents,
            "learners": learners,
            "world": self.world.state_dict(),
            "rngs": self.rngs.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = state["step"]
        for learner in self.learners:
            learner.ppo.load_state_dict(state["learners"][learner.key])
        self.world.load_state_dict(state["world"])
        self.rngs.load_state_dict(state["rngs"])


def train_ppo(
    config: PPOTrainConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Train (or resume), and evaluate every seed on fresh episodes.

    The run holds checkpoints/model_iter_N.pt (networks) and state_N.pt (to go on from), metrics.jsonl, evaluation.json
    and figures/reward.png.
    """
    with stage("networks and games", quiet=quiet):
        trainer = PPOTrainer(config)
    with Run.open("hunt", config, options, preset=preset, command=command) as run:
        run.add_stage(config.variant, lr=config.ppo.learning_rate, steps=config.total_steps, networks=config.networks)
        store = SplitStore(run.checkpoints, KIND, PATTERN, Keep(last=2), weights="agents")
        size, seeds = config.eval_episodes, len(trainer.seeds)
        keep_time(run, size, seeds)
        done = drive(
            trainer, run, store, save_every=SAVE_EVERY, unit="iterations", show=(REWARD,), quiet=quiet,
            on_unit=lambda row: keep_time(run, size, seeds, row), stay=True,
        )  # fmt: skip
        figure = run.figure("reward.png")
        conclude(
            run,
            trainer,
            size,
            done=done,
            quiet=quiet,
            draw=lambda: draw_curves(run.path / "metrics.jsonl", figure, config.game, trainer.seeds),
        )
    return run
