"""Offline learning of L2, L3 and L4."""
