"""`marlab fish train`: one shared policy, every living fish a sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from marlab.fish.measure.probe import at_settings, draw_seeds, greedy, run_probe
from marlab.fish.measure.record import outcome_of, probe_record
from marlab.fish.measure.stats import best_probe
from marlab.fish.schedule.curriculum import IterationSettings
from marlab.fish.schedule.gate import check_reachable
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.single import SingleFishView
from marlab.fish.sea.stats import pooled
from marlab.fish.sea.world import FishWorld, Transition
from marlab.fish.training import assemble
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.ending import Ending
from marlab.fish.training.forecast import WORTH_ASKING_S, Pace, no_time_for_one, pace, told
from marlab.fish.training.networks import make_net
from marlab.fish.training.outputs import FishOutputs, iteration_row, metric_names
from marlab.lab.config import Preset, to_dict
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.output import agreed, on_a_terminal
from marlab.lab.ppo.ppo import PPO
from marlab.lab.progress import stage
from marlab.lab.runs.budget import Budget
from marlab.lab.runs.record import now as timestamp
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive

WINDOW = 100  # episodes
SLOTS = 4  # hard starts planned per arena and iteration; a fifth reset within one rollout is an ordinary one


class LearnersWorld:
    """A world with the rewards that the learner sees: the sea's, scaled, or the price of deaths alone."""

    def __init__(self, view: FishWorld | SingleFishView, scale: float, survival: bool = False, team: float = 0) -> None:
        self.view, self.scale, self.survival, self.team = view, scale, survival, team

    @property
    def acting(self) -> Tensor:
        return self.view.acting

    def observe(self) -> Tensor:
        return self.view.observe()

    def step(self, actions: Tensor) -> Transition:
        if not self.survival:
            result = self.view.step(actions)
            return result._replace(reward=result.reward * self.scale)
        acted = self.view.acting
        result = self.view.step(actions)
        died = result.terminated.to(result.reward.dtype)
        others = died.sum(-1, keepdim=True) - died
        return result._replace(reward=-(died + self.team * others * acted))


