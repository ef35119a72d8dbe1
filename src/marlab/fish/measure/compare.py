"""Policies side by side on the same seeded arenas, with the ceiling of what any policy could reach.

Differences are paired by episode. Intervals are Student's 95 % intervals over episodes, because fish of one episode
share a predator and are not independent. Arenas are played in batches of a fixed size, every policy on one batch before
anybody plays the next: an evaluation that is cut short has fewer arenas, and all that it has is paired.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.fish.measure.ceiling import ceiling, doomed_mask
from marlab.fish.measure.policies import Policy, scripted
from marlab.fish.measure.probe import run_probe
from marlab.fish.measure.stats import death_stats, survival_at
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import scene
from marlab.lab.config import to_dict
from marlab.lab.progress import Progress
from marlab.lab.runs.measurements import Measurements
from marlab.lab.runs.run import Run
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import Sentence, say, side

LADDER = ("sidestep", "random", "hold", "brake", "flee", "south")
"""Scripted policies in the order in which they are played: the strongest is needed most."""
RIVALS = ("slip", "dodge", "swerve", "evade", "sidestep", "flee", "random", "hold")
"""The same for seas whose predator is not the standard one."""
SHOWN = 4
"""Decimals of a verdict: what they do not show is not claimed."""
ARENAS = 50
"""Arenas that are played at once. Networks round differently in batches of another size."""
CODE = (
    "fish/sea", "fish/measure/ceiling.py", "fish/measure/compare.py", "fish/measure/policies.py",
    "fish/measure/probe.py", "fish/training/attention.py", "fish/training/networks.py", "fish/training/own_frame.py",
    "lab/ppo",
)  # fmt: skip
"""Where deaths and bounds are computed: a change in any of these files makes them other measurements."""
Known = Callable[[str, Callable[[], Any]], Any]
"""What is known under a name, or else is made."""
Players = Callable[[int], Mapping[str, Policy]]
"""The policies for a batch by its number, which seeds what is random about them."""


@dataclass(frozen=True)
class Score:
    """How one policy did on the arenas."""

    survival: NDArray[np.float64]  # [E] share of fish alive at the end
    deaths: NDArray[np.int64]  # [E, N] death steps, -1 for survivors

    def line(self) -> dict[str, Any]:
        mean, low, high = (float(v) for v in mean_interval(self.survival))
        stats = death_stats(self.deaths)
        later = self.deaths[self.deaths != 1]
        return {
            "survival": mean, "low": low, "high": high, "worst_episode": float(self.survival.min()),
            "early_death_fraction_100": stats["early_death_fraction_100"],
            "step_one_ratio": float((self.deaths == 1).mean()),
            "survival_after_step_one": float((later < 0).mean()) if later.size else None,
            **survival_at(self.deaths),
        }  # fmt: skip


@dataclass(frozen=True)
class EvalReport:
    """All policies on the same arenas."""

    scores: dict[str, Score]  # "policy" is the checkpoint's
    doomed: NDArray[np.int64]  # [E] fish that no action saves at step one
    bounds: tuple[float, float] | None  # lowest and highest possible survival of a perfect policy
    arenas: tuple[int, ...]  # [E] their seeds
    complete: bool = True  # every arena that was asked for was played
    hunted: bool = False  # the predator hunts: nobody knows how many can be saved
    scene: str = "v32"  # where; arenas of one seed are the same in the same scene only

    def saved_share(self, name: str) -> float | None:
        """Survivors as a share of the fish that can be saved (by the upper bound where it is known)."""
        if self.hunted:
            return None
        fish = self.scores[name].deaths.shape[1]
        possible = self.bounds[1] if self.bounds else float(1 - self.doomed.mean() / fish)
        return float(self.scores[name].survival.mean()) / possible

    def against(self, other: str) -> tuple[float, float, float]:
        """Paired difference of survival to another policy, with its interval."""
        mean, low, high = mean_interval(self.scores["policy"].survival - self.scores[other].survival)
        return float(mean), float(low), float(high)

    def cases(self) -> dict[str, float]:
        """Survival arena by arena, so that evaluations of other policies can be paired with this one."""
        score = self.scores["policy"]
        where = f"{self.scene}, {score.deaths.shape[1]} fish"
        return {f"arena {seed} of {where}": float(share) for seed, share in zip(self.arenas, score.survival)}

    def results(self) -> dict[str, Any]:
        """The headline numbers for the run's record."""
        score, line = self.scores["policy"], self.scores["policy"].line()
        size = f"{len(score.survival)} x {score.deaths.shape[1]} held-out fish"
        values = {
            "survival": {**{k: line[k] for k in ("low", "high")}, "value": line["survival"], "unit": "share of fish"},
            "worst episode": {"value": line["worst_episode"], "unit": "share of fish"},
        }
        if not self.hunted:
            values["share of the possible"] = {"value": self.saved_share("policy"), "unit": "share of savable fish"}
        if (script := self.reference()) is not None:
            mean, low, high = self.against(script)
            name = "minus side-step" if script == "sidestep" else "minus best script"
            values[name] = {"value": mean, "low": low, "high": high, "unit": "share of fish, paired"}
        return {name: {**value, "note": size} for name, value in values.items()}

    def best_script(self) -> str | None:
        """The scripted policy that saves most, None where none was played."""
        scripts = {name: float(s.survival.mean()) for name, s in self.scores.items() if name != "policy"}
        return max(scripts, key=lambda name: scripts[name]) if scripts else None

    def reference(self) -> str | None:
        """The script that differences are told to: side-step in the standard sea, in the others the best one."""
        return self.best_script() if "slip" in self.scores else "sidestep" if "sidestep" in self.scores else None

    def verdict(self, iteration: int) -> list[Sentence]:
        """How well the policy of `iteration` did beside the best script, and how much is left to gain."""
        score, line, script = self.scores["policy"], self.scores["policy"].line(), self.best_script()
        told = {
            "iteration": iteration, "survival": line["survival"], "interval": (line["low"], line["high"]),
            "episodes": len(score.survival), "fish": score.deaths.shape[1],
        }  # fmt: skip
        if script is None:
            sentences = [say("fish.survival", **told)]
        else:
            mean, *interval = self.against(script)
            key = f"fish.{side([round(bound, SHOWN) for bound in interval])}_script"
            sentences = [say(key, **told, script=script, difference=mean, difference_interval=interval)]
        if self.bounds is not None:
            sentences.append(say("fish.of_possible", share=self.saved_share("policy"), possible=self.bounds[1]))
        return sentences

    def with_scores_of(self, other: EvalReport) -> EvalReport:
        """This policy beside the scripts and the ceiling of `other`, on the arenas that both have played."""
        arenas = min(len(self.doomed), len(other.doomed))
        scores = {**other.scores, "policy": self.scores["policy"]}
        return EvalReport(
            {name: Score(s.survival[:arenas], s.deaths[:arenas]) for name, s in scores.items()},
            self.doomed[:arenas], other.bounds, self.arenas[:arenas], self.complete and other.complete, self.hunted,
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        table = {name: {**s.line(), "saved_share": self.saved_share(name)} for name, s in self.scores.items()}
        bounds = None if self.bounds is None else {"lower": self.bounds[0], "upper": self.bounds[1]}
        doomed = float(self.doomed.mean() / self.scores["policy"].deaths.shape[1])
        report: dict[str, Any] = {"policies": table, "ceiling": bounds, "doomed_ratio": doomed}
        if "sidestep" in self.scores:
            report["minus_sidestep"] = dict(zip(("mean", "low", "high"), self.against("sidestep")))
        return report

    def text(self) -> str:
        """The table that people read."""
        lines = [
            f"{'policy':<14}{'survival':>10}  {'95 % interval':<20}{'of possible':>12}{'worst':>8}{'step one':>10}"
        ]
        for name, score in sorted(self.scores.items(), key=lambda item: item[1].survival.mean()):
            v = score.line()
            spread = f"[{v['low']:.4f}, {v['high']:.4f}]"
            lines.append(
                f"{name:<14}{v['survival']:>10.4f}  {spread:<20}{_percent(self.saved_share(name)):>12}"
                f"{v['worst_episode']:>8.3f}{v['step_one_ratio']:>10.2%}"
            )
        if self.bounds is not None:
            lines.append(f"possible at best: {self.bounds[0]:.4f} to {self.bounds[1]:.4f}")
        if (script := self.reference()) is not None:
            difference = "{:+.4f} [{:+.4f}, {:+.4f}]".format(*self.against(script))
            lines.append(f"policy minus {'side-step' if script == 'sidestep' else script}, paired: {difference}")
        return "\n".join(lines)


def compare(
    players: Players, cfg: SeaConfig, seeds: Sequence[int], device: torch.device, bound: bool, *,
    identity: str = "", measurements: Measurements | None = None, run: Run | None = None, quiet: bool = True,
) -> EvalReport | None:  # fmt: skip
    """Play everybody on the arenas of `seeds`; None if the run has to stop before anybody could finish a batch.

    identity: of the weights that "policy" plays by; scripts are known by their names. measurements: what is known
    already is not played again.
    """
    kept, bound = measurements or Measurements(), bound and not cfg.hunted
    batches = [seeds[first : first + ARENAS] for first in range(0, len(seeds), ARENAS)]
    total = len(batches) * (len(players(0)) + bound)
    played: list[_Batch] = []
    with Progress("evaluating", total=total, unit="parts", quiet=quiet) as bar:
        stop = run.watch(lambda: total - bar.done, bar.say, "the evaluation") if run is not None else lambda: False

        def cut() -> bool:
            bar.advance(1)
            return stop()

        for number, batch in enumerate(batches):
            about = to_dict(cfg), number, list(batch)  # the number seeds what scripts draw
            known = partial(_known, kept, identity, about)
            one, stopped = _play(players(number), cfg, batch, device, bound, known, cut)
            if one.everything or (not played and one.deaths):
                played.append(one)
            if stopped and bar.done < total:
                break
    return _joined(played, len(seeds), cfg) if played else None


def _known(kept: Measurements, identity: str, about: Sequence[Any], what: str, make: Callable[[], Any]) -> Any:
    """What somebody did on a batch of arenas, played if it is not known yet."""
    return kept.measured(make, f"policy {identity}" if what == "policy" else what, *about)


class _Batch(NamedTuple):
    """What was played on one batch of arenas."""

    seeds: Sequence[int]
    deaths: dict[str, NDArray[np.int64]]  # [E, N] by policy
    doomed: NDArray[np.int64]  # [E]
    bounds: tuple[float, float] | None
    everything: bool  # that was asked for


def _play(
    policies: Mapping[str, Policy], cfg: SeaConfig, seeds: Sequence[int], device: torch.device, bound: bool,
    known: Known, cut: Callable[[], bool],
) -> tuple[_Batch, bool]:  # fmt: skip
    """One batch, as far as it goes, and whether it was cut."""
    start, _ = seeded_reset(seeds, cfg, device=device)
    doomed, deaths, bounds = doomed_mask(start, 1, cfg).sum(1).cpu().numpy(), {}, None
    for name, policy in policies.items():
        deaths[name] = np.array(known(name, partial(_deaths, policy, cfg, seeds, device)))
        if cut():
            everything = len(deaths) == len(policies) and not bound
            return _Batch(seeds, deaths, doomed, None, everything), True
    stopped = False
    if bound:
        low, high = known("ceiling", partial(_bounds, start, cfg))
        bounds, stopped = (low, high), cut()
    return _Batch(seeds, deaths, doomed, bounds, True), stopped


def _deaths(policy: Policy, cfg: SeaConfig, seeds: Sequence[int], device: torch.device) -> list[list[int]]:
    found: list[list[int]] = run_probe(policy, cfg, seeds, device).death_steps.tolist()
    return found


def _bounds(start: SeaState, cfg: SeaConfig) -> list[float]:
    report = ceiling(start, cfg=cfg)
    return [report.lower, report.upper]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.2%}"


