"""Worlds and tournaments as plain values for pages."""