class FishTrainer:
    """All parts of a fish training, one iteration at a time, complete in its `state_dict`."""

    chooses_best = True  # only a probe that beats all before it has a score; by more than survival, where that is equal

    def __init__(self, config: FishTrainConfig, outputs: FishOutputs | None = None) -> None:
        self.config, self.outputs = config, outputs
        self.rules, self.device = config.rules, choose_device(config.device)
        self.step, self.total = 0, config.iterations
        seed = config.seed if self.rules.seed_scope == "everything" else int.from_bytes(os.urandom(6), "big")
        self.rngs = Rngs(seed, self.device)
        self.sea = assemble.sea_config(config)
        self.schedules, self.gate = assemble.schedules(config), assemble.gate(config)
        self.queue, self.start_problems = assemble.start_queue(config)
        self.stock_warning, self.override_warning = assemble.tail_warnings(config)
        self.world = FishWorld(
            self.sea, config.num_envs, seed=self.rngs.draw_seed("world"), device=self.device,
            force_reset_steps=config.starts.force_reset_steps,
            compile=config.ppo.compile and self.device.type == "cuda",
        )  # fmt: skip
        self.view: FishWorld | SingleFishView = self.world
        if self.rules.action_mode == "broadcast":
            self.view = SingleFishView(self.world, config.obs_sampling, self.rngs.draw_seed("watched fish"))
        paid = config.learning_reward_scale, config.learning_reward == "survival", config.learning_team
        self.learners = LearnersWorld(self.view, *paid)
        # A recorded rollout repeats the same work: with penalties that come and go it would not be the same.
        calm = config.penalty.phase_targets == "" and config.sea.density_penalty_coef == 0
        self.record = self.view is self.world and calm
        self.net = make_net(config, self.rngs.torch("init", "cpu")).to(self.device)
        self.ppo = PPO(self.net, config.ppo, self.rngs.torch("policy"))
        measure = config.measure
        base = config.seed if measure.multi_eval_seed_base is None else measure.multi_eval_seed_base
        self.probe_rng = np.random.default_rng(base)
        self.fixed_seeds = draw_seeds(np.random.default_rng([base, 1]), measure.multi_eval_fixed_episodes)
        self.recent: list[dict[str, Any]] = []  # what the statistics window of compat is made of
        self.probes: list[dict[str, Any]] = []  # what choosing the best checkpoint needs of each probe

    # --- one iteration --------------------------------------------------------------------------------------

    def iterate(self) -> Mapping[str, Any]:
        """Rollout, update, statistics and, when one is due, a probe with its gate and films."""
        iteration = self.step + 1
        now = self.schedules.begin_iteration(iteration)
        self._prepare(now)
        rollout = self.ppo.collect(self.learners, self.record)
        self.queue.settle(self.world.resets_since_feed.cpu().numpy())
        probes_first = self.rules.probe_time == "before_update"
        learned = None if probes_first else self.ppo.update(rollout, now.learning_rate, now.entropy_coef)
        if self.device.type == "cuda":
            self.world.refill()
        self.step = iteration

        finished = self.world.pop_stats()
        row = iteration_row(now, finished, self.queue, self._window(finished))
        row |= self._watch_starts(iteration, row)
        self.schedules.boost.observe(iteration, row[self.rules.adaptive_boost_signal or "late_first_death_p10"])
        probe = None
        if self.config.measure.probe_due(iteration):
            with self.ppo.timing("probe"):
                probe = self._probe(now, row)
        if learned is None:
            learned = self.ppo.update(rollout, now.learning_rate, now.entropy_coef)
        if self.outputs is not None:
            self.outputs.row(row)
        metrics = metric_names(row, learned, probe, self.ppo.timing.pop())
        if probe is not None and self._is_best(probe):
            metrics["score"] = float(probe["summary"]["avg_final_survival_rate"])
        return metrics

    def _is_best(self, probe: Mapping[str, Any]) -> bool:
        """Whether this probe is the best of all so far, by the rule that the final choice uses too."""
        needed = ("iteration", "summary", "death_stats", "step_one_death_count", "saved_share")
        self.probes.append({k: probe[k] for k in needed})
        measure = self.config.measure
        limits = measure.best_checkpoint_max_step_one, measure.best_checkpoint_max_early_death
        best = best_probe(self.probes, *limits, rule=self.rules.best_checkpoint_rule or "survival")
        return best is not None and best["iteration"] == probe["iteration"]

    def _prepare(self, now: IterationSettings) -> None:
        """Bring world and queue to this iteration's settings before its first step."""
        self.world.set_density_penalty(now.density_penalty)
        self.world.set_escape_boost_speed(now.escape_boost)
        fresh = now.iteration == 1
        if now.new_phase:
            self.world.set_fish_count(now.phase.num_fish)
            if not fresh and self.rules.queue_on_phase_change == "discarded":
                self.queue.drop()
                fresh = True  # the original built new workers here, so every arena began again
        self.queue.begin_iteration(now.iteration)
        self.world.feed(self.queue.plan(SLOTS, self.rngs.numpy("starts")))
        if fresh:
            self.view.reset()
            if self.config.staggered:
                self.world.stagger(self.rngs.draw_seed("stagger"))

    def _window(self, finished: dict[str, Any]) -> dict[str, Any]:
        """Statistics to show: this iteration's, or (compat) of the latest ones that hold 100 episodes, of any phase."""
        if self.rules.stats_window == "iteration":
            return finished
        if finished["episodes"]:
            self.recent.append(finished)
        while sum(s["episodes"] for s in self.recent[1:]) >= WINDOW:
            self.recent.pop(0)
        return pooled(self.recent) if self.recent else finished

    def _watch_starts(self, iteration: int, row: Mapping[str, Any]) -> dict[str, Any]:
        events = [
            self.stock_warning.update(iteration, row["tail_queue_remaining_ratio"], row["tail_stage_label"]),
            self.override_warning.update(iteration, row["prewarm_override_ratio_256"], row["tail_stage_label"]),
        ]
        if self.outputs is not None:
            self.outputs.events([e for e in events if e is not None])
        return {"tail_stage_warn_active": self.stock_warning.active or self.override_warning.active}

    # --- probes ---------------------------------------------------------------------------------------------

    def _probe(self, now: IterationSettings, row: Mapping[str, Any]) -> dict[str, Any]:
        """Play new arenas (and the fixed ones), judge them by the gate, and film the worst."""
        measure = self.config.measure
        cfg = at_settings(self.sea, measure.eval_multi_fish, now.escape_boost, now.density_penalty)
        seeds = draw_seeds(self.probe_rng, measure.multi_eval_probe_episodes)
        path: list[SeaState] | None = [] if self.outputs is not None and measure.tail_replay_count > 0 else None
        arrays = run_probe(greedy(self.net), cfg, seeds, self.device, path)
        record = probe_record(
            arrays, iteration=now.iteration, timestamp=timestamp(),
            density_penalty_coef=now.density_penalty, escape_boost_speed=now.escape_boost,
        )  # fmt: skip
        if self.fixed_seeds:
            fixed = run_probe(greedy(self.net), cfg, self.fixed_seeds, self.device)
            record["fixed_avg_final_survival_rate"] = float((fixed.death_steps < 0).mean())
        if self.gate is not None:
            verdict = self.gate.evaluate(now.iteration, outcome_of(record, row["tail_stage_type"]))
            self.schedules.follow_gate(self.gate.stage, self.gate.phase_limit)
            record["penalty_gate"] = verdict
        if self.outputs is not None:
            self.outputs.probe(record, arrays, path)
        return record

    # --- saving ---------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        return {
            "step": self.step, "config": to_dict(self.config), "ppo": self.ppo.state_dict(),
            "view": self.view.state_dict(), "schedules": self.schedules.state_dict(),
            "gate": None if self.gate is None else self.gate.state_dict(), "queue": self.queue.state_dict(),
            "warnings": [self.stock_warning.state_dict(), self.override_warning.state_dict()],
            "rngs": self.rngs.state_dict(), "probe_rng": self.probe_rng.bit_generator.state,
            "recent": self.recent, "probes": self.probes,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.step = state["step"]
        if self.outputs is not None:
            self.outputs.resume_from(self.step)
        self.ppo.load_state_dict(state["ppo"])
        self.view.load_state_dict(state["view"])
        self.schedules.load_state_dict(state["schedules"])
        if self.gate is not None:
            self.gate.load_state_dict(state["gate"])
        self.queue.load_state_dict(state["queue"])
        for warning, saved in zip((self.stock_warning, self.override_warning), state["warnings"]):
            warning.load_state_dict(saved)
        self.rngs.load_state_dict(state["rngs"])
        self.probe_rng.bit_generator.state = state["probe_rng"]
        self.recent, self.probes = list(state["recent"]), list(state["probes"])


