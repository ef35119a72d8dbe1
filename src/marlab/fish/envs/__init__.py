"""The sea for other people's libraries: Gymnasium, PettingZoo, and one picture of it."""
