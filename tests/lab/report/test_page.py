"""Pages made from notes: complete, harmless, and readable in a real browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marlab.lab.report.note import write_note
from marlab.lab.report.page import render_page
from tests.lab.report.cases import make_run

pytest.importorskip("jinja2")
pytest.importorskip("markdown_it")

SCRIPT = "<script>document.title = 'owned'</script>"
ATTACKS = [
    SCRIPT, "<img src=x onerror=\"document.title='owned'\">", "<!-- x --><script>document.title='owned'</script>",
    "<!--><script>document.title='owned'</script>-->", "<svg onload=\"document.title='owned'\">",
    "[click](javascript:document.title='owned')", "<javascript:document.title='owned'>", "![x](javascript:alert(1))",
    "</main></body><script>document.title='owned'</script>", "<style>body{display:none}</style>",
    "[a]: javascript:alert(1)\n\n[a]", "<a href=\"javascript:document.title='owned'\">x</a>",
    "`x` <iframe srcdoc=\"<script>parent.document.title='owned'</script>\"></iframe>",
]  # fmt: skip


def write_page(path: Path) -> Path:
    """The note of a run as a page."""
    target = path / "report" / "index.html"
    target.parent.mkdir(exist_ok=True)
    target.write_text(render_page(write_note(path), path, target.parent, path.name))
    return target


def page_of(text: str, folder: Path) -> str:
    return render_page(text, folder, folder / "report", "a title")


def body_of(page: str) -> str:
    return page.partition("<main>")[2].rpartition("</main>")[0]


def tags_of(page: str) -> set[str]:
    return set(re.findall(r"<([a-z0-9]+)", body_of(page)))


def test_page_is_complete_and_asks_for_nothing(tmp_path: Path) -> None:
    path = make_run(tmp_path, "fish/a", parent="fish/b")
    page = write_page(path).read_text()
    assert page.startswith("<!doctype html>") and "<title>fish/a</title>" in page
    assert 'src="data:image/png;base64,' in page and 'alt="survival"' in page
    assert '<video controls preload="metadata" src="../media/tail%201.mp4">' in page
    assert 'href="../checkpoints/model_iter_10.pt"' in page and 'href="../metrics.jsonl"' in page
    assert '<a href="#results">Results</a>' in page and '<h2 id="results">Results</h2>' in page
    assert "http" not in page.replace("http-equiv", "") and "<link" not in page and "marlab:" not in page
    assert write_page(path).read_text() == page


@pytest.mark.parametrize("attack", ATTACKS)
def test_html_in_a_note_is_shown_and_never_obeyed(tmp_path: Path, attack: str) -> None:
    page = page_of(f"# t\n\n{attack}\n\ntext {attack} text\n\n- {attack}\n\n| h |\n|---|\n| {attack} |\n", tmp_path)
    allowed = {"h1", "p", "ul", "li", "div", "table", "thead", "tbody", "tr", "th", "td", "a", "code", "figure", "img"}
    assert tags_of(page) <= allowed, tags_of(page) - allowed
    assert not re.search(r"<[^>]*\b(on\w+|srcdoc)\s*=", body_of(page))
    assert not re.search(r'(href|src)="\s*javascript:', page, re.IGNORECASE)
    assert page.count("</main>") == 1


def test_names_and_commands_of_strangers_are_escaped(tmp_path: Path) -> None:
    pair = {SCRIPT: SCRIPT}
    path = make_run(tmp_path, goal=SCRIPT, command=SCRIPT, tags=[SCRIPT], results=pair, host=pair)
    (path / "figures" / "<script>alert(1)<script>.png").write_bytes(b"x")
    page = write_page(path).read_text()
    assert "<script" not in page and "&lt;script&gt;" in page


def test_comments_vanish_and_code_stays(tmp_path: Path) -> None:
    text = "# t\n\n<!-- hidden -->\n\n```html\n<!-- kept --> <b>x</b>\n```\n\na <!-- gone --> b\n"
    body = body_of(page_of(text, tmp_path))
    assert "hidden" not in body and "gone" not in body
    assert "&lt;!-- kept --&gt; &lt;b&gt;x&lt;/b&gt;" in body


def test_only_pictures_of_the_run_are_embedded(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "secret.png").write_bytes(b"secret")
    (run / "secret.txt").write_bytes(b"secret")
    (run / "link.png").symlink_to(tmp_path / "secret.png")
    sources = ("../secret.png", "link.png", "secret.txt", "http://example.org/x.png", "gone.png", "//example.org/y.png")
    page = page_of("\n\n".join(f"![picture]({source})" for source in sources), run)
    assert "<img" not in page and "data:" not in page.replace("img-src data:", "")
    assert page.count(">picture</a>") == len(sources)


def test_large_pictures_stay_beside_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marlab.lab.report.page.MOST_EMBEDDED", 3)
    (tmp_path / "big.png").write_bytes(b"1234")
    assert '<img src="../big.png" alt="x">' in page_of("![x](big.png)", tmp_path)


def test_notes_link_to_pages_where_there_are_pages(tmp_path: Path) -> None:
    make_run(tmp_path, "fish/a")
    child = make_run(tmp_path, "fish/b", parent="fish/a")
    assert 'href="../../a/note.md"' in write_page(child).read_text()
    write_page(tmp_path / "fish" / "a")
    assert 'href="../../a/report/index.html"' in write_page(child).read_text()


def test_same_headings_get_different_anchors(tmp_path: Path) -> None:
    page = page_of("# t\n\n## Notes\n\n## Notes\n\n## ***\n\n## `x`\n", tmp_path)
    assert re.findall(r'<h2 id="([^"]*)"', page) == ["notes", "notes-2", "section", "x"]


# --- in a real browser --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=flags)
        yield opened
        opened.close()


def open_page(browser: Any, path: Path, width: int, scheme: str = "light") -> tuple[Any, list[str]]:
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    return page, requests


@pytest.fixture
def long_page(tmp_path: Path) -> Path:
    """A page with everything in it that could break a layout."""
    attacks = "\n\n".join(ATTACKS)
    path = make_run(
        tmp_path, goal="a goal " * 30, command="marlab fish " + "--flag value " * 40, results={"x" * 200: "y" * 200},
        stages=[{"name": f"stage {i}", "lr": "1e-4", **{f"column {c}": 1.5 for c in range(14)}} for i in range(3)],
    )  # fmt: skip
    write_page(path)
    note = path / "note.md"
    note.write_text(note.read_text().replace("## Insights\n", f"## Insights\n\n{attacks}\n\n```\n{'x' * 400}\n```\n"))
    return write_page(path)


def test_browser_runs_nothing_and_asks_only_for_the_film(browser: Any, long_page: Path) -> None:
    page, requests = open_page(browser, long_page, 1100)
    assert page.title() == "fish/a"
    assert all(url.startswith(("file:", "data:")) for url in requests)
    assert {Path(url).name for url in requests if url.startswith("file:")} <= {"index.html", "tail%201.mp4", "x"}
    assert page.evaluate("document.scripts.length") == 0
    picture = page.locator("figure img").first
    assert picture.evaluate("image => image.complete && image.naturalWidth > 0")  # the policy lets it in


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_page_fits_the_screen(browser: Any, long_page: Path, width: int) -> None:
    page, _ = open_page(browser, long_page, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    size = float(page.evaluate("getComputedStyle(document.body).fontSize").removesuffix("px"))
    assert size >= 15


def test_dark_screens_get_dark_pages_and_paper_stays_white(browser: Any, long_page: Path) -> None:
    def brightness(page: Any, name: str) -> float:
        numbers = re.findall(r"[\d.]+", page.evaluate(f"getComputedStyle(document.body).{name}"))
        return sum(map(float, numbers[:3])) / 3

    light, _ = open_page(browser, long_page, 1000)
    assert brightness(light, "backgroundColor") > 230 > 80 > brightness(light, "color")
    dark, _ = open_page(browser, long_page, 1000, "dark")
    assert brightness(dark, "backgroundColor") < 40 < 200 < brightness(dark, "color")
    dark.emulate_media(media="print", color_scheme="dark")
    assert brightness(dark, "backgroundColor") == 255 and brightness(dark, "color") == 0
    assert not dark.locator("nav").is_visible()


def test_sections_can_be_reached(browser: Any, long_page: Path) -> None:
    page, _ = open_page(browser, long_page, 1000)
    page.get_by_role("link", name="Parameters", exact=True).click()
    assert page.url.endswith("#parameters")
    assert page.locator("#parameters").evaluate("heading => Math.abs(heading.getBoundingClientRect().top)") < 60
