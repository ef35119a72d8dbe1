"""From logs to samples that trainers open without reading them."""
