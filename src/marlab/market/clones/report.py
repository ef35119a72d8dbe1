"""The tables of a run of clones, as Markdown and as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from marlab.lab.report import markdown
from marlab.lab.stats import Measured
from marlab.lab.verdict import Sentence, say
from marlab.market.clones.fit import PARTS
from marlab.market.simulator.seating import POSITIONS
from marlab.market.vector.builtin import BUILTIN
from marlab.market.vector.clones import ClonePack
from marlab.market.vector.clones.pack import OURS


def playable(pack: ClonePack) -> set[str]:
    """Agents that the vector market plays with this pack."""
    return {*pack.names, *BUILTIN, OURS}


def as_markdown(found: dict[str, Any]) -> str:
    """All tables."""
    return "\n".join(_sections(found)) + "\n"


def _sections(found: dict[str, Any]) -> Iterator[str]:
    about, experts = found["about"], found["experts"]
    yield "# Clones beside experts\n"
    yield (
        f"{about['worlds']:,} recorded worlds, {about['days']:,} days, {sum(about['decisions'].values()):,} decisions; "
        f"what follows is measured on {found['held_out_worlds']} worlds that were never fitted.\n"
    )
    yield "## Cross-entropy (nats), the predictor of shares alone behind the stroke\n"
    yield markdown.table(
        ["expert", "decisions", "whole decision", "95 % over worlds", *PARTS],
        [
            [name, f"{each['decisions']:,}", *_against(each, "decision"), *(_against(each, p)[0] for p in PARTS)]
            for name, each in experts.items()
        ],
    )
    yield "\n## Shares of answers: expert, clone\n"
    yield markdown.table(
        ["expert", "leaves", "accepts (of offers heard)", "offers"],
        [
            [name, *(_both(each["shares"][k], 3) for k in ("leave", "accept", "offer"))]
            for name, each in experts.items()
        ],
    )
    yield "\n## Terms of offers: expert, clone\n"
    yield markdown.table(
        ["expert", "lot", "price position", "for today", "days ahead"],
        [
            [name, *(_both(each["terms"][k], 2) for k in ("lot", "price", "today", "day"))]
            for name, each in experts.items()
        ],
    )
    yield "\n## Chance of leaving by round: expert, clone\n"
    rounds = (0, 1, 2, 3, 5, 10, 15, 19)
    yield markdown.table(
        ["expert", *(str(r) for r in rounds)],
        [[name, *(_both(each["hazard"][r], 2) for r in rounds)] for name, each in experts.items()],
    )
    if found["scores"]:
        yield "\n## Scores by place in the chain: real worlds, worlds of clones, difference with its 95 %\n"
        yield markdown.table(
            ["agent", *(f"{p}: real, clones" for p in POSITIONS), *(f"{p}: difference" for p in POSITIONS)],
            [
                [name, *(_both(table.get(p), 3) for p in POSITIONS), *(_difference(table.get(p)) for p in POSITIONS)]
                for name, table in found["scores"].items()
            ],
        )


def _number(value: Measured | None, digits: int) -> str:
    return "" if value is None or value.number is None else f"{value.number:.{digits}f}"


def _both(pair: dict[str, Any] | None, digits: int) -> str:
    if pair is None:
        return ""
    real = pair.get("expert", pair.get("real"))
    texts = [_number(real, digits), _number(pair["clone"], digits)]
    return ", ".join(texts) if all(texts) else ""


def _difference(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    gap: Measured = row["difference"]
    around = "" if gap.low is None or gap.high is None else f" [{gap.low:+.3f}, {gap.high:+.3f}]"
    return f"{gap.number:+.3f}{around}"


def _against(each: dict[str, Any], part: str) -> tuple[str, str]:
    clone, trivial = each["cross_entropy"][part], each["marginal"][part]
    text = " / ".join(filter(None, (_number(clone, 3), _number(trivial, 3))))
    around = "" if clone.low is None or clone.high is None else f"[{clone.low:.3f}, {clone.high:.3f}]"
    return text, around


def plain(value: Any) -> Any:
    """The same with `Measured` as tables."""
    if isinstance(value, Measured):
        return {key: part for key, part in asdict(value).items() if part is not None}
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def numbers(found: dict[str, Any]) -> dict[str, Any]:
    """Results for run.json."""
    experts, about = found["experts"], found["about"]
    counts = {"worlds": about["worlds"], "decisions": sum(about["decisions"].values())}
    if not experts:
        return {**counts, "held-out worlds": found["held_out_worlds"]}
    out: dict[str, Any] = {
        **counts,
        "cross-entropy, held out": _mean_of(each["cross_entropy"]["decision"] for each in experts.values()),
        "cross-entropy of shares alone": _mean_of(each["marginal"]["decision"] for each in experts.values()),
        "held-out worlds": found["held_out_worlds"],
    }
    gaps = [abs(table[p]["difference"].number) for table in found["scores"].values() for p in POSITIONS if p in table]
    if gaps:
        out["score difference, mean size"] = float(np.mean(gaps))
    return out


def _mean_of(values: Any) -> float:
    return float(np.mean([value.number for value in values]))


def verdict(found: dict[str, Any]) -> list[Sentence]:
    """What was found, in one or two sentences."""
    told = numbers(found)
    if "cross-entropy, held out" not in told:
        return []
    clone, trivial = told["cross-entropy, held out"], told["cross-entropy of shares alone"]
    better = sum(
        e["cross_entropy"]["decision"].number < e["marginal"]["decision"].number for e in found["experts"].values()
    )
    said = [say("market.cloned", better=better, experts=len(found["experts"]), value=clone, trivial=trivial)]
    if "score difference, mean size" in told:
        said.append(
            say("market.cloned_scores", gap=told["score difference, mean size"], worlds=told["held-out worlds"])
        )
    return said
