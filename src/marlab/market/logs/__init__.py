"""What was seen and done, as records and files."""
