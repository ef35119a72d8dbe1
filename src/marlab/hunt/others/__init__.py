"""Models of others: goal codes, action predictor, beliefs, and their pretraining."""
