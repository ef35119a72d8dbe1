"""Markdown, such as a lab note, as an HTML page that opens anywhere.

A page is one file: its style is inside, pictures of the run are embedded, films stay beside it as relative links,
and it asks nothing from the network. Notes come from strangers: HTML in them is shown, never obeyed, and only
pictures inside the run directory are embedded.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

TEMPLATES = Path(__file__).parent / "templates"
MOST_EMBEDDED = 8_000_000  # bytes of one picture; larger ones stay beside the page
FILMS = (".mp4", ".webm")
MIME = {
    ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
    ".svg": "image/svg+xml", ".mp4": "video/mp4", ".webm": "video/webm",
}  # fmt: skip


def render_page(text: str, base: Path, out: Path, title: str) -> str:
    """Markdown whose relative links start at folder `base`, as a page that will lie in folder `out`."""
    from jinja2 import Environment, FileSystemLoader

    body, found_title, contents = _Renderer(base, out).render(text)
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    page = environment.get_template("page.html.j2")
    return page.render(title=found_title or title, style=style, contents=contents, body=body) + "\n"


def render_fragment(text: str, base: Path, out: Path) -> str:
    """Markdown as safe HTML, for a part of a page that will lie in folder `out`."""
    return _Renderer(base, out).render(text)[0]


class _Renderer:
    """Markdown to HTML for one page: escapes HTML, moves links, embeds pictures, plays films."""

    def __init__(self, base: Path, out: Path) -> None:
        self.base, self.out = base.absolute(), out.absolute()

    def render(self, text: str) -> tuple[str, str | None, list[tuple[str, str]]]:
        """(HTML, text of the first heading, [(anchor, text) of the sections])."""
        markdown = self._parser()
        tokens = markdown.parse(text)
        title, contents = _anchors(tokens)
        return markdown.renderer.render(tokens, markdown.options, {}), title, contents

    def _parser(self) -> MarkdownIt:
        from markdown_it import MarkdownIt

        markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])

        def escaped_html(tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
            return escape(re.sub("<!--.*?-->", "", tokens[index].content, flags=re.DOTALL)).strip()

        def picture(tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
            return self._picture(str(tokens[index].attrs.get("src", "")), tokens[index].content)

        def open_link(tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
            return self._open_link(str(tokens[index].attrs.get("href", "")))

        rules = markdown.renderer.rules  # type: ignore[attr-defined]
        rules.update(html_block=escaped_html, html_inline=escaped_html, image=picture, link_open=open_link)
        rules.update(table_open=lambda *_: '<div class="table"><table>\n', table_close=lambda *_: "</table></div>\n")
        return markdown

    def _picture(self, source: str, label: str) -> str:
        """A picture of this run inside the page; anything else only as a link, so that nothing is fetched."""
        file = self._local(source)
        mime = MIME.get(file.suffix.lower()) if file and file.suffix.lower() not in FILMS else None
        if file is None or mime is None or not file.is_file():
            return f'<a href="{escape(self._moved(source))}">{escape(label or source)}</a>'
        if file.stat().st_size > MOST_EMBEDDED:
            address, width = self._moved(source), ""
        else:
            data = file.read_bytes()
            address, width = f"data:{mime};base64,{base64.b64encode(data).decode()}", _shown_width(data)
        shown = escape(label)
        return f'<figure><img src="{escape(address)}" alt="{shown}"{width}><figcaption>{shown}</figcaption></figure>'

    def _open_link(self, target: str) -> str:
        address = escape(self._moved(target))
        file = self._local(target)
        film = ""
        if file is not None and file.suffix.lower() in FILMS and file.is_file():
            film = f'<video controls preload="metadata" src="{address}"></video>\n'
        return f'{film}<a href="{address}">'

    def _local(self, address: str) -> Path | None:
        """The file below this page's folder that a relative address means, None for anything else."""
        parts = urlsplit(address)
        if parts.scheme or parts.netloc or not parts.path:
            return None
        file = (self.base / unquote(parts.path)).resolve()
        return file if file.is_relative_to(self.base.resolve()) else None

    def _moved(self, address: str) -> str:
        """A relative address as seen from the folder of the page; addresses of notes become those of pages."""
        parts = urlsplit(address)
        if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
            return address
        path = parts.path
        if path.endswith("/note.md"):
            page = path.removesuffix("note.md") + "report/index.html"
            if (self.base / unquote(page)).is_file():
                path = page
        up = os.path.relpath(self.base, self.out)
        return parts._replace(path=path if up == "." else f"{Path(up).as_posix()}/{path}").geturl()


def _shown_width(data: bytes) -> str:
    """Width attribute that shows a PNG made for 150 dots per inch at its size on paper (96 to the inch)."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return ""
    return f' width="{round(int.from_bytes(data[16:20], "big") * 96 / 150)}"'


def _anchors(tokens: Sequence[Token]) -> tuple[str | None, list[tuple[str, str]]]:
    """Give every heading an anchor; return the first heading's text and the sections of the second level."""
    title: str | None = None
    contents: list[tuple[str, str]] = []
    used: set[str] = set()
    for token, inner in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = "".join(child.content for child in inner.children or [] if child.type in ("text", "code_inline"))
        anchor = slug = re.sub(r"[^\w]+", "-", text.lower()).strip("-") or "section"
        number = 2
        while anchor in used:
            anchor, number = f"{slug}-{number}", number + 1
        used.add(anchor)
        token.attrSet("id", anchor)
        title = title or text
        if token.tag == "h2":
            contents.append((anchor, text))
    return title, contents
