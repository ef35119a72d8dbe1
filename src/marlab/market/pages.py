"""What the notebook shows of market runs (`marlab.lab.notebook.panels`), and what people call it."""

from __future__ import annotations

from marlab.market.replay.words import WORDS as WORDS

PAGES = {
    "marlab.market.arena.plan:PlayConfig": "marlab.market.replay.pages:cup",
    "marlab.market.collect.plan:MarketCollectConfig": "marlab.market.replay.pages:collected",
}

CAPTIONS: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
"""Figures and films by the names of their files, without the run's own name."""

METRICS: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
"""Metrics and results."""
