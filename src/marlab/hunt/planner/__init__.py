"""Planning agents: networks, models of others in use, imagined dynamics, search, beliefs."""
