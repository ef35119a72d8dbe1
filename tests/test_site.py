"""The documentation as a site: reference pages made from the code, navigation, and no broken link in what is built."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "generated")
NAV = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)


class Page(HTMLParser):
    """What a built page offers and what it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.names.add(value)
            elif name in ("href", "src") and value:
                self.links.add(value)


def test_every_page_is_in_the_navigation_once() -> None:
    written = {name for name in NAV if not name.startswith("reference/generated/")}
    assert {page.relative_to(DOCS).as_posix() for page in PAGES} == written
    assert len(NAV) == len(set(NAV))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_pages_read_the_same_on_the_site_as_in_the_repository(page: Path) -> None:
    """Links stay among the pages; lists begin after an empty line and are indented by four, as Python-Markdown asks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert not [link for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
                if not (page.parent / link).resolve().is_relative_to(DOCS)]  # fmt: skip
    lines = text.splitlines()
    item = re.compile(r"(- |\d+\. )")
    for before, line in zip(["", *lines], lines):
        if item.match(line):
            assert not before or item.match(before) or before.startswith("  "), f"no empty line above: {line}"
        assert not re.match(r" {1,3}(- |\d+\. |\|)", line), f"indented by less than four: {line}"


@pytest.mark.slow
def test_the_site_is_built_and_no_link_in_it_is_broken(tmp_path: Path) -> None:
    for library in ("zensical", "scml"):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("generated"))
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    for words in (["docs/reference/generate.py"], ["-m", "zensical", "build", "--strict"]):
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    site = tmp_path / "build" / "site"
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    assert {path.relative_to(site).with_suffix(".md").as_posix() for path in pages} == {*NAV, "404.md"}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"https?:|data:|javascript:", link) or path.name == "404.html":
                continue
            file, _, anchor = unquote(link).partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.exists() or (anchor and target in pages and anchor not in pages[target].names):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert not broken, "\n".join(broken)

    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    fetched = re.findall(r'<(?:script|img|iframe)[^>]+src="https?:[^"]*"|<link[^>]+href="https?:[^"]*"', text)
    assert not fetched, "something is fetched from the network"
    for shown in ("marlab fish train", "fish.load(", "--total-iterations", "quickstart"):
        assert shown in text
