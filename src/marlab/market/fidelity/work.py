"""The work of `marlab market fidelity`: the same seats and sellers in the simulator and in the vector market.

runs/market/NAME/real.json       scores in the simulator by world, kept as they come
runs/market/NAME/configs.npz     the markets of the seats
runs/market/NAME/vector.npz      scores in the vector market
runs/market/NAME/tables.md, results.json, figures/fidelity.png
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from marlab.lab.config import Preset
from marlab.lab.device import choose_device
from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError
from marlab.lab.progress import stage
from marlab.lab.report.figures import label
from marlab.lab.report.style import colour, legend, panels, save, time_of_a_figure
from marlab.lab.runs.files import write_json, write_text
from marlab.lab.runs.run import Run, RunOptions
from marlab.lab.verdict import say
from marlab.market.fidelity import real, vector
from marlab.market.fidelity.command import FidelityCommand
from marlab.market.fidelity.plan import POSITIONS, FidelityConfig, seats_of
from marlab.market.fidelity.report import Fidelity, as_json, as_markdown, compared
from marlab.market.fidelity.sellers import settings_of
from marlab.market.simulator.experts import find_player
from marlab.market.vector.clones import load
from marlab.market.vector.configs import Configs
from marlab.market.vector.configs import load as load_configs
from marlab.market.vector.configs import save as save_configs

CONFIGS = "configs.npz"


def fidelity(
    config: FidelityConfig, options: RunOptions | None = None, *, engine: EngineConfig | str | None = None,
    preset: Preset | None = None, command: Sequence[str] | None = None, quiet: bool = False,
) -> Run:  # fmt: skip
    """Compare both markets; returns the run, closed."""
    asked = FidelityCommand.of(config)
    config, engine, quiet = asked.run_config(), asked.engine_config(engine), quiet or asked.quiet
    device, pack = choose_device(asked.device), load(asked.clones)
    for name in config.names:
        settings_of(config.agent(name))  # who cannot sell is told before a folder is made
    for agent in (*config.sellers, *config.population):
        find_player(agent)  # and so is an unknown name
    taken_over = {} if asked.real is None else real.known(_there(asked.real))
    with Run.open("market", config, options, preset=preset, command=command) as run:
        run.set_device(device)
        if run.budget.limited:
            run.budget.expect("figures", 2 * time_of_a_figure())
        scores = run.path / real.SCORES
        if taken_over:
            write_json(scores, taken_over | real.known(scores))
        done = real.play_seats(config, scores, engine, run.must_stop, quiet)
        if not run.must_stop():
            vector.play_seats(
                config, _configs(config, run, quiet), pack, run.path / vector.SCORES, device, run.must_stop, quiet
            )
        found = gathered(config, run.path)
        if not done or found.repeats < config.repeats:
            run.stop()
        with run.budget.part("figures"), stage("tables and figures", quiet):
            write(run, found)
        if not quiet:
            print(as_markdown(found))
    return run


def _there(file: Path) -> Path:
    if not file.is_file():
        raise UserError(f"{file} does not exist, expected scores of the simulator ({real.SCORES} of a run).")
    return file


def _configs(config: FidelityConfig, run: Run, quiet: bool) -> Configs:
    """The markets of the seats, drawn once."""
    file = run.path / CONFIGS
    if not file.exists():
        with stage("drawing the markets", quiet):
            save_configs(file, real.draw_configs(seats_of(config)))
    return load_configs(file)


def gathered(config: FidelityConfig, folder: Path) -> Fidelity:
    """What is known so far."""
    seats = seats_of(config)
    shape = (len(config.names), len(seats), config.repeats)
    mine = vector.known(folder / vector.SCORES, shape)
    return compared(config.names, seats, real.scores_of(config, folder / real.SCORES), mine)


def write(run: Run, found: Fidelity) -> None:
    """Tables, numbers, verdict and figure."""
    write_text(run.path / "tables.md", as_markdown(found))
    write_json(run.path / "results.json", as_json(found))
    run.add_results(
        {
            **{f"spearman {position}": value for position, value in found.correlation.items()},
            **{f"{line.position} {line.seller} real": line.real.value for line in found.lines},
            **{f"{line.position} {line.seller} vector": line.vector.value for line in found.lines},
        }
    )
    after = say("lab.go_on" if run.unfinished else "lab.look")
    if not found.lines:
        run.set_verdict(say("market.fidelity_nothing"), after)
        return
    told = {
        "held": sum(bool(line.holds) for line in found.asked),
        "asked": len(found.asked),
        "correlation": min(found.correlation.values()),
        "markets": found.markets,
    }
    run.set_verdict(say("market.fidelity_right" if found.ranks_alike else "market.fidelity_wrong", **told), after)
    draw(run, found)


def draw_again(run: Run, config: FidelityConfig, quiet: bool) -> None:
    """Tables, figure and verdict from what was played."""
    write(run, gathered(config, run.path))


def draw(run: Run, found: Fidelity) -> None:
    """Every seller's difference in both markets, with bars of two standard errors and the band that holds."""
    figure, axes = panels(1, len(POSITIONS), size=(5.4, 4.6), title="Sellers less the rule, in both markets")
    for ax, position in zip(np.ravel(np.asarray(axes, dtype=object)), POSITIONS):
        lines = [line for line in found.lines if line.position == position]
        label(ax, "simulator [score less the rule's]", "vector market [score less the rule's]", f"{position} level")
        ends = [0.0, *(value for line in lines for value in (line.real.value, line.vector.value))]
        low, high = 1.2 * min(ends) - 0.05, 1.2 * max(ends) + 0.05
        across = np.linspace(low, high, 50)
        ax.fill_between(across, across / 2, across * 2, color="0.9", zorder=0, label="half to twice")
        ax.plot(across, across, color="0.6", linewidth=1, linestyle="--", zorder=1)
        for i, line in enumerate(lines):
            ax.errorbar(line.real.value, line.vector.value, xerr=2 * line.real.error, yerr=2 * line.vector.error,
                        fmt="o", color=colour(i), label=line.seller, markersize=6)  # fmt: skip
        ax.set_xscale("symlog", linthresh=0.1)
        ax.set_yscale("symlog", linthresh=0.1)
        ax.set(xlim=(low, high), ylim=(low, high))
    legend(figure, columns=4)
    save(figure, run.figure("fidelity.png"))
