"""Generated parts of a note are made again; what a person wrote survives byte by byte."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marlab.lab.report.note import LAYOUT, write_note
from marlab.lab.report.parts import merge, without_marks
from tests.lab.report.cases import make_run

PARTS = {"summary": "# fish/a\n\ntext", "results": "## Results\n\n| a |\n| --- |\n| 1 |", "details": "## Versions"}


NEWER = {"summary": "# fish/a\n\nnew", "results": "## Results\n\n| a |\n| --- |\n| 2 |", "details": "## Versions\n\nx"}


def first_note() -> str:
    return merge(None, PARTS, LAYOUT, "fish/a")


def own_marks(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("<!-- marlab:", "<!-- /marlab:"))]


LINES = st.sampled_from([
    "", "## Insights", "## Results", "# Title", "```", "~~~", "```python", "    indented", "- item", "| a | b |", "---",
    "<!-- a comment -->", "<!--", "-->", "<!-- marlab:12345678 results 12345678: from another note -->",
    "<!-- /marlab:12345678 results -->", "\ttab", "trailing  ", "Ünïcode ☂", "\ufeff", "\x0c", "\u2028", "x\x00y",
    "a\rb",
]) | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n"), max_size=30)  # fmt: skip


WORDS = st.builds(lambda lines, end: end.join(lines), st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]))


@given(st.lists(WORDS, min_size=5, max_size=5))
def test_text_between_the_parts_survives_byte_by_byte(words: list[str]) -> None:
    """Anything put between, before or after the marked parts is there afterwards, in order, unchanged."""
    note = first_note()
    pieces, rest = [], note
    for part in PARTS:  # cut the note at its marks
        end = f"{part} -->\n"
        before, _, rest = rest.partition(end)
        pieces.append(before + end)
        if part != "details":
            rest_before, mark, rest_after = rest.partition("<!-- marlab:")
            pieces[-1] += rest_before
            rest = mark + rest_after
    texts = [w + "\n" for w in words[:4]]
    edited = texts[0] + pieces[0] + texts[1] + pieces[1] + texts[2] + pieces[2] + texts[3] + words[4]
    made = merge(edited, NEWER, LAYOUT, "fish/a")
    position = 0
    for text in [*texts, words[4]]:
        position = made.index(text, position) + len(text)
    assert made.endswith(texts[3] + words[4])
    if made.count("\r\n") * 2 <= made.count("\n"):
        assert NEWER["results"] in made and PARTS["results"] not in made
    assert merge(made, NEWER, LAYOUT, "fish/a") == made


@given(st.data(), WORDS)
def test_words_typed_anywhere_even_into_a_part_survive(data: st.DataObject, words: str) -> None:
    lines = first_note().splitlines(keepends=True)
    place = data.draw(st.integers(0, len(lines)))
    edited = "".join(lines[:place]) + words + "\n" + "".join(lines[place:])
    made = merge(edited, NEWER, LAYOUT, "fish/a")
    if words.strip():
        assert words in made
    again = merge(made, NEWER, LAYOUT, "fish/a")
    assert again == made
    assert NEWER["details"].split()[-1] in made.replace("\r\n", "\n")


@given(st.data())
def test_any_cut_out_line_leaves_a_note_that_can_be_made_again(data: st.DataObject) -> None:
    lines = first_note().splitlines(keepends=True)
    gone = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=6))
    edited = "".join(line for i, line in enumerate(lines) if i not in gone) + "my words\n"
    made = merge(edited, NEWER, LAYOUT, "fish/a")
    assert "my words\n" in made
    assert all(body in made for body in NEWER.values())
    assert merge(made, NEWER, LAYOUT, "fish/a") == made


def test_the_whole_file_with_windows_line_ends_stays_so() -> None:
    note = first_note().replace("\n", "\r\n").replace("## Insights\r\n", "## Insights\r\n\r\nmine\r\n")
    made = merge(note, NEWER, LAYOUT, "fish/a")
    assert "## Insights\r\n\r\nmine\r\n" in made
    assert made.count("\n") == made.count("\r\n") and "Kept from" not in made
    assert "| 2 |\r\n" in made


def test_moved_run_keeps_its_key_and_pasted_parts_stay_foreign() -> None:
    other = merge(None, PARTS, LAYOUT, "fish/other")
    pasted = first_note().replace("## Insights\n", f"## Insights\n\n{other}\n")
    made = merge(pasted, NEWER, LAYOUT, "fish/a")
    assert other in made and NEWER["results"] in made
    moved = merge(first_note(), NEWER, LAYOUT, "hunt/renamed")
    assert own_marks(moved)[0].split()[1] == own_marks(first_note())[0].split()[1] and len(own_marks(moved)) == 6


def test_edited_part_is_moved_to_safety_once() -> None:
    edited = first_note().replace("| 1 |\n", "| 1 |\n\nI think this is wrong.\n")
    made = merge(edited, NEWER, LAYOUT, "fish/a")
    assert "| 2 |" in made
    kept = made.partition("## Kept from the part 'results', which was edited")[2]
    assert "I think this is wrong." in kept
    assert merge(made, NEWER, LAYOUT, "fish/a") == made


def test_note_that_a_person_began_is_kept_below_the_parts() -> None:
    made = merge("# My plan\n\nmore", PARTS, LAYOUT, "fish/a")
    assert made.endswith("# My plan\n\nmore") and len(own_marks(made)) == 6


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
@given(st.binary(max_size=60))
def test_foreign_bytes_in_the_file_survive(tmp_path: Path, words: bytes) -> None:
    path = make_run(tmp_path)
    (path / "note.md").unlink(missing_ok=True)
    write_note(path)
    raw = (path / "note.md").read_bytes().replace(b"## Insights\n", b"## Insights\n\n" + words + b"\n")
    (path / "note.md").write_bytes(raw)
    write_note(path)
    assert words + b"\n" in (path / "note.md").read_bytes()


def test_marks_are_not_shown_to_readers() -> None:
    text = without_marks(first_note())
    assert "marlab:" not in text and text.startswith("# fish/a") and "## Objectives" in text
