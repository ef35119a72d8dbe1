"""The commands around a trained shoal."""
