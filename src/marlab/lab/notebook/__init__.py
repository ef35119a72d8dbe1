"""The notebook: pages that show what happened, as static files or served on loopback; worlds contribute panels."""
