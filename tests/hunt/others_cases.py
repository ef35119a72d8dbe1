"""Small models of others that the tests share."""

from __future__ import annotations

from marlab.hunt.others.config import PretrainGoalsConfig
from tests.hunt.offline import offline_data


def tiny(**changes) -> PretrainGoalsConfig:
    """Two epochs on 2,000 rows: seconds, and every part of the code."""
    data = offline_data(rows=2000).path
    return PretrainGoalsConfig(
        **{
            "data": data,
            "epochs": 2,
            "vae_epochs": 1,
            "prototype_epochs": 0,
            "belief_games": 2,
            "overfit_check": False,
            **changes,
        }
    )
