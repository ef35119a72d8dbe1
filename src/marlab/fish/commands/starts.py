"""`marlab fish starts [STAGE ...]`: make files of hard starts, or look into one."""

from __future__ import annotations

from collections.abc import Sequence

from marlab.fish.starts.make import StartsConfig, make_starts
from marlab.lab.flags import parse


def main(argv: Sequence[str]) -> int:
    make_starts(parse(StartsConfig, argv, prog="marlab fish starts", positional=("stages...",)))
    return 0
