"""The world model and its pretraining."""
