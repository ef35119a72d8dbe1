"""Measuring a shoal: scripted policies, the ceiling, probes, figures."""
