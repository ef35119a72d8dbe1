"""What commands of the hunt say at their end, by key (`marlab.lab.verdict`), in every language."""

from __future__ import annotations

import tomllib
from pathlib import Path

CATALOGUE = Path(__file__).parent / "assets" / "verdicts.toml"
SENTENCES: dict[str, dict[str, str]] = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
