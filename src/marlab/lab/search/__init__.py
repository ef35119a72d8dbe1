"""Monte-Carlo tree search over batches of decisions. It knows no game."""
