"""LitaAgentHRL with settings, as classes that any world can find by name; each keeps its instances for the tests.

The classes share the name of the agent, so that the simulator gives them the same ids and worlds can be paired.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from marlab.market.agent.agent import LitaAgentHRL as Agent
from marlab.market.agent.layers import UNTRAINED

NETWORKS = {"mode": "neural", "l2_model_path": UNTRAINED, "l3_model_path": UNTRAINED, "l4_model_path": UNTRAINED}


class Kept(Agent):
    """Remembers its instances."""

    given: ClassVar[dict[str, Any]] = {}
    seats: ClassVar[dict[str, Agent]]

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{"debug": True, **self.given, **settings})

    def init(self) -> None:
        self.seats[str(self.id)] = self
        super().init()


class RuleW:
    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {"mode": "heuristic"}
        seats: ClassVar[dict[str, Agent]] = {}


class Thumb:
    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {"mode": "heuristic", "l1": "guide"}
        seats: ClassVar[dict[str, Agent]] = {}


class Untrained:
    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = NETWORKS
        seats: ClassVar[dict[str, Agent]] = {}


class PureL1:
    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {**NETWORKS, "residual_off": True, "op_head_off": True}
        seats: ClassVar[dict[str, Agent]] = {}


class Networks:
    """The networks that come with the package."""

    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {"mode": "neural"}
        seats: ClassVar[dict[str, Agent]] = {}


class Habits:
    """The habits that come with the package."""

    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {"mode": "learned"}
        seats: ClassVar[dict[str, Agent]] = {}


class Learnt:
    """Plays networks from files; a test tells where they are."""

    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {}
        seats: ClassVar[dict[str, Agent]] = {}


class Watched:
    """Plays networks from files, and keeps what L3 was shown."""

    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {}
        seats: ClassVar[dict[str, Agent]] = {}

        def init(self) -> None:
            super().init()
            self.asked: dict[tuple[int, str, int, bool], dict[str, Any]] = {}
            decide = self.layers.l3

            def watching(at: Any, alpha: Any) -> Any:
                for i, thread in enumerate(at.threads):  # now: threads and books change as the day goes on
                    key = int(at.state.day), thread.partner, thread.round, thread.received is not None
                    self.asked[key] = {
                        "baseline": np.stack(at.base, -1)[i],
                        "aux": at.aux[i],
                        "thread": at.thread_features[i],
                        "x_static": at.x_static,
                        "goal": at.goal,
                    }
                return decide(at, alpha)

            self.layers = replace(self.layers, l3=watching)


class Split:
    """Asked in another order and about a part of the negotiations at a time."""

    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {"mode": "heuristic"}
        seats: ClassVar[dict[str, Agent]] = {}

        def counter_all(self, offers: Any, states: Any) -> Any:
            partners = sorted(offers, reverse=True)
            answers: dict[str, Any] = {}
            for part in (partners[: len(partners) // 2], partners[len(partners) // 2 :]):
                if part:
                    self.counts["split"] += len(part) < len(partners)
                    asked = super().counter_all({p: offers[p] for p in part}, {p: states[p] for p in part})
                    answers |= {p: asked[p] for p in part}
            return answers


class Stumbling:
    """Its layers fail on the second day and its whole planning on the third."""

    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {"mode": "heuristic"}
        seats: ClassVar[dict[str, Agent]] = {}

        def _make_plan(self, threads: Any, layers: Any) -> Any:
            if self.awi.current_step == 2 or (self.awi.current_step == 1 and layers is not None):
                raise ValueError("I did not expect that")
            return super()._make_plan(threads, layers)


class Blind:
    """Cannot see its balance any more from the second day on."""

    class LitaAgentHRL(Kept):
        given: ClassVar[dict[str, Any]] = {"mode": "heuristic"}
        seats: ClassVar[dict[str, Agent]] = {}

        @property
        def awi(self) -> Any:
            return _Without(super().awi, "current_balance") if super().awi.current_step else super().awi


class _Without:
    def __init__(self, awi: Any, missing: str) -> None:
        self._seen, self._missing = awi, missing

    def __getattr__(self, name: str) -> Any:
        if name == self._missing:
            raise AttributeError(f"no {name}", name=name, obj=self._seen)
        return getattr(self._seen, name)
