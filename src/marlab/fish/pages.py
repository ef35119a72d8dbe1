"""What the notebook shows of fish runs (`marlab.lab.notebook.panels`), and what people call it."""

from __future__ import annotations

from marlab.fish.measure.words import WORDS as WORDS

PAGES = {
    "marlab.fish.measure.config:EvalConfig": "marlab.fish.measure.pages:evaluation",
    "marlab.fish.training.config:FishTrainConfig": "marlab.fish.measure.pages:training",
}

CAPTIONS: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
"""Figures and films by the names of their files, without the run's own name."""

METRICS: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
"""Metrics and results."""
