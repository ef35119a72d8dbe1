"""`marlab fish eval CHECKPOINT`: a trained shoal on held-out arenas, beside the scripted ladder and the ceiling.

Every policy plays the same seeded arenas, so differences are paired by episode. Intervals are Student's 95 %
intervals over episodes, because fish of one episode share a predator and are not independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from marlab.fish.measure.ceiling import ceiling, doomed_mask
from marlab.fish.measure.plots import plot_death_histogram
from marlab.fish.measure.policies import Policy, scripted
from marlab.fish.measure.probe import draw_seeds, film_episode, greedy, run_probe
from marlab.fish.measure.stats import death_stats, survival_at, worst_episodes
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.training.assemble import sea_config
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.networks import load_policy
from marlab.lab.device import choose_device
from marlab.lab.errors import UserError
from marlab.lab.film import can_film
from marlab.lab.runs.files import write_json
from marlab.lab.stats import mean_interval

HELD_OUT_SEED = 20_260_101
"""Base of the arenas that no training and no probe uses unless told to."""
LADDER = ("random", "hold", "brake", "flee", "south", "sidestep")
REFERENCE_EPISODES = 24


@dataclass(frozen=True)
class EvalConfig:
    """Play a checkpoint on held-out arenas."""

    episodes: int = 200
    """Arenas."""
    fish: int = 96
    """Fish per arena."""
    seed_base: int | None = None
    """Seed of the arenas; none: the held-out set that all evaluations share."""
    sea: Literal["own", "v32"] = "own"
    """The sea the policy was trained in, or the one of the v32 defaults, to compare runs of different seas."""
    baselines: bool = True
    """Play the scripted policies on the same arenas too."""
    ceiling: bool = True
    """Bound what any policy could reach on these arenas."""
    film_fish: int = 0
    """Film one more episode with so many fish; 0: no film."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        for name in ("episodes", "fish"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}, expected at least 1.")


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
            "survival": mean,
            "low": low,
            "high": high,
            "worst_episode": float(self.survival.min()),
            "early_death_fraction_100": stats["early_death_fraction_100"],
            "step_one_ratio": float((self.deaths == 1).mean()),
            "survival_after_step_one": float((later < 0).mean()) if later.size else None,
            **survival_at(self.deaths),
        }


@dataclass(frozen=True)
class EvalReport:
    """All policies on the same arenas."""

    scores: dict[str, Score]  # "policy" is the checkpoint's
    doomed: NDArray[np.int64]  # [E] fish that no action saves at step one
    bounds: tuple[float, float] | None  # lowest and highest possible survival of a perfect policy

    def saved_share(self, name: str) -> float:
        """Survivors as a share of the fish that can be saved (by the upper bound where it is known)."""
        fish = self.scores[name].deaths.shape[1]
        possible = self.bounds[1] if self.bounds else float(1 - self.doomed.mean() / fish)
        return float(self.scores[name].survival.mean()) / possible

    def against(self, other: str) -> tuple[float, float, float]:
        """Paired difference of survival to another policy, with its interval."""
        mean, low, high = mean_interval(self.scores["policy"].survival - self.scores[other].survival)
        return float(mean), float(low), float(high)

    def results(self) -> dict[str, Any]:
        """The headline numbers for the run's record."""
        score, line = self.scores["policy"], self.scores["policy"].line()
        size = f"{len(score.survival)} x {score.deaths.shape[1]} held-out fish"
        found = {
            "survival": {**{k: line[k] for k in ("low", "high")}, "value": line["survival"], "unit": "share of fish"},
            "share of the possible": {"value": self.saved_share("policy"), "unit": "share of savable fish"},
            "worst episode": {"value": line["worst_episode"], "unit": "share of fish"},
        }
        if "sidestep" in self.scores:
            mean, low, high = self.against("sidestep")
            found["minus side-step"] = {"value": mean, "low": low, "high": high, "unit": "share of fish, paired"}
        return {name: {**value, "note": size} for name, value in found.items()}

    def as_json(self) -> dict[str, Any]:
        table = {name: {**s.line(), "saved_share": self.saved_share(name)} for name, s in self.scores.items()}
        bounds = None if self.bounds is None else {"lower": self.bounds[0], "upper": self.bounds[1]}
        doomed = float(self.doomed.mean() / self.scores["policy"].deaths.shape[1])
        found: dict[str, Any] = {"policies": table, "ceiling": bounds, "doomed_ratio": doomed}
        if "sidestep" in self.scores:
            found["minus_sidestep"] = dict(zip(("mean", "low", "high"), self.against("sidestep")))
        return found

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
    return EvalReport(scores, doomed, bounds)


