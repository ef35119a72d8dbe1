"""Observations are arrays of their own: what one step showed does not change with the next."""

from __future__ import annotations

import random

from marlab.hunt.game.config import game_config
from marlab.hunt.game.scalar import Rules
from marlab.hunt.players.glance import PlainObserver


def test_old_observations_stay_as_they_were() -> None:
    config = game_config("msh_6x6_b4")
    rules, glance, rng = Rules(config), PlainObserver(config), random.Random(1)
    names = ["a", "b", "c", "d"]
    seat = {name: i for i, name in enumerate(names)}
    s = rules.start(rng)
    first = glance.all(rules, s, names, seat)
    kept = {name: {key: value.copy() for key, value in seen.items()} for name, seen in first.items()}
    for _ in range(3):
        s = rules.step(s, [0, 1, 2, 3]).after
        glance.all(rules, s, names[:2], seat)
    assert all((first[name][key] == value).all() for name, seen in kept.items() for key, value in seen.items())
    first["a"]["observation"][:] = 1  # nobody else sees what a user writes
    assert (first["b"]["observation"] == kept["b"]["observation"]).all()
    assert all(glance.space().contains(seen) for seen in glance.all(rules, s, names, seat).values())
