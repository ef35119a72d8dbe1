"""The file with the paths of some arenas, for the replay page; what is in it, and how it is read without torch.

Beside the paths the file holds where fish died in all arenas that were looked at, and the field of a trained policy:
what a fish does at each place around a predator. Letters: P policies, A arenas with paths, E arenas looked at, T steps,
F fish, K predators, G cells of a side of the field, H headings.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from marlab.lab.errors import UserError
from marlab.lab.runs.arrays import read_npz
from marlab.lab.runs.files import replacing, trusting

FILE = "paths.npz"
SCHEMA = 1
FIELD_REACH = 4.0
"""Metres around the predator that the field covers."""
FIELD_CELLS = 25
FIELD_SPEED = 1.0
"""Of the fish in the field, m/s."""
HEADINGS = ("east", "north", "west", "south")
_SHAPES = {
    "position": "PAMF2", "predator": "PAMK2", "action": "PATF", "death": "PAF", "death_place": "PEF2",
    "death_step": "PEF", "field_action": "HGG", "field_chance": "HGG",
}  # fmt: skip
"""The arrays and their axes; M moments are T steps and the start."""


@dataclass(frozen=True)
class Paths:
    """What the file holds; places are in metres, half precision (8 mm at the wall)."""

    names: list[str]  # [P], the evaluated policy first
    seeds: list[int]  # [E], the A arenas with paths first
    position: NDArray[np.float16]  # [P, A, T+1, F, 2]
    predator: NDArray[np.float16]  # [P, A, T+1, K, 2]
    action: NDArray[np.int8]  # [P, A, T, F]
    death: NDArray[np.int16]  # [P, A, F] step from 1, -1 for survivors
    death_place: NDArray[np.float16]  # [P, E, F, 2], NaN for survivors
    death_step: NDArray[np.int16]  # [P, E, F]
    field_action: NDArray[np.int8]  # [H, G, G] most likely action, rows from south to north
    field_chance: NDArray[np.float16]  # [H, G, G] its probability

    def write(self, path: Path) -> None:
        about = json.dumps({"schema": SCHEMA, "names": self.names, "seeds": self.seeds})
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, about=np.array(about), **{name: getattr(self, name) for name in _SHAPES})


def read_paths(path: Path) -> Paths:
    """Read the file; one that is damaged or something else raises UserError."""
    stored = read_npz(path, "the paths of an evaluation")
    with trusting(f"{path} does not hold the paths of an evaluation"):
        about = json.loads(str(stored["about"]))
        if about["schema"] != SCHEMA:
            raise UserError(f"{path} has schema {about['schema']}; this version reads {SCHEMA}.")
        return _checked(Paths(list(about["names"]), list(about["seeds"]), **{name: stored[name] for name in _SHAPES}))


def _checked(paths: Paths) -> Paths:
    """ValueError where the arrays do not fit each other."""
    sizes = {"P": len(paths.names), "E": len(paths.seeds), "H": len(HEADINGS), "2": 2}
    for name, axes in _SHAPES.items():
        values = getattr(paths, name)
        if values.dtype.kind not in "if" or values.ndim != len(axes):
            raise ValueError(f"its {name} is {values.dtype} {values.shape}")
        for axis, size in zip(axes, values.shape):
            if sizes.setdefault(axis, size) != size:
                raise ValueError(f"its {name} has the shape {values.shape}")
    if sizes["M"] != sizes["T"] + 1 or sizes["A"] > sizes["E"]:
        raise ValueError("its paths are not as long as what was done")
    return paths
