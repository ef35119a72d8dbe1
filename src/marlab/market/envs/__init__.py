"""The vector market for other libraries: one world as a PettingZoo environment."""
