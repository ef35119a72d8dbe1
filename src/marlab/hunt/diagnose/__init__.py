"""Which module is at fault: figures, tables and a verdict per module."""
