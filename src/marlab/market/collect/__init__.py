"""`marlab market collect`: which worlds are played, and what came out."""
