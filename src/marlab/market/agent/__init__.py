"""LitaAgentHRL, the agent that plays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marlab.lab.door import lazy_names

if TYPE_CHECKING:
    from marlab.market.agent.agent import LitaAgentHRL as LitaAgentHRL

__all__ = ["LitaAgentHRL"]

# the class needs scml, its settings do not
__getattr__, __dir__ = lazy_names(__name__, {"LitaAgentHRL": "marlab.market.agent.agent:LitaAgentHRL"})
