"""Holding the vector market against the simulator."""
