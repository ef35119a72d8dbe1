"""Shared by all tests: one thread, so that results are equal on every machine and two workers do not fight."""

import torch

torch.set_num_threads(1)
