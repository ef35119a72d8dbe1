"""Figures, lab notes, the training record and their pages. Knows runs, knows no world."""
