"""The PPO baseline."""
