"""What the notebook shows of hunt runs (`marlab.lab.notebook.panels`), and what people call it."""

from __future__ import annotations

from marlab.hunt.watch.words import WORDS as WORDS

PAGES = {
    "marlab.hunt.evaluate.command:HuntEvalConfig": "marlab.hunt.watch.pages:evaluated",
    "marlab.hunt.data.config:HuntCollectConfig": "marlab.hunt.watch.pages:trained",
    "marlab.hunt.others.config:PretrainGoalsConfig": "marlab.hunt.watch.pages:trained",
    "marlab.hunt.world_model.config:PretrainWorldConfig": "marlab.hunt.watch.pages:trained",
    "marlab.hunt.ppo.config:PPOTrainConfig": "marlab.hunt.watch.pages:trained",
    "marlab.hunt.selfplay.config:HopTrainConfig": "marlab.hunt.watch.pages:trained",
}

SITE = {"play": "marlab.hunt.seat.pages:play", "watch": "marlab.hunt.watch.pages:watched"}

ACTIONS = {"seat": "marlab.hunt.seat.serve:answer"}

CAPTIONS: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
"""Figures and films by the names of their files, without the run's own name."""

METRICS: dict[str, dict[str, str]] = {"en": {}, "zh": {}}
"""Metrics and results."""
