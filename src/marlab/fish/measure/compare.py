"""Policies side by side on the same seeded arenas, with the ceiling of what any policy could reach.

Differences are paired by episode. Intervals are Student's 95 % intervals over episodes, because fish of one episode
share a predator and are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.fish.measure.ceiling import ceiling, doomed_mask
from marlab.fish.measure.policies import Policy, scripted
from marlab.fish.measure.probe import run_probe
from marlab.fish.measure.stats import death_stats, survival_at
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.reset import seeded_reset
from marlab.lab.stats import mean_interval

LADDER = ("random", "hold", "brake", "flee", "south", "sidestep")


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

    def saved_share(self, name: str) -> float:
        """Survivors as a share of the fish that can be saved (by the upper bound where it is known)."""
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
        return {f"arena {seed}, {score.deaths.shape[1]} fish": float(s) for seed, s in zip(self.arenas, score.survival)}

    def results(self) -> dict[str, Any]:
        """The headline numbers for the run's record."""
        score, line = self.scores["policy"], self.scores["policy"].line()
        size = f"{len(score.survival)} x {score.deaths.shape[1]} held-out fish"
        values = {
            "survival": {**{k: line[k] for k in ("low", "high")}, "value": line["survival"], "unit": "share of fish"},
            "share of the possible": {"value": self.saved_share("policy"), "unit": "share of savable fish"},
            "worst episode": {"value": line["worst_episode"], "unit": "share of fish"},
        }
        if "sidestep" in self.scores:
            mean, low, high = self.against("sidestep")
            values["minus side-step"] = {"value": mean, "low": low, "high": high, "unit": "share of fish, paired"}
        return {name: {**value, "note": size} for name, value in values.items()}

    def sentence(self, what: str) -> str:
        """How well `what` did, beside the best script and what is possible."""
        score, line = self.scores["policy"], self.scores["policy"].line()
        size = f"{len(score.survival)} x {score.deaths.shape[1]} held-out fish"
        parts = [f"{what}: {line['survival']:.4f} [{line['low']:.4f}, {line['high']:.4f}] of {size} survive"]
        scripts = {name: float(s.survival.mean()) for name, s in self.scores.items() if name != "policy"}
        if scripts:
            best = max(scripts, key=lambda name: scripts[name])
            parts.append(f"the best script ({best}) saves {scripts[best]:.4f}")
        if self.bounds is not None:
            parts.append(f"at most {self.bounds[1]:.4f} can be saved")
        return "; ".join(parts) + "."

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
                f"{name:<14}{v['survival']:>10.4f}  {spread:<20}{self.saved_share(name):>12.2%}"
                f"{v['worst_episode']:>8.3f}{v['step_one_ratio']:>10.2%}"
            )
        if self.bounds is not None:
            lines.append(f"possible at best: {self.bounds[0]:.4f} to {self.bounds[1]:.4f}")
        if "sidestep" in self.scores:
            lines.append("policy minus side-step, paired: {:+.4f} [{:+.4f}, {:+.4f}]".format(*self.against("sidestep")))
        return "\n".join(lines)


def compare(
    policies: Mapping[str, Policy], cfg: SeaConfig, seeds: Sequence[int], device: torch.device, bound: bool
) -> EvalReport:
    """Play every policy on the arenas of `seeds`."""
    start, _ = seeded_reset(seeds, cfg, device=device)
    scores = {}
    for name, policy in policies.items():
        deaths = run_probe(policy, cfg, seeds, device).death_steps
        scores[name] = Score((deaths < 0).mean(axis=1), deaths)
    doomed = doomed_mask(start, 1).sum(1).cpu().numpy()
    bounds = None
    if bound:
        report = ceiling(start)
        bounds = report.lower, report.upper
    return EvalReport(scores, doomed, bounds, tuple(seeds))


def ladder(device: torch.device, names: Sequence[str] = LADDER) -> dict[str, Policy]:
    """Scripted policies by name; the random one draws the same numbers every time."""
    return {name: scripted(name, torch.Generator(device=device).manual_seed(0)) for name in names}