def _joined(played: Sequence[_Batch], asked: int, cfg: SeaConfig) -> EvalReport:
    deaths = {name: np.concatenate([one.deaths[name] for one in played]) for name in played[0].deaths}
    doomed = np.concatenate([one.doomed for one in played])
    weights = [len(one.doomed) / len(doomed) for one in played]
    known = [one.bounds for one in played if one.bounds is not None]
    bounds = None
    if len(known) == len(played):
        low, high = (float(np.dot(weights, side)) for side in zip(*known, strict=True))
        bounds = low, high
    scores = {name: Score((table < 0).mean(axis=1), table) for name, table in deaths.items()}
    arenas = tuple(seed for one in played for seed in one.seeds)
    complete = len(doomed) == asked and played[-1].everything
    return EvalReport(scores, doomed, bounds, arenas, complete, cfg.hunted, scene(cfg))


def rivals(cfg: SeaConfig) -> tuple[str, ...]:
    """The scripts to compare with in a sea."""
    return RIVALS if cfg.hunted or cfg.predator_pull == "random" else LADDER


def ladder(device: torch.device, names: Sequence[str] = LADDER, batch: int = 0) -> dict[str, Policy]:
    """Scripted policies by name; the random one draws the same numbers on the same batch every time."""
    return {name: scripted(name, torch.Generator(device=device).manual_seed(batch)) for name in names}
