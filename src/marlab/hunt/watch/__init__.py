"""An episode as film and as data."""
