"""World 2, fish: a shoal with one shared policy escapes a predator in a round tank."""
