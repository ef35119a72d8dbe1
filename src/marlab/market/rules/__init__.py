"""Pure functions of what a factory knows: caps, baseline, goals, features, teachers."""
