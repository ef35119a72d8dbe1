"""How models of others are made from offline episodes, and how good they are."""
