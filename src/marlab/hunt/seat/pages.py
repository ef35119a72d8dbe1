"""The page of the human seat."""

from __future__ import annotations

from pathlib import Path

from marlab.lab.notebook.panels import Page, Panel

TEAMS = ("planners", "mixed", "rules", "large")
ACTIONS = ("up", "down", "left", "right", "stay", "hunt stag", "hunt hare")
"""Both as in `game`, which needs torch; a test holds that they are the same."""


def play(root: Path) -> Page:
    """One page of the notebook, for all runs."""
    data = {"teams": list(TEAMS), "actions": list(ACTIONS)}
    return Page("play", "hunt.seat.title", [Panel("hunt.seat", "hunt.seat.table", data)], "hunt.seat.lead")
