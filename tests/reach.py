"""What a module imports, directly or not: for tests that a list of sources is complete."""

from __future__ import annotations

from collections.abc import Sequence

from marlab.lab.runs.identity import HOUSE, sources
from tests.test_layers import imports, modules


def not_digested(starts: Sequence[str], code: Sequence[str], plumbing: tuple[str, ...]) -> set[str]:
    """Modules that the `starts` reach without a way through `plumbing`, and that are not among the sources `code`."""
    reached: set[str] = set()
    todo = list(starts)
    while todo:
        name = todo.pop()
        if name in modules() and name not in reached and not name.startswith(plumbing):
            reached.add(name)
            todo += [imported for importer, imported in imports() if importer == name]
    digested = {"marlab." + ".".join(file.relative_to(HOUSE).with_suffix("").parts) for file in sources(code)}
    return {name for name in reached if modules()[name].name != "__init__.py"} - digested
