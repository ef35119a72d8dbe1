"""Known faults brought back on purpose, each with its tell-tale plot."""
