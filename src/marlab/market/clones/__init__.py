"""Clones of experts, fitted to recorded worlds: `marlab market clone`. `marlab.market.vector.clones` plays them."""
