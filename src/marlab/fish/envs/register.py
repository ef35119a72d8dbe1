"""The fish world for other people's libraries: names, registration and factories.

    import marlab.fish                                  # registers the names
    env = gymnasium.make("FishEscape-v0", num_fish=10)
    env = gymnasium.make("marlab.fish:FishEscape-v0")   # both in one

This module imports nothing heavy; the adapters live in `gym.py` (Gymnasium) and `zoo.py` (PettingZoo), and the batched
core needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marlab.fish.envs.zoo import FishParallelEnv

MANY = "FishEscape-v0"
"""All fish at once: observation [N, D], one action per fish."""
SINGLE = "FishEscapeSingle-v0"
"""The original's wrapper: one observation, one action for all fish, its own rules (see `COMPAT_SWITCHES`)."""


def register() -> None:
    """Tell Gymnasium the two environments; harmless when repeated (also the target of the entry point)."""
    from gymnasium.envs.registration import register as add
    from gymnasium.envs.registration import registry

    if MANY not in registry:
        add(
            MANY,
            entry_point="marlab.fish.envs.gym:FishEscapeEnv",
            vector_entry_point="marlab.fish.envs.gym:FishVectorEnv",
        )
    if SINGLE not in registry:
        add(SINGLE, entry_point="marlab.fish.envs.gym:FishEscapeSingleEnv")


def parallel_env(**settings: Any) -> FishParallelEnv:
    """The PettingZoo environment; settings are fields of `SeaConfig` and `render_mode`."""
    from marlab.fish.envs.zoo import FishParallelEnv

    return FishParallelEnv(**settings)


register()
