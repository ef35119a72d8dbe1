"""The training guide's names, each a thin door to the modules behind it."""
