"""The command. It imports the config only; what works is named by a string and imported when the flags are right."""

from __future__ import annotations

import sys
from pathlib import Path

from examples.tiny_world.config import TinyConfig
from marlab.lab.command import RunCommand

PRESETS = Path(__file__).parent / "presets"

main = RunCommand("tiny train", TinyConfig, "examples.tiny_world.trainer:train", presets=PRESETS)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
