"""What every world shares. Nothing in here knows a world."""
