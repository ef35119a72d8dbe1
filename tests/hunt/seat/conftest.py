"""Chromium for the tests of pages."""

from tests.lab.notebook.browser import browser, page

__all__ = ["browser", "page"]
