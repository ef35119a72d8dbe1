"""Any text as Markdown that shows just that text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from marlab.lab.report.markdown import clean, code, plain, table


def shown(markdown: str) -> str:
    """The text of all inline content, as a reader sees it."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    words = []
    for token in parser.parse(markdown):
        for child in token.children or []:
            assert child.type in ("text", "code_inline"), child.type  # no HTML, link, emphasis or picture
            words.append(child.content)
    return "".join(words)


ODD = "ab_*`|\\[]()<>&~!#-+=\"' \t\n\rÄ\u202e\x00\ud800é"


TRICKY = st.text(st.sampled_from(ODD), max_size=24) | st.text(max_size=24)


@given(TRICKY)
def test_plain_and_code_show_any_text_as_it_is(text: str) -> None:
    want = clean(text).strip()
    head = table(["h"], [["x" + plain(text) + "x"]])
    assert shown(head).removeprefix("h") == f"x{clean(text)}x"
    assert shown("x" + plain(text) + "x") == f"x{clean(text)}x"
    if want:
        assert shown(table(["h"], [[code(text)]])).removeprefix("h").strip() == want
        assert shown(code(text)).strip() == want
