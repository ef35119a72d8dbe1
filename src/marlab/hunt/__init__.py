"""World 3, hunt: the Markov stag hunt (and the snowdrift game), its players, and what can be learned about them."""
