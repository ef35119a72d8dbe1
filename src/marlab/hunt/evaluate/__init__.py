"""The score card: agents by name, scenarios, streams of episodes, scores."""
