"""What a tournament came to, in sentences."""

from __future__ import annotations

from marlab.lab.verdict import Sentence, say, side
from marlab.market.arena.plan import label
from marlab.market.arena.report import Result, ranked
from marlab.market.arena.stats import score_interval


def verdict(result: Result, unfinished: bool = False) -> list[Sentence]:
    """The agent that was asked about beside the baseline, who earns most, and what to do next."""
    last = [say("lab.go_on")] if unfinished else []
    if not result.seats:
        return [say("market.nothing_played"), *last]
    comparisons, names = result.comparisons(), ranked(result)
    markets = len(result.configs)
    score, limits = score_interval(result.seats, names[0])
    if not comparisons:
        return [say("market.alone", agent=label(names[0]), score=score, interval=limits, markets=markets), *last]
    asked = comparisons[0]
    told = {"agent": label(asked.agent), "other": label(asked.against), "difference": asked.mean}
    if asked.student is None:
        found, where = [say("market.one_market", **told)], "unclear"
    else:
        where = side(asked.student)
        found = [say(f"market.{where}", **told, interval=asked.student, markets=markets)]
    if len(names) > 2:
        found.append(say("market.best", agent=label(names[0]), agents=len(names), score=score, interval=limits))
    if where == "unclear" and not last:
        last = [say("market.next_more_markets", more=4 * result.config.configs)]
    return [*found, *(last or [say("lab.look")])]
