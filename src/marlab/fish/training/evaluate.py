"""A trained shoal on held-out arenas, beside the scripted ladder and the ceiling."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from marlab.fish.envs.frame import Scene, paint
from marlab.fish.measure.compare import CODE, LADDER, EvalReport, compare, ladder, rivals
from marlab.fish.measure.config import HELD_OUT_SEED, SCRIPTED, EvalConfig
from marlab.fish.measure.foresight import Search, improve
from marlab.fish.measure.pathfile import FILE, Paths
from marlab.fish.measure.paths import Swimmer, follow, policy_field
from marlab.fish.measure.plots import plot_death_histogram
from marlab.fish.measure.policies import Policy, play, scripted
from marlab.fish.measure.probe import draw_seeds, film_worst, greedy, run_probe
from marlab.fish.measure.stats import death_stats
from marlab.fish.sea.config import SeaConfig
from marlab.fish.sea.constants import EPISODE_STEPS
from marlab.fish.sea.dynamics import SeaState
from marlab.fish.sea.predators import predator_step
from marlab.fish.sea.reset import seeded_reset
from marlab.fish.sea.seas import PERCEPTION, fish_in, hunted_by, named_sea
from marlab.fish.training.assemble import sea_config
from marlab.fish.training.config import FishTrainConfig
from marlab.fish.training.networks import Trained, find_checkpoint, load_policy
from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.film import can_film
from marlab.lab.progress import stage
from marlab.lab.runs.checkpoint import load_checkpoint
from marlab.lab.runs.files import write_json
from marlab.lab.runs.identity import code_identity, weights_digest
from marlab.lab.runs.measurements import FOLDER, Measurements
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import Sentence, say

STANDARD_FISH = 96
REFERENCE_EPISODES = 24
STANDARD_LINES, REACTIVE = ("random", "brake", "sidestep"), ("slip", "dodge", "swerve", "evade")
FILM_EPISODES = 4  # the film shows the worst of so many
REPLAY_EPISODES = 8  # arenas whose deaths are on the map of a replay
FILM_MARGIN = 2.0  # encoding a frame takes about as long as painting it


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
    trained = load_policy(file, device)  # a file that cannot be played is refused before anything is written
    predator_step(sea_of(config, trained))  # so is a predator
    if config.replays:
        _rival(config, sea_of(config, trained), device)
    run = Run.open("fish", config, options, preset=preset, command=command)
    with run:
        run.set_device(device)
        measure(file, config, run, quiet)
    return run


def measure(file: Path, config: EvalConfig, run: Run, quiet: bool = True) -> None:
    """Play, and leave numbers, figures, a film and the verdict in the run."""
    report = evaluate_checkpoint(file, config, run.path, run=run, quiet=quiet)
    if report is None:
        run.set_verdict(say("fish.not_judged"), say("lab.go_on"))
        return
    run.add_results(report.results())
    run.add_cases("survival", {"": report.cases()})
    sentences = report.verdict(load_checkpoint(file).step)
    if config.look_ahead and run.must_stop():
        run.stop()
    elif config.look_ahead:
        sentences += look_further(file, config, run, quiet)
    watch = say("fish.next_watch_checkpoint", checkpoint=config.checkpoint)
    run.set_verdict(*sentences, say("lab.go_on") if run.unfinished else watch)
    if not quiet:
        fish = report.scores["policy"].deaths.shape[1]
        print(f"{file}: {len(report.doomed)} x {fish} fish\n{report.text()}")


def draw(run: Run, config: EvalConfig, quiet: bool) -> None:
    """The evaluation made again, on the device that there is: its arenas and policies are the same."""
    measure(find_checkpoint(config.checkpoint), replace(config, device="auto"), run, quiet)


def evaluate_checkpoint(
    file: Path, config: EvalConfig, folder: Path, beside: EvalReport | None = None, *, run: Run | None = None,
    quiet: bool = True,
) -> EvalReport | None:  # fmt: skip
    """Play a checkpoint's policy, and write the numbers, a histogram and (if asked for) a film to `folder`.

    `beside` is the report of another checkpoint of the same training: scripts and ceiling need not be played again.
    Where the time of `run` is up the report has fewer arenas or is None, and the run counts as stopped.
    """
    device = choose_device(config.device)
    trained = load_policy(file, device)
    cfg, policy = sea_of(config, trained), greedy(trained.net)
    seeds = arenas_of(config)

    def players(batch: int) -> dict[str, Policy]:
        scripts = ladder(device, rivals(cfg), batch) if config.baselines and beside is None else {}
        return {"policy": policy, **scripts}

    kept = Measurements() if run is None else Measurements(run.path / FOLDER, code=code_identity(CODE))
    report = compare(
        players, cfg, seeds, device, config.ceiling and beside is None,
        identity=weights_digest(trained.net.state_dict().values()), measurements=kept, run=run, quiet=quiet,
    )  # fmt: skip
    if run is not None and (report is None or not report.complete):
        run.stop()
    if report is None:
        return None
    if beside is not None:
        report = report.with_scores_of(beside)
    deaths = report.scores["policy"].deaths
    with stage("writing the evaluation", quiet):
        write_json(folder / "eval_multi_summary.json", report.as_json())
        write_json(folder / "death_stats.json", {"death_stats": death_stats(deaths), "seeds": list(report.arenas)})
        plot_death_histogram(deaths, folder / "death_histogram.png", f"When fish die, {file.stem}")
    if config.film_fish > 0 and can_film() and not (run is not None and run.must_stop()):
        filmed = _film(policy, replace(cfg, num_fish=config.film_fish), seeds, config, folder, device, run, quiet)
        if run is not None and not filmed:
            run.stop()
    if config.replays and run is not None and run.must_stop():
        run.stop()
    elif config.replays:
        with stage("paths for the replay", quiet):
            _keep_paths(trained, cfg, config, seeds, folder / FILE, device)
    return report


def look_further(file: Path, config: EvalConfig, run: Run, quiet: bool) -> list[Sentence]:
    """Episodes mended with the true dynamics, in the first arenas, and the share of them that the policy reaches."""
    device = choose_device(config.device)
    trained = load_policy(file, device)
    cfg, policy = sea_of(config, trained), greedy(trained.net)
    seeds = arenas_of(config)[: config.look_ahead]
    start, _ = seeded_reset(seeds, cfg, device=device)
    values: dict[str, list[float]] = {"policy": play(start, policy, cfg).survival.tolist()}
    with stage("mending episodes with the true dynamics", quiet):
        plan = improve(start, policy, cfg, Search(), torch.Generator(device=device).manual_seed(HELD_OUT_SEED))
    values["mended with the true dynamics"] = plan.survival.tolist()
    write_json(run.path / "look_ahead.json", {"survival": values, "arenas": list(seeds)})
    note = f"{len(seeds)} x {cfg.num_fish} held-out fish"
    for name, each in values.items():
        mean, low, high = (float(v) for v in mean_interval(np.array(each)))
        if name != "policy":
            told = {"value": mean, "low": low, "high": high, "unit": "share of fish", "note": note}
            run.add_results({f"survival of {name}": told})
    upper, own = (float(np.mean(values[name])) for name in ("mended with the true dynamics", "policy"))
    run.add_results({"share of the upper reference": {"value": own / upper, "unit": "ratio", "note": note}})
    return [say("fish.of_foresight", upper=upper, share=own / upper, arenas=len(seeds))]


def arenas_of(config: EvalConfig) -> list[int]:
    """The seeds of the arenas that are played."""
    base = HELD_OUT_SEED if config.seed_base is None else config.seed_base
    return draw_seeds(np.random.default_rng(base), config.episodes)


def sea_of(config: EvalConfig, trained: Trained) -> SeaConfig:
    """The sea that is played, with as many fish as asked for."""
    cfg = trained.sea if config.sea == "trained" else named_sea(config.sea, trained.sea)
    if config.predator:
        cfg = hunted_by(cfg, config.predator)
    return replace(cfg, num_fish=fish_in(cfg, STANDARD_FISH) if config.fish is None else config.fish)


def _rival(config: EvalConfig, cfg: SeaConfig, device: torch.device) -> Swimmer:
    """Who swims beside the policy in the replay."""
    if config.against in SCRIPTED:
        generator = torch.Generator(device).manual_seed(HELD_OUT_SEED)
        return Swimmer(scripted(config.against, generator), cfg)
    other = load_policy(find_checkpoint(config.against), device)
    return Swimmer(greedy(other.net), replace(cfg, **{field: getattr(other.sea, field) for field in PERCEPTION}))


def _keep_paths(
    trained: Trained, cfg: SeaConfig, config: EvalConfig, seeds: Sequence[int], path: Path, device: torch.device
) -> None:
    """Paths of the first arenas, deaths of some more, and the field of the policy."""
    looked_at = list(seeds[: max(config.replays, REPLAY_EPISODES)])
    players = {"policy": Swimmer(greedy(trained.net), cfg), config.against: _rival(config, cfg, device)}
    told = follow(players, looked_at, config.replays, device)
    action, chance = policy_field(trained.net, cfg, device)
    Paths(list(players), looked_at, **told, field_action=action, field_chance=chance).write(path)


def _film(
    policy: Policy, cfg: SeaConfig, seeds: Sequence[int], config: EvalConfig, folder: Path, device: torch.device,
    run: Run | None, quiet: bool,
) -> bool:  # fmt: skip
    """Film the worst of a few episodes; False if there is no time for it."""
    path: list[SeaState] = []
    probe = run_probe(policy, cfg, seeds[:FILM_EPISODES], device, path)
    shown = min(len(path), config.film_steps + 1)
    began = time.monotonic()
    paint(Scene.of(path[0], 0))
    if run is not None and not run.budget.fits(FILM_MARGIN * (time.monotonic() - began) * shown):
        return False
    stop = run.must_stop if run is not None else lambda: False
    return bool(
        film_worst(
            probe, path, 1, lambda rank, episode: folder / "multi_fish_eval.mp4", fps=config.film_fps,
            max_steps=config.film_steps, stop=stop, quiet=quiet,
        )
    )  # fmt: skip


def reference_lines(config: FishTrainConfig, device: torch.device) -> tuple[dict[str, float], dict[str, float]]:
    """Survival of a few scripted policies and the best possible one, as reference lines for plots.

    After whole episodes, and after as many steps as the episodes of the training have. Where something else hunts than
    in the standard sea, the best of its reactive scripts stands beside the random one.
    """
    fish = config.measure.eval_multi_fish
    cfg = sea_config(config, fish if fish > 1 else config.sea.num_fish)
    seeds = draw_seeds(np.random.default_rng(HELD_OUT_SEED), REFERENCE_EPISODES)
    standard = rivals(cfg) == LADDER
    names = STANDARD_LINES if standard else ("random", *REACTIVE)
    report = compare(lambda batch: ladder(device, names, batch), cfg, seeds, device, False)
    assert report is not None  # nobody can stop it
    reached = {name: float(score.survival.mean()) for name, score in report.scores.items()}
    shown = names if standard else ("random", max(REACTIVE, key=lambda name: reached[name]))
    best = {"possible at best": float(1 - report.doomed.mean() / cfg.num_fish)}
    whole, training = (
        {
            name: float(((score.deaths < 0) | (score.deaths > steps)).mean())
            for name, score in report.scores.items()
            if name in shown
        }
        for steps in (EPISODE_STEPS, training_steps(config))
    )
    return {**whole, **best}, {**training, **best}


def training_steps(config: FishTrainConfig) -> int:
    """After how many steps the training cuts an episode off."""
    steps = config.starts.force_reset_steps
    return min(steps, EPISODE_STEPS) if steps > 0 else EPISODE_STEPS