# --- the command ----------------------------------------------------------------------------------------------


def train(
    config: FishTrainConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Train, probe, film and evaluate in a run directory; needs no flags and no terminal."""
    with stage("preparing", quiet):
        trainer = FishTrainer(config)  # refuses bad start files and devices before anything is written
        problems = _check_gate(trainer)
    measured = cache(lambda: pace(config, trainer.net, trainer.device))
    yes = quiet or command is None or (options or RunOptions()).yes or not on_a_terminal()
    run = Run.open(
        "fish", config, options, preset=preset, command=command,
        before=lambda: None if yes else _ask(config, measured(), options or RunOptions()),
    )  # fmt: skip
    with run:
        run.set_device(trainer.device)
        for text in (*trainer.start_problems, *problems):
            run.log(text)
            print(f"warning: {text}")
        _describe_stages(run, trainer)
        outputs = trainer.outputs = FishOutputs(run, config)
        if run.resumed:
            outputs.resume_from(0)  # a checkpoint, if there is one, says more
        ending = Ending(run, config, trainer.device, quiet)
        ending.expect(trainer.net)
        drive(
            trainer, run, ending.store, save_every=config.checkpoint_interval, unit="iterations",
            show=("custom/avg_survival_rate", "multi_eval/avg_final_survival_rate"), quiet=quiet, stay=True,
            prepare=lambda: _forecast(run, trainer, measured, told_before=quiet or not yes),
        )  # fmt: skip
        outputs.flush()
        ending.finish()
    return run


def _ask(config: FishTrainConfig, measured: Pace | None, options: RunOptions) -> None:
    """Say on a terminal how long it will take, and ask where that is long."""
    if measured is None:
        return
    budget = Budget(None if options.time_limit is None else 60.0 * options.time_limit)
    for line in told(config, measured, budget):
        print(f"{line}.", flush=True)
    if min(measured.whole(config), budget.limit_s) > WORTH_ASKING_S and not agreed("Start it?"):
        raise UserError("Nothing was started, and nothing was written; with --yes it is not asked.")


def _forecast(run: Run, trainer: FishTrainer, measure: Callable[[], Pace | None], told_before: bool) -> bool:
    """Say how long it will take, before it starts; False where there is no time for a single iteration."""
    if trainer.step or (measured := measure()) is None:
        return True
    impossible = no_time_for_one(trainer.config, measured, run.budget)
    for line in [impossible] if impossible else told(trainer.config, measured, run.budget):
        run.log(line)
        if not told_before or impossible:
            print(f"{line}.", flush=True)
    return impossible is None


def _check_gate(trainer: FishTrainer) -> list[str]:
    """A gate that waits for what no policy can reach is refused (compat: only a warning)."""
    config, measure = trainer.config, trainer.config.measure
    if trainer.gate is None or not measure.probe_due(measure.multi_eval_interval):
        return []
    from marlab.fish.measure.ceiling import doomed_share

    fish = measure.eval_multi_fish
    floor = doomed_share(at_settings(trainer.sea, fish, config.sea.escape_boost_speed, 0.0))
    samples = fish * measure.multi_eval_probe_episodes
    return check_reachable(trainer.gate.config, floor, samples, refuse=not config.compat)


def _describe_stages(run: Run, trainer: FishTrainer) -> None:
    schedules = assemble.schedules(trainer.config)
    for phase in schedules.phases:
        first, last = (schedules.begin_iteration(i).learning_rate for i in (phase.first, phase.last))
        run.add_stage(
            f"phase {phase.index}: {phase.num_fish} fish", lr=f"{first:.3g} -> {last:.3g}", first_step=phase.first,
            last_step=phase.last,
        )  # fmt: skip
