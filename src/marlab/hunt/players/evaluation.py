"""The end of a training: fresh episodes of every seed beside the best rule-based players in the same seats, a verdict.

The whole evaluation is one batch a mode, and the same on every machine and with every time limit. A training that was
stopped, or that has too little time left, gets as many episodes as fit, in batches that grow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch

from marlab.hunt.game.rules import Game
from marlab.hunt.players.characters import Character
from marlab.hunt.players.episodes import (
    MODES,
    REWARD,
    describe,
    episode_report,
    interval,
    keep_evaluation,
    over_seeds,
    team_optimum,
)
from marlab.hunt.players.rollout import Episodes, play
from marlab.hunt.players.seats import Kind, Role
from marlab.hunt.players.strangers import seat_characters
from marlab.lab.progress import Progress, stage
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.rng import Rngs
from marlab.lab.runs.run import Run
from marlab.lab.stats import mean_interval, welch
from marlab.lab.verdict import Sentence, say, side

FIRST = 16
"""Episodes of the first batch where the time is short."""
GROWTH = 4
MARGIN = 1.25
"""A batch is begun when so many times its expected seconds are left."""
BASELINE_EPISODES = 2000
BASELINE_S = 1.0
"""Seconds that the rule-based players may take."""
SMALL_BATCH = 200
"""Games that take about as long as fewer of them."""
EVALUATION_SHARE = 0.2
"""Most of a time limit that is kept back for the evaluation."""
FIGURES_S, FIGURES_SHARE = 3.0, 0.1
"""Seconds that figures may take, and most of a time limit that is kept back for them."""


class Plays(Protocol):
    """A training whose agents can be asked to play."""

    step: int
    total: int
    seeds: tuple[int, ...]
    seats: tuple[int, ...]
    """Where they learned."""

    @property
    def roles(self) -> Sequence[Character]:
        """Everybody's, where rule-based players sit beside them."""
        ...

    def episodes(self, mode: str, size: int, stream: str, tick: Callable[[], None]) -> list[Episodes]:
        """`size` fresh episodes of every seed, with drawn ("sampled") or best ("greedy") actions; `tick` is called
        after every step of the games, and its exceptions end them."""
        ...

    @property
    def evaluation_game(self) -> Game: ...

    def about(self) -> dict[str, Any]:
        """What evaluation.json says first."""
        ...


def keep_time(run: Run, size: int, seeds: int, row: Mapping[str, Any] | None = None) -> None:
    """Keep back what the ending needs, by the metrics of the newest iteration; a share of the limit at most."""
    budget = run.budget
    if not budget.limited:
        return
    whole = math.inf
    if row is not None and row.get("episode/length") and row.get("time/steps_per_second"):
        # Few games at a time are slower each, so a small evaluation takes longer than its steps say.
        games = max(size * seeds, SMALL_BATCH)
        whole = len(MODES) * games * row["episode/length"] / row["time/steps_per_second"]
    budget.expect("evaluation", min(EVALUATION_SHARE * budget.limit_s, BASELINE_S + MARGIN * whole))
    budget.expect("figures", min(FIGURES_S, FIGURES_SHARE * budget.limit_s))


def conclude(
    run: Run, trainer: Plays, size: int, *, done: bool, quiet: bool, draw: Callable[[], object]
) -> dict[str, Any] | None:
    """Evaluate a training that is `done`, or as far as it came, draw it, and say what came of it."""
    evaluation = evaluate_run(run, trainer, size, done=done, quiet=quiet)
    rows = read_metrics(run.path / "metrics.jsonl")
    if evaluation is not None:
        keep_evaluation(run, evaluation)
    with run.budget.part("figures"), stage("figures", quiet=quiet):
        if rows:
            draw()
    if evaluation is not None and not quiet:
        print(describe(evaluation))
    run.set_verdict(*_verdict(trainer, evaluation, rows, size))
    return evaluation


def _verdict(
    trainer: Plays, evaluation: Mapping[str, Any] | None, rows: Sequence[Mapping[str, Any]], planned: int
) -> list[Sentence]:
    if evaluation is None:
        return [_curve(rows), say("lab.go_on")]
    report, beside = evaluation["sampled"]["over_seeds"]["reward_learners"], evaluation["baseline"]
    if report["low"] is None:  # one seed: its own episodes are what there is
        report = evaluation["sampled"]["seeds"][str(trainer.seeds[0])]["reward_learners"]
    gain = beside["gain"]
    bounds = (gain["low"], gain["high"])
    key = {"above": "above_rules", "below": "below_rules", "unclear": "like_rules"}[side(bounds)]
    if trainer.step == 0:  # a warm start is no merit of the training
        key = "only_start"
    share = report["value"] / team_optimum(trainer.evaluation_game.config)
    first = say(f"hunt.{key}", reward=report["value"], interval=(report["low"], report["high"]), gain=gain["value"],
                gain_interval=bounds, rule=beside["rule"], share=share)  # fmt: skip
    episodes = evaluation["sampled"]["seeds"][str(trainer.seeds[0])]["episodes"]
    if trainer.step < trainer.total or episodes < planned:
        cut = say("hunt.cut", done=trainer.step, total=trainer.total, episodes=episodes, planned=planned)
        return [first, cut, say("lab.go_on")]
    more = [say("hunt.one_seed")] if len(trainer.seeds) == 1 else []
    return [first, *more, say("hunt.next_trained")]


