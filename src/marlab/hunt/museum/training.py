"""Exhibits about learning by playing: agents that find the stag and lose it again, and all faults together.

Both are trainings of planning agents with the original's settings beside trainings with today's. One fault has no
switch in the trainer because nobody should train with it, rows of players who left: `rows_after_exit` brings it back
for the time of an exhibit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marlab.hunt.game.rules import STAY, Outcome
from marlab.hunt.museum.run import Exhibit, Finding, Museum, finished, going_on
from marlab.hunt.others.config import PretrainGoalsConfig
from marlab.hunt.planner.config import PlanConfig
from marlab.hunt.players.episodes import BEHAVIOUR_ENTROPY, ONLINE_CROSS_ENTROPY, REWARD
from marlab.hunt.players.published import MCTS_END, MCTS_PEAK, OPTIMUM, RANDOM_CE, RANDOM_ENTROPY, RANDOM_REWARD
from marlab.hunt.selfplay.config import GuardConfig, GuestConfig, HopTrainConfig, LearnConfig
from marlab.hunt.selfplay.play import SelfPlay
from marlab.hunt.selfplay.trainer import HopTrainer
from marlab.hunt.training.drive import drive_planners
from marlab.lab.report.curves import column
from marlab.lab.report.figures import Curve, curves, moving_mean, reference_lines
from marlab.lab.report.style import legend, panels, save
from marlab.lab.runs.metrics import read_metrics
from marlab.lab.runs.run import Run
from marlab.lab.search.config import SearchConfig

SMOOTH = 7
GAMES, STEPS = 64, 12
"""Games of a small training, and steps of each per iteration."""


# --- faults ---------------------------------------------------------------------------------------------------------


@contextmanager
def rows_after_exit() -> Iterator[None]:
    """For as long as the block lasts, players who left go on "staying" in the replay, with every action legal, until
    their episode is over."""
    try:
        SelfPlay._write = _write_everybody  # type: ignore[method-assign]
        yield
    finally:
        SelfPlay._write = _WRITE  # type: ignore[method-assign]


def _write_everybody(
    self: SelfPlay, rows: Tensor, policy: Tensor, outcome: Outcome, alive: Tensor, code: Tensor
) -> None:
    gone = ~alive.unsqueeze(-1)
    rows, policy = rows.clone(), policy.clone()
    rows[..., : self.game.actions] |= gone.to(rows.dtype)
    policy[..., STAY] += gone.squeeze(-1).to(policy.dtype)
    executed = torch.where(alive, outcome.executed, STAY)
    _WRITE(self, rows, policy, outcome._replace(executed=executed), torch.ones_like(alive), code)


_WRITE = SelfPlay._write


# --- trainings ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Training:
    """What an exhibit keeps of a training: one value per iteration."""

    reward: list[float]
    entropy: list[float]
    cross_entropy: list[float]

    def smooth(self, values: Sequence[float]) -> np.ndarray:
        return moving_mean(np.array(values), SMOOTH)

    @property
    def peak(self) -> float:
        return float(np.nanmax(self.smooth(self.reward)))

    @property
    def end(self) -> float:
        """Mean of the last tenth."""
        return float(np.nanmean(self.reward[-max(3, len(self.reward) // 10) :]))

    def to_dict(self) -> dict[str, Any]:
        return {"reward": self.reward, "entropy": self.entropy, "cross_entropy": self.cross_entropy,
                "peak": self.peak, "end": self.end}  # fmt: skip


def small(museum: Museum, **changes: Any) -> HopTrainConfig:
    """A training of minutes: few games, two small trees, no imagined guests, as in the original."""
    plan = PlanConfig(trees=2, search=SearchConfig(simulations=16))
    learn = LearnConfig(updates=20, batch_size=512, moa_updates=8, moa_batch_size=128)
    config = HopTrainConfig(
        variant="hop", seeds=str(museum.config.seed), num_envs=GAMES, steps=STEPS, plan=plan, learn=learn,
        total_steps=GAMES * STEPS * museum.config.iterations, device=museum.config.device,
        guests=GuestConfig(share=0.0),
    )  # fmt: skip
    return replace(config, **changes)


def models_of_others(museum: Museum) -> PretrainGoalsConfig:
    """Models that know stag and hare hunters, for trainings that begin with them."""
    return PretrainGoalsConfig(
        data=museum.data(), goal_source="outcome", epochs=museum.config.epochs, belief_games=0, overfit_check=False,
        seed=museum.config.seed, device=museum.config.device,
    )  # fmt: skip


def as_the_original(config: HopTrainConfig) -> HopTrainConfig:
    """The same training with the original's habits: raw beta = 2, Q shrunk to 0, only the newest episodes (and nothing
    offline beside them), no slow weights for planning, no turned boards, and no way back."""
    search = replace(config.plan.search, root="puct", legacy_q=True, normalise="none", c1=1.0)
    plan = replace(config.plan, legacy_beta=2.0, target="boltzmann", search=search)
    fresh = max(64, config.num_envs * config.steps // 2)  # of each player: about what an iteration brings
    learn = replace(
        config.learn, replay=fresh, follow=0.0, symmetries=False, final_learning_rate=config.learn.learning_rate,
        lessons=0.0,
    )  # fmt: skip
    return replace(config, plan=plan, learn=learn, guard=replace(config.guard, drop=0.0))


def followed(config: HopTrainConfig, name: str, museum: Museum) -> Training:
    """Train, and keep reward, entropy and how well the others are predicted."""
    out = museum.part(name.replace(" ", "_"))
    if not finished(out):
        with Run.open("hunt", config, going_on(out)) as run:
            drive_planners(HopTrainer(config), run, quiet=museum.quiet, name=name)
    rows = read_metrics(museum.whole(out) / "metrics.jsonl")
    return Training(*(column(rows, name).tolist() for name in (REWARD, BEHAVIOUR_ENTROPY, ONLINE_CROSS_ENTROPY)))


def _draw(trainings: Mapping[str, Training], path: Path, panels_of: Sequence[str]) -> None:
    figure, axes = panels(1, len(panels_of), size=(6.4, 4.6))
    shown = {
        "reward": (
            "mean reward per player",
            "What they earn",
            {"random": RANDOM_REWARD, "original's end": MCTS_END, "team optimum": OPTIMUM},
        ),
        "entropy": ("entropy of behaviour [nats]", "How random they are", {"random": RANDOM_ENTROPY}),
        "cross_entropy": ("cross-entropy [nats]", "Predicting the others", {"random players": RANDOM_CE}),
    }
    for ax, key in zip(axes, panels_of):
        ylabel, title, lines = shown[key]
        series = {
            name: Curve(np.arange(1, len(t.reward) + 1), t.smooth(getattr(t, key))) for name, t in trainings.items()
        }
        curves(ax, series, xlabel="iteration", ylabel=ylabel, title=title)
        ax.set_ylim(0, max(ax.get_ylim()[1], 1.08 * max(lines.values())))
        reference_lines(ax, lines)
    legend(figure)
    save(figure, path)


# --- rise, then fall ------------------------------------------------------------------------------------------------


def _rise_then_fall(museum: Museum) -> Finding:
    config = small(museum, load_data=museum.data(), load_moa=museum.pretrained("models", models_of_others(museum)))
    trainings = {
        "as the original learnt": followed(as_the_original(config), "as the original", museum),
        "replay, slow weights, scaled beta": followed(config, "as here", museum),
    }
    _draw(trainings, museum.picture, ("reward", "entropy"))
    old, new = trainings.values()
    summary = (
        f"With the newest episodes only, raw beta and no way back, reward peaks at {old.peak:.2f} and ends at "
        f"{old.end:.2f} with an entropy of {np.nanmean(old.entropy[-5:]):.2f} nats; with replay, slow weights and "
        f"scaled beta it ends at {new.end:.2f}, {new.end / new.peak:.0%} of its peak. The original: about "
        f"{MCTS_PEAK}, then {MCTS_END}."
    )
    appeared = old.end < 0.8 * old.peak and new.end > 0.9 * new.peak and new.end > old.end + 0.3
    return Finding(summary, appeared, {name: t.to_dict() for name, t in trainings.items()})


RISE_THEN_FALL = Exhibit(
    "Rise, then fall",
    "reward that was once there is lost, while behaviour stays nearly random and nothing brings the best weights back",
    "marlab hunt train --variant hop --load-data DATA --plan.legacy-beta 2 --plan.target boltzmann "
    "--plan.search.legacy-q --learn.replay 400 --learn.follow 0 --guard.drop 0", _rise_then_fall,
)  # fmt: skip


# --- everything together --------------------------------------------------------------------------------------------


def with_all_switches(config: HopTrainConfig) -> HopTrainConfig:
    """The same training with every fault that has a switch."""
    return replace(
        config, game=replace(config.game, legacy_global_prev_actions=True), guard=GuardConfig(drop=0.0),
        plan=replace(config.plan, legacy_beta=2.0, target="boltzmann"),
        learn=replace(config.learn, legacy_double_softmax=True),
    )  # fmt: skip


def _all_together(museum: Museum) -> Finding:
    """All legacy switches at once, compared with what the original came to."""
    config = museum.config
    faults: dict[str, Any] = {"legacy_double_softmax": True, "legacy_global_prev_actions": True,
                              "legacy_post_exit_rows": True}  # fmt: skip
    codes = PretrainGoalsConfig(data=museum.data(), epochs=max(6, config.epochs), vae_epochs=2, prototype_epochs=3,
                                belief_games=0, overfit_check=False, seed=config.seed, device=config.device,
                                **faults)  # fmt: skip
    codes_run = museum.pretrained("codes", codes)
    base = small(museum, variant="hopplus-mcts", load_moa=codes_run)
    with rows_after_exit():
        together = followed(with_all_switches(base), "all faults", museum)
    trainings = {"all faults together": together}
    _draw(trainings, museum.picture, ("reward", "entropy", "cross_entropy"))
    tail = max(3, len(together.reward) // 10)
    ce = float(np.nanmean(together.cross_entropy[-tail:]))
    expected = 0.6 <= together.end <= 0.8 and (ce > 5 or abs(ce - RANDOM_CE) <= 0.05)
    verdict = "So did the original."
    if not expected:
        verdict = "The original did otherwise, so these faults are not its whole explanation."
    summary = (
        f"All faults together end at a mean reward of {together.end:.2f} (expected 0.6 to 0.8) and an online "
        f"cross-entropy of {ce:.2f} nats (expected above 5, or within 0.05 of {RANDOM_CE}), at an entropy of behaviour "
        f"of {np.nanmean(together.entropy[-tail:]):.2f} nats. {verdict}"
    )
    return Finding(summary, expected, {"training": together.to_dict(), "online_cross_entropy": ce})


ALL_TOGETHER = Exhibit(
    "All faults together",
    "mean reward 0.6 to 0.8, and an online cross-entropy above 5 or that of predicting random players",
    "marlab hunt museum all-together --iterations 126", _all_together,
)  # fmt: skip
