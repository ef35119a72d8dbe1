"""Every parameter of a playing agent; `layers` loads what they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from marlab.lab.config import from_dict
from marlab.lab.errors import UserError
from marlab.market.logs.daystate import HORIZON
from marlab.market.rules.bargain import RuleOptions
from marlab.market.rules.l1 import ECONOMIC, L1Options

LAYERS = ("l2", "l3", "l4")
MOST_DAYS = 1000
"""Furthest that a plan may look; games of the league have at most 200 days."""

Mode = Literal["heuristic", "neural", "learned"]
Place = str | Path | None


@dataclass(frozen=True)
class AgentSettings:
    """Every parameter of `LitaAgentHRL`, checked when made."""

    mode: Mode | None = None
    """heuristic: rules only; neural: networks; learned: rule W with habits or a network that it learnt
    (`weights`). None: neural if a model path is given; heuristic if `l1` or `rule` asks for other rules; else learned,
    which earns most."""
    horizon: int = HORIZON
    """Days a plan looks ahead."""
    debug: bool = False
    """Keep the decision log in memory (`agent.log.lines`)."""
    weights: Place = None
    """A run of `marlab market train` (its name or folder) or a folder with weights: all three layers at once. With
    mode learned: a run of `marlab market habits` or `marlab market online`, or the file that it made. Default: the
    habits that come with the package."""
    l2_model_path: Place = None
    """Weights of L2, a file or a folder. None: those that come with the package; "untrained": a network that has
    learnt nothing, for L2 its rule."""
    l3_model_path: Place = None
    l4_model_path: Place = None
    l1: str | Mapping[str, Any] | L1Options | None = None
    """guide, economic, or all options. None: those the networks learnt with; without networks, economic."""
    rule: Mapping[str, Any] | RuleOptions | None = None
    """Parameters of rule W, the executor of heuristic mode with economic L1. None: the best known ones."""
    residual_off: bool = False
    """Offer L1's baseline instead of what L3 wants."""
    goal_zero: bool = False
    """A goal of zeros instead of L2's."""
    l4: Literal["heuristic", "uniform", "neural"] | None = None
    """How threads are weighted. None: by the network in neural mode, else by the rule."""
    op_head_off: bool = False
    """Accept by L1's rule instead of L3's choice."""
    decode: Literal["argmax", "sample"] = "argmax"
    """L3 as a network takes the likeliest operator and day, or draws them."""
    modulation: bool = False
    """L4's weights also strengthen L3's residuals, by 1 + weight; networks are taught without it."""
    learnt: Literal["both", "sales"] | None = None
    """Which side L3's network decides; the rule of heuristic mode decides the other. None: trained with the
    economic L1 only sales, because what to buy follows from arithmetic there, otherwise both."""
    min_confidence: float = 0.0
    """Where L3's likeliest operator is less probable than this, the rule of heuristic mode decides."""
    decision_log: Place = None
    """Folder for a JSON-lines file that explains every action."""

    def __post_init__(self) -> None:
        words: dict[str, tuple[str | None, ...]] = {
            "mode": (None, "heuristic", "neural", "learned"),
            "l4": (None, "heuristic", "uniform", "neural"),
            "decode": ("argmax", "sample"),
            "learnt": (None, "both", "sales"),
        }
        for field, allowed in words.items():
            if getattr(self, field) not in allowed:
                right = ", ".join(word for word in allowed if word)
                raise UserError(f"LitaAgentHRL has {field} = {getattr(self, field)!r}; it must be one of {right}.")
        if type(self.horizon) is not int or self.horizon > MOST_DAYS:
            raise UserError(f"LitaAgentHRL has horizon = {self.horizon!r}; expected a whole number up to {MOST_DAYS}.")
        if self.horizon < 10:
            raise UserError(f"LitaAgentHRL looks {self.horizon} days ahead; deliveries can be 10 days away.")
        if not isinstance(self.min_confidence, int | float) or not 0 <= self.min_confidence <= 1:
            raise UserError(f"LitaAgentHRL has min_confidence = {self.min_confidence!r}; expected 0 to 1.")
        for field in ("l2_model_path", "l3_model_path", "l4_model_path", "decision_log"):
            if not isinstance(getattr(self, field), str | Path | None):
                raise UserError(f"LitaAgentHRL has {field} = {getattr(self, field)!r}; expected a path.")
        self.l1_options()
        self.rule_options()

    def place_of(self, layer: str) -> Place:
        """Where the weights of a layer lie: its own path, else the folder of all three, else None."""
        own: Place = getattr(self, f"{layer}_model_path")
        if own is not None or self.weights is None:
            return own
        place = Path(self.weights)
        return place if place.exists() else Path("runs") / "market" / place

    def l1_options(self) -> L1Options | None:
        """The options of L1 that were asked for, None if none were."""
        if self.l1 is None or isinstance(self.l1, L1Options):
            return self.l1
        if isinstance(self.l1, str):
            return ECONOMIC if self.l1 == "economic" else L1Options(rules=self.l1)  # type: ignore[arg-type]
        if not isinstance(self.l1, Mapping):
            raise UserError(f"LitaAgentHRL has l1 = {self.l1!r}; expected guide, economic or a table of options.")
        return from_dict(L1Options, self.l1, "the l1 of LitaAgentHRL")

    def rule_options(self) -> RuleOptions:
        """The parameters of rule W."""
        if isinstance(self.rule, RuleOptions):
            return self.rule
        if self.rule is not None and not isinstance(self.rule, Mapping):
            raise UserError(f"LitaAgentHRL has rule = {self.rule!r}; expected a table of options.")
        return from_dict(RuleOptions, self.rule or {}, "the rule of LitaAgentHRL")

    @property
    def plays(self) -> Mode:
        """The mode, with the choice made where it was left open."""
        if self.mode is not None:
            return self.mode
        if any(self.place_of(layer) is not None for layer in LAYERS):
            return "neural"
        other_rules = self.rule is not None or self.l1_options() not in (None, ECONOMIC)
        return "heuristic" if other_rules else "learned"

    @property
    def is_neural(self) -> bool:
        """Whether networks of the layers play."""
        return self.plays == "neural"

    @property
    def is_pure_l1(self) -> bool:
        """Whether L1 alone decides about offers and acceptances."""
        return self.residual_off and self.op_head_off
