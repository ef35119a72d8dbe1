"""Hard starts: their files, the queue that serves them, and making them."""
