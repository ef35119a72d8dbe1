"""The work of `marlab market configs`: markets that the simulator draws, in one file."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from marlab.lab.progress import Progress
from marlab.market.vector.configs import Configs, join, save
from marlab.market.verify.plan import shape, spec_of
from marlab.market.verify.settings import ConfigsConfig


def export(config: ConfigsConfig) -> Configs:
    """Draw the configs and write the file."""
    from marlab.market.simulator.evidence import draw_config

    config.file.parent.mkdir(parents=True, exist_ok=True)
    draw = random.Random(f"configs {config.seed}")
    drawn = []
    with (
        tempfile.TemporaryDirectory(prefix="marlab-configs-") as folder,
        Progress("drawing", total=config.count, unit="configs") as bar,
    ):
        for i in range(config.count):
            processes = shape(draw, config.levels, config.factories)
            days = max(len(set(processes)) + 1, draw.randint(*config.days))
            spec = spec_of(f"config-{i}", draw, processes, ("RandomStdAgent",) * len(processes), days)
            drawn.append(draw_config(spec, Path(folder)))
            bar.advance(1)
    configs = join(drawn)
    save(config.file, configs)
    return configs
