"""Offline data of rule-based players."""
