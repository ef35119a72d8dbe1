"""What the notebook shows of quickstart runs (`marlab.lab.notebook.panels`), and what people call it."""

from __future__ import annotations

PAGES: dict[str, str] = {}

WORDS: dict[str, dict[str, str]] = {"en": {}, "zh": {}}

CAPTIONS: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
"""Figures and films by the names of their files, without the run's own name."""

METRICS: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
"""Metrics and results."""
