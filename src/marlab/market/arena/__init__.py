"""`marlab market play`: tournaments that can tell agents apart."""
