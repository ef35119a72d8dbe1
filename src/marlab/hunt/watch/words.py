"""The texts of the pages about the hunt, in every language; keys are used as `hunt.KEY`."""

from __future__ import annotations

import tomllib
from pathlib import Path

CATALOGUE = Path(__file__).parents[1] / "assets" / "words.toml"
WORDS: dict[str, dict[str, str]] = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