def _curve(rows: Sequence[Mapping[str, Any]]) -> Sentence:
    """What the training itself showed, where there was no time for fresh episodes."""
    rewards = [row[REWARD] for row in rows if row.get(REWARD) is not None]
    if not rewards:
        return say("hunt.nothing_learnt")
    count = max(1, len(rewards) // 10)
    first, last = (sum(part) / count for part in (rewards[:count], rewards[-count:]))
    return say("hunt.only_curve", last=last, first=first, count=count)


class Cut(Exception):
    """The time is up, or somebody wants the process to end."""


def evaluate(trainer: Plays, size: int, tick: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """The whole evaluation: `size` episodes of every seed in every mode."""
    played = {mode: trainer.episodes(mode, size, f"evaluation {mode}", tick) for mode in MODES}
    return _report(trainer, played)


def evaluate_run(run: Run, trainer: Plays, size: int, *, done: bool, quiet: bool) -> dict[str, Any] | None:
    """The evaluation of a training that is `done`, or what the time allows of it; None where not even that.

    A run that does not get the whole of it counts as interrupted, and is evaluated when it is resumed.
    """

    def tick() -> None:
        bar.advance(1)
        if run.must_stop():
            raise Cut

    with run.budget.part("evaluation"), Progress("evaluation", unit="steps of the games", quiet=quiet) as bar:
        try:
            if done and not run.budget.limited:
                return evaluate(trainer, size, tick)
            if not done and run.signalled:
                return None
            return _as_time_allows(run, trainer, size, done, tick)
        except Cut:
            run.stop()
            return None


def _as_time_allows(run: Run, trainer: Plays, size: int, done: bool, tick: Callable[[], None]) -> dict[str, Any] | None:
    """Batches that grow, until the whole evaluation fits, or no further batch does."""
    pooled: dict[str, list[Episodes]] = {}
    count, batch = 0, min(FIRST, size)
    try:
        while True:
            began = time.monotonic()
            for mode in MODES:
                played = trainer.episodes(mode, batch, f"evaluation {mode} from {count}", tick)
                pooled[mode] = _joined(pooled.get(mode), played)
            count += batch
            each = (time.monotonic() - began) / batch
            if done and run.budget.fits(MARGIN * each * size):
                return evaluate(trainer, size, tick)
            batch = int(min(GROWTH * batch, size - count, run.budget.left() / (MARGIN * each)))
            if batch < 1:
                break
    except Cut:
        pass
    run.stop("time limit")
    return _report(trainer, pooled) if pooled else None


def _joined(before: list[Episodes] | None, more: list[Episodes]) -> list[Episodes]:
    if before is None:
        return more
    return [Episodes(*(torch.cat(pair) for pair in zip(*seed))) for seed in zip(before, more)]


def _report(trainer: Plays, played: Mapping[str, list[Episodes]]) -> dict[str, Any]:
    game = trainer.evaluation_game
    report: dict[str, Any] = trainer.about()
    for mode, blocks in played.items():
        reports = [episode_report(game.config, episodes, trainer.seats) for episodes in blocks]
        report[mode] = {"seeds": dict(zip(map(str, trainer.seeds), reports)), "over_seeds": over_seeds(reports)}
    report["baseline"] = baseline(game, trainer.roles, trainer.seats, played["sampled"])
    return report


# --- beside rule-based players ----------------------------------------------------------------------------------------


def baseline(
    game: Game, roles: Sequence[Character], seats: Sequence[int], learners: Sequence[Episodes]
) -> dict[str, Any]:
    """The best rule in the learners' seats, what it earns there, and how much more the learners earn.

    The interval of the difference is over seeds where there are several, else over episodes.
    """
    generator = Rngs(0, game.device).torch("baseline")
    found = []
    for kind in (Kind.NS, Kind.NH) if game.config.rules == "hunt" else (Kind.ND,):
        kinds = [Role(kind) if seat in seats else role for seat, role in enumerate(roles)]
        episodes = play(game, seat_characters(game, kinds), BASELINE_EPISODES, generator)
        found.append((kind.name, _earned(episodes, seats)))
    name, earned = max(found, key=lambda entry: float(entry[1].mean()))
    means = [_earned(episodes, seats) for episodes in learners]
    gain = float(np.mean([m.mean() for m in means])) - float(earned.mean())
    low, high = _gain_interval(means, earned)
    return {"rule": name, "reward": interval(earned), "gain": {"value": gain, "low": low, "high": high}}


def _earned(episodes: Episodes, seats: Sequence[int]) -> np.ndarray:
    """[B] mean reward of the seats."""
    return episodes.reward[:, list(seats)].mean(1).double().cpu().numpy()


def _gain_interval(means: Sequence[np.ndarray], earned: np.ndarray) -> tuple[float | None, float | None]:
    if len(means) > 1:
        _, low, high = mean_interval(np.array([m.mean() for m in means]) - earned.mean())
        return float(low), float(high)
    found = welch(means[0].tolist(), earned.tolist())
    return (None, None) if found is None else (float(found[0]), float(found[1]))
