"""Rule W for GPUs: its decisions as a few compiled functions, and kernels of their own for the rest."""
