"""marlab: a laboratory for agents that live among other agents."""

__version__ = "0.2.0"
