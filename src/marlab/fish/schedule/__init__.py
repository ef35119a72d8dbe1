"""What changes while a shoal learns: curriculum, and the gate on the density penalty."""
