"""What every world's module `pages` must keep to."""

from __future__ import annotations

import re
from types import ModuleType

from marlab.lab.door import resolve
from marlab.lab.notebook.panels import table
from marlab.lab.notebook.words import LANGUAGES

HOLE = re.compile(r"\{(\w+)\}")


def check_tables(module: ModuleType) -> None:
    """All languages say the same things, with the same holes, and every target exists."""
    for name in ("WORDS", "CAPTIONS", "METRICS"):
        words = table(module, name)
        english = words.get("en", {})
        for language in LANGUAGES:
            spoken = words.get(language, {})
            assert set(spoken) == set(english), f"{module.__name__}.{name}: {set(spoken) ^ set(english)}"
            assert all(text.strip() for text in spoken.values())
            for key, text in spoken.items():
                assert sorted(HOLE.findall(text)) == sorted(HOLE.findall(english[key])), key
    for name in ("PAGES", "SITE", "ACTIONS"):
        for target in table(module, name).values():
            assert callable(resolve(target))
