"""A human at the table: one seat is played from outside, the others by agents."""
