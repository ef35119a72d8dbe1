"""The three networks, their files and their losses."""
