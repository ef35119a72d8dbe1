"""The sea as pure batched functions, and the worlds that trainers drive."""
