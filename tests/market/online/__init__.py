"""The vector market."""
