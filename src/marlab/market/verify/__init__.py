"""Is the vector market the simulator's market? `marlab market verify`; and `marlab market configs`, the exporter."""
