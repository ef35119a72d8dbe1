"""The vector market for other libraries."""
