"""The phases of a training, P0 to P7, each with its gate; what has passed is not done again.

    P0 the game is the calibrated one       P4 the PPO baseline
    P1 offline data                         P5 one learner among rule-based players
    P2 goal codes, models of others         P6 self-play
    P3 the world model                      P7 few-shot adaptation

A gate is a figure and its limit. A failing one stops the command and is named in its message (or is only noted with
`--pipeline.gates warn`). Runs of phases live in phases/ of the run directory, all figures in phases.json.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from marlab.hunt.data.collect import collect
from marlab.hunt.data.config import HuntCollectConfig
from marlab.hunt.evaluate.agents import Agent, Planners
from marlab.hunt.evaluate.play import Cell, Starts, play_stream, seat_all
from marlab.hunt.evaluate.scenarios import fitted, team
from marlab.hunt.evaluate.scores import scores_of
from marlab.hunt.exact.check import check
from marlab.hunt.exact.config import CheckConfig
from marlab.hunt.game.build import make_game
from marlab.hunt.game.config import GameConfig
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.planner.agent import KIND, PATTERN, load_hop
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, EXCESS, REWARD, pair, team_optimum
from marlab.hunt.players.evaluation import keep_time
from marlab.hunt.players.published import OPTIMUM
from marlab.hunt.ppo.config import PPOTrainConfig
from marlab.hunt.ppo.train import train_ppo
from marlab.hunt.pretraining.run import pretrain_goals
from marlab.hunt.selfplay.config import HopTrainConfig
from marlab.hunt.selfplay.gates import FEW_SHOT_FLOORS, SINGLE_EXCESS, TOP1_WITHOUT_GOALS, Gate, Gates, least, most
from marlab.hunt.selfplay.offline import SOURCES, goals_of
from marlab.hunt.selfplay.trainer import SelfPlayTrainer
from marlab.hunt.selfplay.warm import drive_warm_start
from marlab.hunt.world_model.config import PretrainWorldConfig
from marlab.hunt.world_model.pretrain import pretrain_world
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.progress import Progress, stage
from marlab.lab.report.curves import column, level
from marlab.lab.runs.checkpoint import Keep
from marlab.lab.runs.files import read_table, write_json
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.records import read_run
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.split import SplitStore
from marlab.lab.runs.trainer import drive
from marlab.lab.verdict import Sentence, say

GATES = Gates()
NAMES = {
    "P0": "the game is the calibrated one",
    "P1": "offline data",
    "P2": "goal codes and models of others",
    "P3": "the world model",
    "P4": "the PPO baseline",
    "P5": "one learner among rule-based players",
    "P6": "self-play",
    "P7": "few-shot adaptation",
}
SAVE_EVERY = 50
"""Iterations between checkpoints."""
SHOWN = (REWARD, BEHAVIOUR_ENTROPY, EXCESS)
WORLD_EPOCHS = 20
PPO_STEPS, SINGLE_STEPS = 1_000_000, 60_000
"""Game steps per seed of the PPO baseline (P4), and of one learner among rule-based players (P5)."""
ADAPT_GAMES, ADAPT_STEPS = 64, 2400
"""P7: games per team, and game steps of every one of them; the last quarter is scored."""
ADAPTATION_SEED = 977
"""Starts and teams of P7 are the same for every training."""


def refuse_missing(config: HopTrainConfig) -> None:
    """Refuse a training whose phases do not make what it needs and that is not given it, before a folder is made."""
    c, chosen = config, config.chosen
    if c.load_data is None and "P1" not in chosen and {"P2", "P3"} & set(chosen):
        raise UserError(NO_DATA)
    if "P6" not in chosen and "P5" not in chosen:
        return
    if c.parts.goals == "latent" and c.load_moa is None and "P2" not in chosen:
        goals_of(c.mind, None)
    if c.parts.world_model and not c.exact_step and c.load_wm is None and "P3" not in chosen:
        raise UserError(f"The variant {c.variant} imagines with a world model; add P3 to --phases, or give --load-wm.")


NO_DATA = "There is no offline data: add P1 to --phases, or give --load-data."


def drive_planners(
    trainer: SelfPlayTrainer, run: Run, *, quiet: bool, name: str | None = None, stay: bool = False
) -> bool:
    """Train until the end (True), or leave the run at a safe point: between two updates of the warm start, two steps of
    the games, or two iterations. With `stay` the run is not left then, and False comes back."""
    size, seeds = trainer.config.eval_episodes, len(trainer.seeds)
    store = SplitStore(run.checkpoints, KIND, PATTERN, Keep(last=2), weights="agents", memory="replay")

    def warm_up() -> bool:
        if trainer.warm is None:
            return True
        if not drive_warm_start(trainer.warm, run, run.checkpoints, quiet=quiet):
            return False
        trainer.begin_warm()
        return True

    def forget_warm_start() -> None:
        for path in run.checkpoints.glob("warm_*.pt"):  # training goes on from its own state now
            path.unlink(missing_ok=True)

    if stay:
        keep_time(run, size, seeds)
    return drive(
        trainer, run, store, save_every=SAVE_EVERY, unit="iterations", show=SHOWN, quiet=quiet,
        name=name, prepare=warm_up, on_save=forget_warm_start, stay=stay,
        on_unit=lambda row: keep_time(run, size, seeds, row) if stay else None,
    )  # fmt: skip


class Pipeline:
    """The phases of one run."""

    def __init__(self, run: Run, config: HopTrainConfig, *, quiet: bool) -> None:
        self.run, self.config, self.quiet = run, config, quiet
        self.file = run.path / "phases.json"
        self.record: dict[str, Any] = read_table(self.file, UserError) if self.file.exists() else {}
        self.under_way = config.chosen[0]  # the phase that is being worked on
        self.inner: list[dict[str, Any]] = []  # the verdict of a phase that was stopped

    def prepare(self) -> HopTrainConfig:
        """All chosen phases before the training; returns the config with what they made."""
        steps: dict[str, Callable[[], list[Gate]]] = {
            "P0": self._check,
            "P1": self._collect,
            "P2": self._goals,
            "P3": self._world,
            "P4": self._ppo,
            "P5": self._single,
        }
        for phase in self.config.chosen:
            if phase in steps:
                self._pass(phase, steps[phase])
        return self.filled()

    def filled(self) -> HopTrainConfig:
        """The config with the paths of what earlier phases made, where it names none itself."""
        c = self.config

        def made(given: Path | None, name: str) -> Path | None:
            folder = self._folder(name)
            return folder if given is None and (folder / "run.json").exists() else given

        return replace(
            c,
            load_data=made(c.load_data, "p1_data"),
            load_moa=made(c.load_moa, "p2_goals"),
            load_wm=made(c.load_wm, "p3_world"),
        )

    def finish(self) -> None:
        if "P7" in self.config.chosen:
            self._pass("P7", self._adaptation)

    def judge_self_play(self, evaluation: dict[str, Any]) -> None:
        """P6's gate: it plays well, and it stayed at its best."""

        def gates() -> list[Gate]:
            reward = evaluation["sampled"]["over_seeds"]["reward"]["value"]
            if self.config.agent_roles:
                return []  # who sits beside rule-based players is judged by P5 and P7
            enough = GATES.self_play_share * team_optimum(self.config.game)
            end = least("P6 last tenth of training over its running maximum", stayed(self.run.path), GATES.stayed)
            return [least("P6 mean reward in self-play", reward, enough), end]

        self._pass("P6", gates)

    # --- passing ----------------------------------------------------------------------------------------------------

    def _pass(self, phase: str, work: Callable[[], list[Gate]]) -> None:
        done = self.record.get(phase)
        if done is not None and done["passed"]:
            return
        if self.run.should_stop():
            self.run.leave()
        start, self.under_way = time.monotonic(), phase
        if not self.quiet:
            print(f"phase {phase}: {NAMES[phase]}")
        gates = work()
        passed = all(gate.passed for gate in gates)
        judged = [{"name": g.name, "value": g.value, "limit": g.limit, "passed": g.passed} for g in gates]
        self.record[phase] = {"passed": passed, "seconds": round(time.monotonic() - start, 1), "gates": judged}
        write_json(self.file, self.record)
        for gate in gates:
            text = f"{gate.text()}: {'passed' if gate.passed else 'FAILED'}"
            self.run.log(text)
            if not self.quiet:
                print(text)
        if not passed and self.config.pipeline.gates == "stop":
            wrong = "; ".join(gate.text() for gate in gates if not gate.passed)
            raise UserError(f"Phase {phase} stopped the training: {wrong}. (--pipeline.gates warn goes on.)")

    def _pause(self) -> None:
        """A safe point inside a phase that is short, and begun again when it was stopped."""
        if self.run.must_stop():
            self.run.leave()

    def _folder(self, name: str) -> Path:
        return self.run.path / "phases" / name

    def _options(self, name: str) -> RunOptions:
        folder = self._folder(name)
        return RunOptions(output_dir=folder, resume=(folder / "run.json").exists())

    def _done(self, name: str) -> dict[str, Any]:
        """Results of a phase's run; one that was interrupted interrupts this run too."""
        info = read_run(self._folder(name))
        if info.status != "finished":
            self.run.add_results({f"{self.under_way}_{key}": value for key, value in info.results.items()})
            self.inner = info.verdict
            for figure in sorted((info.path / "figures").glob("*.png")):  # what there is to see of this run so far
                shutil.copyfile(figure, self.run.figure(f"{self.under_way}_{figure.name}"))
            self.run.stop(info.reason)
            self.run.leave()
        return info.results

    def tell_where(self) -> None:
        """The verdict of a run that was stopped in a phase before self-play: what that phase says, and where it was."""
        chosen = self.config.chosen
        where = say(
            "hunt.in_phase",
            phase=self.under_way,
            number=chosen.index(self.under_way) + 1,
            count=len(chosen),
            what=NAMES[self.under_way],
        )
        known = read_run(self.run.path).verdict if self.under_way == "P7" else self.inner  # of self-play, or the phase
        said = [Sentence(entry["key"], entry["numbers"]) for entry in known[:1]]
        self.run.set_verdict(where, *said, say("lab.go_on"))

    # --- the phases ---------------------------------------------------------------------------------------------------

    def _check(self) -> list[Gate]:
        report = check(CheckConfig(), quiet=self.quiet, part_done=self._pause)
        return [most("P0 figures that differ from the calibration", len(report.failures), 0)]

    def _collect(self) -> list[Gate]:
        config = HuntCollectConfig(game=self.config.game, rows=self.config.pipeline.rows)
        folder = self._folder("p1_data")
        if not (folder / "run.json").exists() or read_run(folder).status != "finished":
            collect(config, self._options("p1_data"), quiet=self.quiet)
        return [least("P1 replay equality", self._done("p1_data")["replay_equality"], GATES.replay)]

    def _goals(self) -> list[Gate]:
        """The models of others, pretrained on offline data: those that planners begin with and go on training."""
        c, size = self.config, self.config.pipeline
        source = SOURCES[c.parts.goals][0]
        third, half = max(1, size.goal_epochs // 3), max(1, size.goal_epochs // 2)
        made = PretrainGoalsConfig(
            data=self._data(), goal_source=source, hidden=c.hidden, paths=c.paths, epochs=size.goal_epochs,
            vae_epochs=min(half, size.vae_epochs or third), batch_size=size.goal_batch_size,
            belief_games=size.belief_games, overfit_check=False, device=c.device,
            legacy_double_softmax=c.learn.legacy_double_softmax,
            legacy_post_exit_rows=c.learn.legacy_moa_buffer == "rows-after-exit",
        )  # fmt: skip
        pretrain_goals(made, self._options("p2_goals"), quiet=self.quiet)
        results = self._done("p2_goals")
        top1 = GATES.top1 if source != "none" else TOP1_WITHOUT_GOALS
        return [
            least(f"P2 validation {name} of the models of others", results[f"validation_{name}"], limit)
            for name, limit in (("top1", top1), ("top3", GATES.top3))
        ]

    def _data(self) -> Path:
        data = self.filled().load_data
        if data is None:
            raise UserError(NO_DATA)
        return data

    def _world(self) -> list[Gate]:
        config = PretrainWorldConfig(data=self._data(), epochs=WORLD_EPOCHS, device=self.config.device)
        pretrain_world(config, self._options("p3_world"), quiet=self.quiet)
        results = self._done("p3_world")
        return [
            most("P3 teleport rate", results["test_teleport_rate"], GATES.teleport),
            most("P3 vanish rate", results["test_vanish_rate"], GATES.vanish),
        ]

    def _ppo(self) -> list[Gate]:
        c = self.config
        config = PPOTrainConfig(
            game=c.game,
            seeds=c.seeds,
            total_steps=PPO_STEPS,
            device=c.device,
            eval_episodes=c.eval_episodes,
        )
        train_ppo(config, self._options("p4_ppo"), quiet=self.quiet)
        results, optimum = self._done("p4_ppo"), team_optimum(c.game)
        wide = GATES.seat_spread * optimum / OPTIMUM
        return [
            least("P4 mean reward of PPO", results["reward_sampled"]["value"], GATES.reward_share * optimum),
            most("P4 best minus worst seat of PPO", results["seat_spread_sampled"]["value"], wide),
        ]

    def _single(self) -> list[Gate]:
        """One learner among rule-based players: its models of them must be nearly as good as possible."""
        c = self.filled()
        config = replace(
            c,
            agent_roles=c.single_roles,
            total_steps=SINGLE_STEPS,
            guard=replace(c.guard, drop=0.0),
        )
        with stage("one learner begins", quiet=self.quiet):
            trainer = SelfPlayTrainer(config, self.run.log)
        with Run.open("hunt", config, self._options("p5_single")) as run:
            drive_planners(trainer, run, quiet=self.quiet, name="one learner")
        self._done("p5_single")
        last = read_metrics(self._folder("p5_single") / "metrics.jsonl")[-1]
        seat = trainer.seats[0]
        about = {f"{pair(seat, j)}/excess": (j, role) for j, role in enumerate(trainer.roles) if j not in trainer.seats}
        return [
            most(f"P5 excess cross-entropy about {role.kind.name} in seat {j + 1}", last[name], SINGLE_EXCESS)
            for name, (j, role) in about.items()
            if name in last
        ]

    def _adaptation(self) -> list[Gate]:
        """Against teams it never met, by belief alone: a report, with floors for the default game."""
        path = self.run.path
        device = choose_device(self.config.device)
        agents = load_hop(path)
        planners = Planners(agents, {})
        agent = Agent(
            "agent", agents.config.variant, planners.make, planners.make, agents.seeds, agents.game, path, "agent"
        )
        rngs = Rngs(ADAPTATION_SEED, device)
        game = make_game(self.config.game, rngs.torch("maps", "cpu"), device=device)
        teams = [fitted(team(text), game.players) for text in FEW_SHOT_FLOORS]
        plan = seat_all(game, [Cell(agent, one) for one in dict.fromkeys(teams)], ADAPT_GAMES, {})
        starts = Starts(game, ADAPT_GAMES, ADAPTATION_SEED)
        with Progress("among strangers", total=ADAPT_STEPS, unit="steps", quiet=self.quiet) as bar:

            def tick(steps: int) -> None:
                bar.advance(steps)
                self._pause()

            stream = play_stream(game, plan, starts, ADAPT_STEPS, rngs.torch("games"), tick)
        scores = scores_of(plan, stream, ADAPT_STEPS, ADAPT_STEPS // 4)
        write_json(path / "few_shot.json", [score.to_dict() for score in scores])
        if self.config.game != GameConfig():
            return []
        return [
            least(f"P7 few-shot reward among {score.scenario}", score.mean, FEW_SHOT_FLOORS[score.scenario])
            for score in scores
        ]


def stayed(path: Path) -> float:
    """Mean reward of the last tenth of a training over the highest mean of some iterations."""
    best, end = level(column(read_metrics(path / "metrics.jsonl"), REWARD))
    return end / best if best > 0 else 0.0
