"""`marlab fish starts [STAGE ...]`: make files of hard starts, or look into one."""

from __future__ import annotations

from collections.abc import Sequence

from marlab.fish.starts.make import StartsConfig, make_starts
from marlab.lab.command import begins_anew
from marlab.lab.flags import parse
from marlab.lab.progress import stage


def main(argv: Sequence[str]) -> int:
    config = parse(StartsConfig, argv, prog="marlab fish starts", positional=("stages...",))
    with begins_anew("marlab fish starts"), stage("hard starts"):
        make_starts(config)
    return 0
