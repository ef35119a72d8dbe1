"""A trained shoal on held-out arenas, beside the scripted ladder and the ceiling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from marlab.fish.measure.compare import EvalReport, compare, ladder
from marlab.fish.measure.config import HELD_OUT_SEED, EvalConfig
from marlab.fish.measure.plots import plot_death_histogram
from marlab.fish.measure.policies import Policy
from marlab.fish.measure.probe import draw_seeds, film_worst, greedy, run_probe
from marlab.fish.measure.stats import death_stats
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.training.assemble import sea_config
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.networks import find_checkpoint, load_policy
from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.film import can_film
from marlab.lab.runs.files import write_json
from marlab.lab.runs.run import Run, RunOptions

REFERENCE_EPISODES = 24
FILM_EPISODES = 4  # the film shows the worst of so many


def evaluate(
    config: EvalConfig,
    options: RunOptions | None = None,
    *,
    preset: Preset | None = None,
    command: Sequence[str] | None = None,
    quiet: bool = False,
) -> Run:
    """Evaluate a checkpoint as a run of its own; its results are in the run's record."""
    file = find_checkpoint(config.checkpoint)
    device = choose_device(config.device)
    load_policy(file, device)  # a file that cannot be played is refused before anything is written
    run = Run.open("fish", config, options, preset=preset, command=command)
    with run:
        run.set_device(device)
        report = evaluate_checkpoint(file, config, run.path)
        run.add_results(report.results())
        run.add_cases("survival", {"": report.cases()})
        if not quiet:
            print(f"{file}: {config.episodes} x {config.fish} fish\n{report.text()}")
    return run


def evaluate_checkpoint(file: Path, config: EvalConfig, folder: Path, beside: EvalReport | None = None) -> EvalReport:
    """Play a checkpoint's policy, and write the numbers, a histogram and (if asked for) a film to `folder`.

    `beside` is the report of another checkpoint of the same training: scripts and ceiling need not be played again.
    """
    device = choose_device(config.device)
    trained = load_policy(file, device)
    cfg, policy = trained.sea_with(config.fish), greedy(trained.net)
    if config.sea == "v32":
        cfg = SeaConfig(num_fish=config.fish, include_neighbor_features=cfg.include_neighbor_features)
    seeds = draw_seeds(
        np.random.default_rng(HELD_OUT_SEED if config.seed_base is None else config.seed_base), config.episodes
    )
    policies = {"policy": policy, **(ladder(device) if config.baselines and beside is None else {})}
    report = compare(policies, cfg, seeds, device, config.ceiling and beside is None)
    if beside is not None:
        report = replace(beside, scores={**beside.scores, **report.scores})
    deaths = report.scores["policy"].deaths
    write_json(folder / "eval_multi_summary.json", report.as_json())
    write_json(folder / "death_stats.json", {"death_stats": death_stats(deaths), "seeds": seeds})
    plot_death_histogram(deaths, folder / "death_histogram.png", f"When fish die, {file.stem}")
    if config.film_fish > 0 and can_film():
        _film(policy, trained.sea_with(config.film_fish), seeds[:FILM_EPISODES], folder, device)
    return report


def _film(policy: Policy, cfg: SeaConfig, seeds: Sequence[int], folder: Path, device: torch.device) -> None:
    path: list[SeaState] = []
    probe = run_probe(policy, cfg, seeds, device, path)
    film_worst(probe, path, 1, lambda rank, episode: folder / "multi_fish_eval.mp4")


def reference_lines(config: FishTrainConfig, device: torch.device) -> dict[str, float]:
    """Survival of a few scripted policies and the best possible one, as reference lines for plots."""
    fish = config.measure.eval_multi_fish
    cfg = sea_config(config, fish if fish > 1 else config.sea.num_fish)
    seeds = draw_seeds(np.random.default_rng(HELD_OUT_SEED), REFERENCE_EPISODES)
    report = compare(ladder(device, ("random", "brake", "sidestep")), cfg, seeds, device, bound=False)
    lines = {name: float(score.survival.mean()) for name, score in report.scores.items()}
    return {**lines, "possible at best": float(1 - report.doomed.mean() / cfg.num_fish)}