def ladder(device: torch.device, names: Sequence[str] = LADDER) -> dict[str, Policy]:
    """Scripted policies by name; the random one draws the same numbers every time."""
    return {name: scripted(name, torch.Generator(device=device).manual_seed(0)) for name in names}


def evaluate(checkpoint: Path, config: EvalConfig, out: Path | None = None) -> EvalReport:
    """Evaluate a checkpoint; with `out` also write the numbers, a histogram and a film there."""
    device = choose_device(config.device)
    net, trained = load_policy(checkpoint, device)
    cfg = sea_config(trained, config.fish)
    if config.sea == "v32":
        cfg = SeaConfig(num_fish=config.fish, include_neighbor_features=trained.include_neighbor_features)
    base = HELD_OUT_SEED if config.seed_base is None else config.seed_base
    seeds = draw_seeds(np.random.default_rng(base), config.episodes)
    policies = {"policy": greedy(net), **(ladder(device) if config.baselines else {})}
    report = compare(policies, cfg, seeds, device, config.ceiling)
    if out is not None:
        write_json(out / "eval_multi_summary.json", report.as_json())
        stats = {"death_stats": death_stats(report.scores["policy"].deaths), "seeds": seeds}
        write_json(out / "death_stats.json", stats)
        plot_death_histogram(
            report.scores["policy"].deaths, out / "death_histogram.png", f"When fish die, {checkpoint.stem}"
        )
        if config.film_fish > 0 and can_film():
            film_cfg = sea_config(trained, config.film_fish)
            film_worst(greedy(net), film_cfg, seeds[:4], out / "multi_fish_eval.mp4", device)
    return report


def film_worst(policy: Policy, cfg: SeaConfig, seeds: Sequence[int], file: Path, device: torch.device) -> int:
    """Film the worst of a few episodes at 20 frames per second; returns its survivors."""
    path: list[SeaState] = []
    arrays = run_probe(policy, cfg, seeds, device, path)
    [episode] = worst_episodes(arrays.final_alive, arrays.final_alive, 1)
    film_episode(path, episode, file, fps=20, max_steps=len(path))
    return int(arrays.final_alive[episode])


def reference_lines(config: FishTrainConfig, device: torch.device) -> dict[str, float]:
    """Survival of a few scripted policies and the best possible one, as reference lines for plots."""
    cfg = sea_config(config, config.eval_multi_fish if config.eval_multi_fish > 1 else config.num_fish)
    seeds = draw_seeds(np.random.default_rng(HELD_OUT_SEED), REFERENCE_EPISODES)
    report = compare(ladder(device, ("random", "brake", "sidestep")), cfg, seeds, device, bound=False)
    lines = {name: float(score.survival.mean()) for name, score in report.scores.items()}
    return {**lines, "possible at best": float(1 - report.doomed.mean() / cfg.num_fish)}


@dataclass(frozen=True)
class EvalCommand(EvalConfig):
    """Play a checkpoint on held-out arenas, beside the scripted policies and the ceiling."""

    checkpoint: str = ""
    """A model_iter_N.pt, or a run directory (its best model, or the last one)."""
    out: Path | None = None
    """Folder for the numbers, the histogram and the film; none: beside the checkpoint's run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.checkpoint:
            raise UserError("Name a checkpoint: marlab fish eval CHECKPOINT.")


def main(argv: list[str]) -> int:
    """The command `marlab fish eval`."""
    from marlab.fish.training.networks import find_checkpoint
    from marlab.lab.flags import parse

    config = parse(EvalCommand, argv, prog="marlab fish eval", positional=("checkpoint",))
    file = find_checkpoint(config.checkpoint)
    out = config.out or file.parent.parent / "eval" / file.stem
    report = evaluate(file, config, out)
    print(f"{file}: {config.episodes} x {config.fish} fish\n{report.text()}\nwritten to {out}")
    return 0
