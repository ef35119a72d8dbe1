"""The verdict of a run: did it help, by how much and compared with what, and what to do next; three sentences at most.

    run.set_verdict(say("fish.above_script", survival=0.98, interval=(0.97, 0.99), script="sidestep"))

A record holds keys and numbers; the words stand in tables beside the code of each world, so that a page can say the
same in another language. The first part of a key names the package below marlab whose module `verdicts` has the table
`SENTENCES`: language -> rest of the key -> template. A template is a sentence with `{name}` or `{name:format}` in it;
`{run}` is always known, and pairs are written as intervals.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Literal

from marlab.lab.stats import show
from marlab.lab.verdict_zh import SENTENCES_ZH

ENGLISH = "en"
MOST = 3
KEY = re.compile(r"([a-z][a-z0-9_]*)\.([a-z][a-z0-9_.]*)")

_GAP = "{what} {value} against {base}, {difference:+.3g} {interval:+.3g}."
SENTENCES = {
    ENGLISH: {
        "at_the_best": "{what} is {value} {interval} on {size}, and {best} is the best possible: nothing is missing.",
        "short_of_best": "{what} is {value} {interval} on {size}; {best} would be the best possible.",
        "go_on": "Next: the same command with `--resume` goes on from here.",
        "draw": "Next: `marlab draw {run}` makes what the time was too short for.",
        "look": "Next: `marlab note {run}` tells the whole story.",
        "compare.better": "{name} is better than {other}: " + _GAP,
        "compare.worse": "{name} is worse than {other}: " + _GAP,
        "compare.higher": "{name} is above {other}: " + _GAP,
        "compare.lower": "{name} is below {other}: " + _GAP,
        "compare.within_noise": "{name} and {other} are within noise: " + _GAP,
        "compare.equal": "{name} and {other} are equal: {what} {value}.",
        "compare.unknown": "{name} and {other} cannot be told apart yet: {what} {value} and {base}.",
        "compare.seeds": "Differences are over the {pairs} seeds that both were trained with.",
        "compare.seeds_needed": "Differences are over the {pairs} seeds that both were trained with; about {needed} "
        "would tell one of this size from noise.",
        "compare.cases": "Differences are over {pairs} cases that one training of each met: of other seeds they say "
        "nothing.",
        "compare.apart": "The seeds are not the same, so the groups are compared as two samples, not in pairs.",
        "compare.single": "Next: train the same seeds of each, two or more, because one training says nothing about "
        "another seed.",
        "compare.one_group": "All {count} runs have the same settings but for their seeds: they are one group, and "
        "there is nothing to compare it with.",
    },
    "zh": SENTENCES_ZH,
}
"""Sentences that fit every world; their keys begin with "lab."."""


@dataclass(frozen=True)
class Sentence:
    """One sentence: which one, and the values in it (numbers, texts, pairs, or None for unknown)."""

    key: str
    numbers: Mapping[str, Any]

    def stored(self) -> dict[str, Any]:
        return {"key": self.key, "numbers": dict(self.numbers)}


def say(key: str, **numbers: Any) -> Sentence:
    """A sentence of plain values, whatever numpy or torch they come from; what is not finite is unknown."""
    if not KEY.fullmatch(key):
        raise ValueError(f"'{key}' is no key of a sentence, expected for example fish.above_script")
    return Sentence(key, {name: _plain(value) for name, value in numbers.items()})


def side(interval: Sequence[float | None] | None, zero: float = 0.0) -> Literal["above", "below", "unclear"]:
    """On which side of `zero` a whole interval lies."""
    if interval is None or interval[0] is None or interval[1] is None:
        return "unclear"
    return "above" if interval[0] > zero else "below" if interval[1] < zero else "unclear"


def stored(sentences: Iterable[Sentence]) -> list[dict[str, Any]]:
    """A verdict as run.json holds it."""
    kept = [sentence.stored() for sentence in sentences]
    if len(kept) > MOST:
        raise ValueError(f"a verdict has {MOST} sentences at most, not {len(kept)}")
    return kept


def is_stored(value: Any) -> bool:
    """Whether a value from a file is a verdict."""
    return isinstance(value, list) and len(value) <= MOST and all(map(_is_sentence, value))


def _is_sentence(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("numbers"), dict):
        return False
    return isinstance(value.get("key"), str) and KEY.fullmatch(value["key"]) is not None


def texts(verdict: Iterable[Sentence | Mapping[str, Any]], run: str, language: str = ENGLISH) -> list[str]:
    """The sentences in words. One that no table here knows is shown as its key and its numbers."""
    found = []
    for entry in verdict:
        sentence = entry if isinstance(entry, Sentence) else Sentence(entry["key"], entry["numbers"])
        found.append(_said(sentence, run, language))
    return found


def template(key: str, language: str = ENGLISH) -> str | None:
    """The words for a key: in `language`, else in English, else None."""
    package, _, rest = key.partition(".")
    table = SENTENCES if package == "lab" else _table(package)
    for words in (table.get(language, {}), table.get(ENGLISH, {})):
        if rest in words:
            return str(words[rest])
    return None


def _table(package: str) -> Mapping[str, Mapping[str, str]]:
    """The sentences of a world. A record may come from a stranger: only modules of this name are ever imported."""
    name = f"marlab.{package}.verdicts"
    try:
        found: Mapping[str, Mapping[str, str]] = importlib.import_module(name).SENTENCES
    except ModuleNotFoundError as error:
        if error.name not in (name, f"marlab.{package}"):
            raise
        return {}
    return found


def _said(sentence: Sentence, run: str, language: str) -> str:
    words, numbers = template(sentence.key, language), {**sentence.numbers, "run": run}
    if words is not None:
        try:
            return "".join(
                literal + ("" if name is None else written(numbers[name], form or ""))
                for literal, name, form, _ in Formatter().parse(words)
            )
        except (KeyError, ValueError, TypeError, OverflowError):  # numbers of another version, or of a stranger
            pass
    return f"{sentence.key}: " + ", ".join(f"{name} {written(v)}" for name, v in sentence.numbers.items())


def written(value: Any, form: str = "") -> str:
    """A value for people: numbers by a format (or four digits), pairs as intervals, texts without backticks."""
    if value is None:
        return show(None)
    if isinstance(value, list | tuple):
        return f"[{', '.join(written(part, form) for part in value)}]"
    if isinstance(value, str):
        return value.replace("`", "'")
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is neither a number nor a text")
    shown = format(value, form) if form else show(value)
    return shown.replace("-", "\N{MINUS SIGN}").replace("%", " %")


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)
