"""The named seas: frozen scenarios that policies are measured in. Free of torch.

Each differs from the standard sea (`v32`) in what hunts there. They are calibrated so that the best reactive script
(`measure/policies.py`) saves between .5 and .9 of the fish: there is something to learn, and something to lose. Their
numbers never change; a new idea is a new sea. `marlab fish train --preset NAME` trains in them.
"""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace

from marlab.fish.sea.config import SeaConfig, decided
from marlab.lab.errors import UserError

FISH = 32
"""Fish per arena in every named sea but v32: how long a hunter needs for one decides how many are left."""

SEAS: dict[str, SeaConfig] = {
    "v32": SeaConfig(),
    "pull": SeaConfig(num_fish=FISH, predator_pull="random", predator_speed_factor=3.0, vision_radius=1.5),
    "pursuit": SeaConfig(num_fish=FISH, predator_mode="pursuit", predator_speed=2.4, predator_turn_rate=2.0),
    "intercept": SeaConfig(num_fish=FISH, predator_mode="intercept", predator_speed=2.4, predator_turn_rate=2.0),
    "burst": SeaConfig(num_fish=FISH, predator_mode="burst", predator_speed=2.0, predator_turn_rate=1.5),
    "pack": SeaConfig(
        num_fish=FISH, predator_mode="pack", predator_count=2, predator_speed=2.2, predator_turn_rate=1.2
    ),
    "shoal": SeaConfig(
        num_fish=FISH, predator_mode="intercept", predator_speed=2.6, predator_turn_rate=2.0, predator_confusion=0.5
    ),
}
"""Name -> sea. `shoal` is `intercept` with a faster predator that a crowd confuses."""

PERCEPTION = ("include_neighbor_features", "neighbor_view", "neighbor_radius", "neighbor_average_count")
"""What belongs to a policy and not to the sea: how a fish sees its neighbours."""


def named_sea(name: str, like: SeaConfig | None = None) -> SeaConfig:
    """The sea called `name`, seen as the fish of `like` see."""
    if name not in SEAS:
        raise UserError(f"There is no sea called '{name}'; choose one of {', '.join(SEAS)}.")
    if like is None:
        return SEAS[name]
    return replace(SEAS[name], **{field: getattr(like, field) for field in PERCEPTION})


def name_of(cfg: SeaConfig) -> str | None:
    """The name of a sea with these predators, whatever its fish see and however many they are."""
    for name, known in SEAS.items():
        if all(getattr(cfg, f.name) == getattr(known, f.name) for f in fields(cfg) if f.name.startswith("predator_")):
            return name
    return None


LIMITS = (
    "predator_speed", "predator_speed_factor", "predator_turn_rate", "predator_vision", "predator_count",
    "predator_confusion", "predator_pull",
)  # fmt: skip
"""What a predator is able to do, whatever it wants."""


def hunted_by(cfg: SeaConfig, file: str) -> SeaConfig:
    """The sea with the predator of a file of self-play, which has the limits of `intercept`."""
    limits = {field: getattr(SEAS["intercept"], field) for field in LIMITS}
    return replace(cfg, **limits, predator_mode="learned", predator_policy=file)


def fish_in(cfg: SeaConfig, standard: int) -> int:
    """Fish that a sea is measured with if nobody says otherwise: its own number, but `standard` in the standard one."""
    name = name_of(cfg)
    if name is None:
        return cfg.num_fish
    return standard if name == "v32" else SEAS[name].num_fish


INDIFFERENT = (
    *PERCEPTION, "num_fish", "density_penalty_coef", "density_target", "divergence_reward_coef", "vision_reward",
    "episode_end", "override_preroll",
)  # fmt: skip
"""What changes neither how an arena begins nor who swims there: eyes, rewards and the numbers that are told anyway."""


def scene(cfg: SeaConfig) -> str:
    """Where arenas are the same: the sea's name, and a mark of all that decides how they begin and go on."""
    rules = decided(cfg, False)  # an open switch and one that says the same are one scene
    settings = [getattr(rules, f.name) for f in fields(cfg) if f.name not in INDIFFERENT]
    return f"{name_of(cfg) or 'own'}-{hashlib.sha256(repr(settings).encode()).hexdigest()[:6]}"
