"""Distillation: what several teachers choose, learnt by one small network around the rule."""
