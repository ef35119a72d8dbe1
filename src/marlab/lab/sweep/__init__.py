"""Settings tried out: a grid or random draws, seeds, successive halving, each training an ordinary run."""
