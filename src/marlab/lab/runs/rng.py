"""Named random generators, one per purpose, that can be saved and restored.

Adding a draw to one purpose must not change the numbers of another, so every name gets its own stream, derived
from the run's seed and the name alone.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import torch


def stream_seed(seed: int, name: str) -> int:
    """A 63-bit seed for the stream `name` of a run with `seed`; the same on every machine and version."""
    words = np.random.SeedSequence([seed, zlib.crc32(name.encode())]).generate_state(2, np.uint64)
    return int(words[0] ^ words[1]) >> 1


class Rngs:
    """Named torch and NumPy generators made on first use: `rngs.torch("policy")`, `rngs.numpy("starts")`."""

    def __init__(self, seed: int, device: torch.device | str = "cpu") -> None:
        self.seed = seed
        self.device = torch.device(device)
        self._torch: dict[str, torch.Generator] = {}
        self._numpy: dict[str, np.random.Generator] = {}

    def torch(self, name: str, device: torch.device | str | None = None) -> torch.Generator:
        """The torch generator of a purpose, on the run's device unless another is named at its first use."""
        if name not in self._torch:
            generator = torch.Generator(device=self.device if device is None else device)
            generator.manual_seed(stream_seed(self.seed, f"torch/{name}"))
            self._torch[name] = generator
        return self._torch[name]

    def numpy(self, name: str) -> np.random.Generator:
        """The NumPy (PCG64) generator of a purpose."""
        if name not in self._numpy:
            self._numpy[name] = np.random.default_rng(stream_seed(self.seed, f"numpy/{name}"))
        return self._numpy[name]

    def draw_seed(self, name: str) -> int:
        """A fixed seed for a part that makes its own generator; the same at every call."""
        return stream_seed(self.seed, f"seed/{name}")

    def state_dict(self) -> dict[str, Any]:
        """Every stream in plain values and byte tensors, fit for a checkpoint."""
        return {
            "seed": self.seed,
            "torch": {k: {"device": str(g.device), "state": g.get_state()} for k, g in self._torch.items()},
            "numpy": {k: g.bit_generator.state for k, g in self._numpy.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue every stream where it was saved; generators handed out before stay valid objects."""
        self.seed = state["seed"]
        for name, saved in state["torch"].items():
            self.torch(name, saved["device"]).set_state(saved["state"].cpu())  # a checkpoint loaded onto a GPU moves it
        for name, saved in state["numpy"].items():
            self.numpy(name).bit_generator.state = saved
