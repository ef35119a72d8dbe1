"""Everything that can sit at the table without learning, and playing whole episodes."""
