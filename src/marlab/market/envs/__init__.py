"""The vector market for other libraries: a world as a PettingZoo environment, a factory as a Gymnasium one."""
