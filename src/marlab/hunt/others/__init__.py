"""Models of others as they are used: goal codes, action predictor, beliefs."""
