"""What can be installed beside the core, and one sentence where a library of it is missing.

Commands name the extra that they need in the table of `marlab.cli`, where it is looked for before anything is imported;
what depends on a setting (an engine, whether worlds are played) asks here as soon as the setting is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from marlab.lab.errors import UserError

EXTRAS = {"market": ("scml", "negmas"), "ray": ("ray",), "dask": ("distributed", "cryptography")}
"""Extra of pyproject.toml -> libraries that are imported from it."""


def need(extra: str, what: str) -> None:
    """Refuse `what` in one sentence where a library of the extra cannot be imported."""
    for library in EXTRAS[extra]:
        if find_spec(library) is None:
            raise UserError(f"{what} needs {library}, which is not installed: pip install 'marlab[{extra}]'.")


@contextmanager
def told_what_is_missing(what: str) -> Iterator[None]:
    """An import in which the first missing library of an extra is named together with that extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        for extra, libraries in EXTRAS.items():
            if (error.name or "").partition(".")[0] in libraries:
                need(extra, what)
        raise
