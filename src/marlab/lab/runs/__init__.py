"""Run directories: opening, locking, writing, reading, training in them, and going on after a kill."""
