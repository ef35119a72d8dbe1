"""LitaAgentHRL, the agent that plays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marlab.market.agent.agent import LitaAgentHRL

__all__ = ["LitaAgentHRL"]


def __getattr__(name: str) -> Any:  # the class needs scml, its settings do not
    if name in __all__:
        from marlab.market.agent import agent

        return getattr(agent, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
