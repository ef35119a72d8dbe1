"""Runs side by side: groups of seeds, paired differences with intervals, curves with bands, and what it says in words."""
