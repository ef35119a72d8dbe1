"""Runs side by side: groups of seeds, paired differences with intervals, curves with bands, and a verdict in words."""
