"""Beliefs about partners: an observer is fitted to recorded worlds and held against others."""
