"""The rules of the game as pure batched functions, and what players see."""
