"""Pages in a real Chromium: fixtures that a test file of pages imports.

    from tests.lab.notebook.browser import browser, page  # noqa: F401

Where there is no Chromium such tests are skipped with a message; with MARLAB_BROWSER=required they fail.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
PATIENCE = 20_000
"""Milliseconds that anything on a page may take on a busy machine."""


def chromium() -> str | None:
    """The system's Chromium, if there is one and the library that drives it."""
    try:
        import playwright  # noqa: F401
    except ImportError:
        return None
    return next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for all tests of a module."""
    program = chromium()
    if program is None:
        if os.environ.get("MARLAB_BROWSER") == "required":
            pytest.fail("MARLAB_BROWSER=required, and there is no Chromium or no playwright")
        pytest.skip("pages are looked at in Chromium, which is not installed here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as library:
        opened = library.chromium.launch(executable_path=program, args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A fresh tab; the test fails if the page writes an error or a warning to the console."""
    yield from fresh_page(browser)


def fresh_page(browser: Any, **options: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, **options)
    context.set_default_timeout(PATIENCE)
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: said.append(str(error)))
    yield tab
    context.close()
    assert said == [], f"the page complained: {said}"


def open_page(page: Any, target: Path | str, ready: str = ".panel[data-kind]") -> None:
    """Open a page and wait until all its panels are drawn."""
    page.goto(target.as_uri() if isinstance(target, Path) else target)
    page.wait_for_function(
        "selector => [...document.querySelectorAll(selector)].every((e) => e.dataset.drawn)", arg=ready
    )


def faults(page: Any) -> list[str]:
    """Serious faults of accessibility, as axe finds them."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"preload": False}).response["violations"]  # files may not be read from file://
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def unspoken(page: Any) -> list[str]:
    """Keys of words that stand on the page in place of the words."""
    text = page.locator("body").inner_text()
    return re.findall(r"\b(?:fish|hunt|market|quickstart)\.[a-z]+\.\w+", text)
