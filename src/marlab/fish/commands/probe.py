"""`marlab fish probe CHECKPOINT`: one probe as training makes it, with its full record and films of the worst."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marlab.lab.checks import at_least
from marlab.lab.command import begins_anew
from marlab.lab.errors import UserError
from marlab.lab.flags import parse
from marlab.lab.progress import stage
from marlab.lab.stats import mean_interval
from marlab.lab.verdict import Sentence, say, stored, texts

STANDARD_FISH = 96


@dataclass(frozen=True)
class ProbeConfig:
    """Probe a checkpoint: every fish on its own observation with its best action, no hard starts."""

    checkpoint: str = ""
    """A model_iter_N.pt, a run directory (its best model, or the last one), or a shipped policy (best)."""
    episodes: int = 10
    """Arenas."""
    fish: int | None = None
    """Fish per arena; none: 96, and in a sea where something else hunts as many as that sea has."""
    seed_base: int = 311232
    """Seed that the arenas' seeds are drawn from."""
    escape_boost: float | None = None
    """Boost of the start; none: the base value of the checkpoint's settings."""
    films: int = 0
    """Film so many of the worst episodes."""
    output_dir: Path | None = None
    """Folder for the record, figures and films; none: probes/ beside the checkpoint's run."""
    device: str = "auto"
    """Where to compute: auto, cpu, cuda or cuda:N."""

    def __post_init__(self) -> None:
        if not self.checkpoint:
            raise UserError("Name a checkpoint: marlab fish probe CHECKPOINT.")
        at_least(self, 1, "episodes", *(["fish"] if self.fish is not None else []))


def probe(config: ProbeConfig, quiet: bool = True) -> tuple[dict[str, Any], Path]:
    """The probe's record, and the folder where it was written."""
    with stage("starting", quiet):
        import numpy as np

        from marlab.fish.measure.plots import plot_death_histogram, plot_step_one_polar
        from marlab.fish.measure.probe import at_settings, draw_seeds, film_worst, greedy, run_probe
        from marlab.fish.measure.record import probe_record
        from marlab.fish.sea.seas import fish_in
        from marlab.fish.training.networks import SHIPPED, find_checkpoint, load_policy
        from marlab.lab.device import choose_device
        from marlab.lab.runs.files import write_json
        from marlab.lab.runs.record import now

    file = find_checkpoint(config.checkpoint)
    device = choose_device(config.device)
    trained = load_policy(file, device)
    cfg = trained.sea
    boost = cfg.escape_boost_speed if config.escape_boost is None else config.escape_boost
    path: list[Any] | None = [] if config.films > 0 else None
    seeds = draw_seeds(np.random.default_rng(config.seed_base), config.episodes)
    fish = fish_in(cfg, STANDARD_FISH) if config.fish is None else config.fish
    with stage(f"probing {config.episodes} x {fish} fish", quiet):
        arrays = run_probe(greedy(trained.net), at_settings(cfg, fish, boost, 0.0), seeds, device, path)
    record = probe_record(
        arrays, iteration=trained.step, timestamp=now(), density_penalty_coef=0.0,
        escape_boost_speed=boost,
    )  # fmt: skip
    home = Path("runs/fish") if file.parent == SHIPPED else file.parent.parent
    folder = config.output_dir or home / "probes" / f"{file.stem}_seed{config.seed_base}"
    record["verdict"] = stored(verdict(record))
    write_json(folder / "probe.json", record)
    with stage("figures", quiet):
        plot_death_histogram(arrays.death_steps, folder / "death_histogram.png", f"When fish die, {file.stem}")
        plot_step_one_polar([r["predator_velocity"] for r in record["step_one_deaths"]], folder / "step_one_polar.png")
    if path is not None:
        film_worst(
            arrays, path, config.films, lambda rank, episode: folder / f"worst_rank{rank}_ep{episode}.mp4", quiet=quiet
        )
    return record, folder


def verdict(record: Mapping[str, Any]) -> list[Sentence]:
    """How many live, and how many of those that could."""
    fish = record["multi_eval_num_fish"]
    shares = [episode["final_num_alive"] / fish for episode in record["episodes"]]
    mean, low, high = (float(x) for x in mean_interval(shares))
    told = {"survival": mean, "interval": (low, high), "episodes": len(shares), "fish": fish}
    return [say("fish.probed", iteration=record["iteration"], **told, share=record["saved_share"])]


def main(argv: list[str]) -> int:
    """The command `marlab fish probe`."""
    config = parse(ProbeConfig, argv, prog="marlab fish probe", positional=("checkpoint",))
    with begins_anew("marlab fish probe"):
        record, folder = probe(config, quiet=False)
    summary, deaths = record["summary"], record["death_stats"]
    rows = {
        "average final survival": f"{summary['avg_final_survival_rate']:.4f}",
        "worst episode": f"{summary['min_final_survival_rate']:.4f}",
        "of the fish that can be saved": f"{record['saved_share']:.4f}",
        "dead before step 100": f"{deaths['early_death_fraction_100']:.4f}",
        "10th percentile of death steps": f"{deaths['p10']:.1f}",
        "step-one deaths": f"{record['step_one_death_count']} ({record['step_one_death_ratio']:.2%})",
        "doomed at step one": f"{record['doomed_count']} ({record['doomed_ratio']:.2%})",
    }
    print(f"{config.episodes} x {record['multi_eval_num_fish']} fish, seed {config.seed_base}")
    print("\n".join(f"{name:<32}{value}" for name, value in rows.items()))
    print("\n".join(texts(record["verdict"], str(folder))))
    print(f"written to {folder}")
    return 0
