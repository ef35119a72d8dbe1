"""What worlds put on pages: panels of plain data, never HTML.

A world's module `marlab.WORLD.pages` holds tables and is cheap to import:

    PAGES = {"marlab.fish.measure.config:EvalConfig": "marlab.fish.measure.pages:evaluation"}

names, by the type of a run's config, the function that makes a `Contribution` of what is in the run's folder. SITE
names pages that belong to no run, ACTIONS what may be asked of a served notebook, WORDS all texts in every language,
CAPTIONS and METRICS what people call the files and figures of a run. A panel's kind says which script draws it: one of
the lab's (`assets/kinds.js`), or with a dot in it one in the folder `assets` of the world.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from marlab.lab.door import resolve
from marlab.lab.errors import UserError
from marlab.lab.runs.files import trusting
from marlab.lab.runs.records import RunInfo

Place = Literal["replay", "results", "curves", "details"]
PLACES: tuple[Place, ...] = ("replay", "results", "curves", "details")
CONFIG_TYPE = re.compile(r"marlab\.([a-z][a-z0-9_]*)\.[a-z0-9_.]+:\w+")
PAGE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
PACKAGE = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class Panel:
    """One part of a page."""

    kind: str
    title: str  # key of a word; a text that is no key is shown as it is
    data: Any = None  # JSON values
    caption: str = ""  # as the title
    place: Place = "results"
    parts: Mapping[str, Callable[[], Any]] = field(default_factory=dict)  # data that is loaded when it is wanted

    @property
    def package(self) -> str | None:
        """The world whose script draws it; None for the lab's kinds."""
        world, dot, _ = self.kind.partition(".")
        return world if dot else None


@dataclass(frozen=True)
class Page:
    """A further page of a run, or one of the whole notebook."""

    name: str
    title: str
    panels: Sequence[Panel]
    lead: str = ""

    def __post_init__(self) -> None:
        if not PAGE_NAME.fullmatch(self.name) or self.name == "index":
            raise ValueError(f"'{self.name}' cannot be the name of a page")


@dataclass(frozen=True)
class Contribution:
    """What a world shows of one run."""

    panels: Sequence[Panel] = ()
    pages: Sequence[Page] = ()
    results: bool = False
    """Whether the panels say all that the plain table of results would."""


Cell = str | int | float | None | Mapping[str, Any]
"""A text, a number, {"value", "low", "high", "unit"}, or {"text", "href"}."""


@dataclass(frozen=True)
class Table:
    """Data of a panel of the kind "table"; the first columns are those that a phone shows first."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    sort: bool = True

    def data(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows], "sort": self.sort}


def world_pages(package: str) -> ModuleType | None:
    """The module `pages` of a package below marlab; None where there is none."""
    if not PACKAGE.fullmatch(package):
        return None
    name = f"marlab.{package}.pages"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, f"marlab.{package}"):
            raise
        return None


def package_of(info: RunInfo) -> str | None:
    """The package that made a run, told by its config. A record may come from a stranger: the name is checked."""
    known = CONFIG_TYPE.fullmatch(info.config_type or "")
    return known[1] if known else None


def contribution(info: RunInfo) -> Contribution:
    """What the world of a run shows of it; one that has nothing to show gives an empty one."""
    package = package_of(info)
    module = world_pages(package) if package else None
    target = table(module, "PAGES").get(info.config_type or "")
    if target is None:
        return Contribution()
    with trusting(f"{info.path} is damaged or of another version"):
        found: Contribution = resolve(target)(info)
    return found


def table(module: ModuleType | None, name: str) -> Mapping[str, Any]:
    """One of the tables of a world's module; empty where it has none."""
    found: Mapping[str, Any] = getattr(module, name, {})
    return found


def called(package: str | None, name: str, tables: str, language: str) -> str | None:
    """What people call a file or figure (`tables`: CAPTIONS or METRICS); patterns are allowed. None: nobody says."""
    module = world_pages(package) if package else None
    for words in (table(module, tables).get(language, {}), COMMON.get(tables, {}).get(language, {})):
        if name in words:
            return str(words[name])
        for pattern, text in words.items():
            if fnmatchcase(name, pattern):
                return str(text)
    return None


COMMON: dict[str, dict[str, dict[str, str]]] = {
    "METRICS": {
        "en": {
            "ppo/policy_loss": "policy loss", "ppo/value_loss": "value loss", "ppo/loss": "loss",
            "ppo/entropy": "entropy of the policy [nats]", "ppo/approx_kl": "how far the policy moved (KL)",
            "ppo/clip_fraction": "share of clipped ratios", "ppo/explained_variance": "explained variance",
            "ppo/samples": "samples", "ppo/gradient_steps": "gradient steps", "ppo/learning_rate": "learning rate",
            "score": "score that chooses the best checkpoint", "time/world": "seconds in the world",
            "time/policy": "seconds in the policy", "time/learning": "seconds of learning",
            "time/probe": "seconds of probing", "time/steps_per_second": "steps per second",
            "time/rollout": "seconds of playing", "time/train": "seconds of learning",
        },
        "zh": {
            "ppo/policy_loss": "策略损失", "ppo/value_loss": "价值损失", "ppo/loss": "损失",
            "ppo/entropy": "策略的熵 [nat]", "ppo/approx_kl": "策略移动了多远（KL）",
            "ppo/clip_fraction": "被截断的比率所占份额", "ppo/explained_variance": "解释方差",
            "ppo/samples": "样本数", "ppo/gradient_steps": "梯度步数", "ppo/learning_rate": "学习率",
            "score": "用来挑选最佳检查点的分数", "time/world": "环境用时 [秒]",
            "time/policy": "策略用时 [秒]", "time/learning": "学习用时 [秒]",
            "time/probe": "探测用时 [秒]", "time/steps_per_second": "每秒步数",
            "time/rollout": "对局用时 [秒]", "time/train": "学习用时 [秒]",
        },
    },
    "CAPTIONS": {
        "en": {"comparison": "Curves with their bands, and every group with its interval"},
        "zh": {"comparison": "各组曲线及其区间带，以及每组的均值和区间"},
    },
}  # fmt: skip
"""What the lab's own files and metrics are called."""


def action(package: str, name: str) -> Callable[[dict[str, Any], Path], dict[str, Any]]:
    """What a world answers to a question of a served page."""
    target = table(world_pages(package), "ACTIONS").get(name)
    if target is None:
        raise UserError(f"Nothing here answers {package}/{name}.")
    found: Callable[[dict[str, Any], Path], dict[str, Any]] = resolve(target)
    return found
