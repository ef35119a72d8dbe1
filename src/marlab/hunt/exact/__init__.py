"""What is possible, computed exactly, and whether the game is the calibrated one."""
