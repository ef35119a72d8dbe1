"""From an agent to what the league takes: a new agent, and a submission that needs scml alone."""
