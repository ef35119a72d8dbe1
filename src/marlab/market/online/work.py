"""The work of `marlab market online`: train in a run, keep the best version, say what it earns beside the rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.progress import stage
from marlab.lab.runs.checkpoint import CheckpointStore, Keep
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.runs.trainer import drive
from marlab.lab.verdict import Sentence, say, side
from marlab.market.agent.layers import AROUND
from marlab.market.networks import around as files
from marlab.market.online.command import OnlineCommand
from marlab.market.online.net import AroundRule
from marlab.market.online.refit import Refits
from marlab.market.online.settings import RULE, START_FILE, WEAK, OnlineConfig
from marlab.market.online.trainer import OnlineTrainer
from marlab.market.simulator.experts import find_player

KIND = "market/online"
LAST = "around_last.npz"
"""The newest network; `around.npz` is the best one."""
SHOWN = ("reward/day", "steer/gain")
LAST_WORD = 2.5
"""The last comparison takes so many times as long as one along the way: the rule plays too."""


def learn(
    config: OnlineConfig, options: RunOptions | None = None, *, engine: EngineConfig | str | None = None,
    preset: Preset | None = None, command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Train (or resume) by a config; returns the run, closed."""
    asked = OnlineCommand.of(config)
    config, engine, quiet = asked.run_config(), asked.engine_config(engine), quiet or asked.quiet
    if config.refits or config.ground == "real":
        for name in config.experts:
            find_player(name)
    device = choose_device(config.device)
    trainer = OnlineTrainer(config, device)
    with Run.open("market", config, options, preset=preset, command=command) as run:
        run.set_device(device)
        run.judge_by(config.judged_by)
        trainer.refits = Refits(config, run.path, engine, stop=run.must_stop, log=run.log, quiet=quiet)
        trainer.refits.cloned = trainer.pool.cloned
        for number, name in enumerate(trainer.pool.names):
            run.log(f"seat number {number}: {name}")
        store = CheckpointStore(run.checkpoints, KIND, "online_{step}.ckpt.pt", Keep(last=2))

        def save() -> None:
            files.save(run.checkpoints / LAST, trainer.net.plain())
            files.save(run.checkpoints / AROUND, trainer.best_net().plain())

        def note(values: Mapping[str, Any]) -> None:
            if run.budget.limited and "time/steer_seconds" in values:
                run.budget.expect("comparison", LAST_WORD * float(values["time/steer_seconds"]))
            for alarm in trainer.alarms:
                run.log(f"alarm after generation {trainer.step}: {alarm}")
            if values.get("steer/rolled_back"):
                run.log(f"generation {trainer.step} fell too far below the best: rolled back")

        def begin() -> bool:
            if trainer.step == 0:
                run.checkpoints.mkdir(exist_ok=True)
                files.save(run.checkpoints / START_FILE, trainer.net.plain())
            if config.start != RULE and config.steer_every and trainer.step == 0:
                with stage("comparing the start with the rule", quiet):
                    told = trainer.compare()
                trainer.guard.best = trainer.guard.best._replace(gain=told["steer/gain"])
            return True

        done = drive(
            trainer, run, store, save_every=1, unit="generations", show=SHOWN, quiet=quiet, on_save=save,
            on_unit=note, prepare=begin, device=device, stay=True,
        )  # fmt: skip
        if not run.signalled:
            with run.budget.part("comparison"), stage("comparing the best version with the rule", quiet):
                first = [] if config.start == RULE else [AroundRule.of(files.load(run.checkpoints / START_FILE))]
                told, *others = trainer.last_word(*first)
                run.add_results(results_of(told))
                for other in others:
                    run.add_results({"start minus rule": _result(other, "gain")})
            run.set_verdict(*verdict(run.results, config, trainer.guard.rollbacks, done))
            draw(run)
    return run


def draw_again(run: Run, config: OnlineConfig, quiet: bool) -> None:
    """Figure and verdict from the run's metrics and results."""
    run.set_verdict(*verdict(run.results, config, 0, not run.unfinished))
    draw(run)


def results_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """The comparison as results of the run."""
    found = {"learner minus rule": _result(told, "gain")}
    for level in ("first", "middle"):
        if f"steer/gain_{level}" in told:
            found[f"learner minus rule, {level} level"] = _result(told, f"gain_{level}")
    found["score of the learner"] = {"value": told["steer/score"]}
    found["score of the rule"] = {"value": told["steer/rule_score"]}
    return found


def _result(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    value, low, high = (float(told[f"steer/{name}{end}"]) for end in ("", "_low", "_high"))
    return {"value": value, "low": low, "high": high, "unit": "of the opening balance"}


def verdict(results: Mapping[str, Any], config: OnlineConfig, rollbacks: int, done: bool) -> list[Sentence]:
    """Did training help, from where, and what to do next."""
    after = say("market.next_online") if done else say("lab.go_on")
    gain = results.get("learner minus rule")
    if gain is None:
        return [say("market.online_unmeasured"), after]
    interval = (gain["low"], gain["high"])
    told = say(f"market.online_{side(interval)}", difference=gain["value"], interval=interval)
    start = results.get("start minus rule")
    if config.start == WEAK and start is not None:
        before = (start["low"], start["high"])
        key = "market.online_back" if interval[0] > before[1] else "market.online_not_back"
        told = say(key, start=start["value"], before=before, now=gain["value"], after=interval)
    return [told, after]


def draw(run: Run) -> None:
    """The curves, where there is something to draw with."""
    from marlab.market.online.figures import draw_learning

    draw_learning(run)
