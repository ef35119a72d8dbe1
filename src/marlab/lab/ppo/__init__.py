"""PPO for batched worlds."""
