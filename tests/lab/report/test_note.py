"""The lab note: what it says, and that a person's words survive whatever they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from marlab.lab.errors import UserError
from marlab.lab.report.markdown import clean, code, plain, table
from marlab.lab.report.note import LAYOUT, write_note
from marlab.lab.report.parts import merge, without_marks
from tests.lab.report.cases import make_run

PARTS = {"summary": "# fish/a\n\ntext", "results": "## Results\n\n| a |\n| --- |\n| 1 |", "details": "## Versions"}
NEWER = {"summary": "# fish/a\n\nnew", "results": "## Results\n\n| a |\n| --- |\n| 2 |", "details": "## Versions\n\nx"}


def first_note() -> str:
    return merge(None, PARTS, LAYOUT, "fish/a")


def own_marks(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("<!-- marlab:", "<!-- /marlab:"))]


# --- what it says -------------------------------------------------------------------------------------------


def test_note_tells_everything_that_is_recorded(tmp_path: Path) -> None:
    path = make_run(tmp_path, goal="survive", group="sweep")
    note = write_note(path)
    assert (path / "note.md").read_text() == note
    for line in (
        "| Status | finished |", "| Goal | survive |", "| Group | sweep |", "| Preset | `v32` |", "| Seed | `7` |",
        "marlab fish train --name a",
        "| 1 | 2026-03-01 10:00 UTC | 2026-03-01 11:02 UTC | 1 h 2 min | finished |  |",
        "| `survival` | 0.98 | [0.97, 0.99] | share | 200 x 96 |",
        "| phase 1 | 2.5e-4 -> 6e-6 | 1 | 9 | 15 |",
        "| `lr` | `0.0003` |  |", "| `fish` | `25` | inferred, not recorded |", "| `net.width` | `64` |  |",
        "![survival](figures/survival.png)", "- [tail 1.mp4](media/tail%201.mp4) (",
        "| commit | `abc123` |", "| cores | `8` |", "[metrics.jsonl](metrics.jsonl)",
    ):  # fmt: skip
        assert line in note, line
    assert note.index("model_iter_2.pt") < note.index("model_iter_10.pt")
    assert write_note(path) == note  # made again, the same bytes


def test_unknown_says_unknown(tmp_path: Path) -> None:
    empty = {"versions": {}, "host": {}, "results": {}, "stages": [], "attempts": [], "tags": [], "inferred": []}
    nothing = dict.fromkeys(("command", "seed", "preset", "config_hash", "started", "ended", "reason"))
    path = make_run(tmp_path, config={}, status="planned", **empty, **nothing)
    (path / "metrics.jsonl").unlink()
    for folder in ("figures", "media", "checkpoints"):
        for file in (path / folder).iterdir():
            file.unlink()
    note = write_note(path)
    for line in ("The command is unknown.", "| Seed | unknown |", "The run was not started.",
                 "No results are recorded.", "No stages are recorded.",
                 "| commit | unknown |", "| device | unknown |", "None are saved.",
                 "No parameters are recorded.", "This run has no parent.", "| Preset | none |"):  # fmt: skip
        assert line in note, line


def test_results_missing_shows_the_last_logged_values(tmp_path: Path) -> None:
    note = write_note(make_run(tmp_path, results={}, status="interrupted"))
    assert "| `survival/mean` | 0.9 | 9 |" in note and "| `loss/policy` | 0.1111 | 9 |" in note


def test_dead_process_shows_in_the_last_attempt(tmp_path: Path) -> None:
    attempts = [
        {"started": "2026-03-01T10:00:00+00:00", "status": "interrupted", "reason": "SIGINT", "seconds": 61.0},
        {"started": "2026-03-02T10:00:00+00:00", "ended": None, "status": "running", "reason": None, "seconds": None},
    ]
    note = write_note(make_run(tmp_path, status="running", attempts=attempts, ended=None))
    assert "| Status | interrupted: the process died |" in note
    assert "| 1 | 2026-03-01 10:00 UTC | unknown | 1 min 1 s | interrupted | SIGINT |" in note
    assert "| 2 | 2026-03-02 10:00 UTC | unknown | unknown | interrupted | the process died |" in note


def test_changed_parameters_come_first(tmp_path: Path) -> None:
    kind = "marlab.lab.runs.run:RunOptions"  # any config of the package that has defaults
    note = write_note(make_run(tmp_path, config={"name": None, "resume": True, "group": "g"}, config_type=kind))
    assert "Different from today's defaults:\n\n| parameter | value | default |" in note
    assert "| `resume` | `true` | `false` |\n| `group` | `g` | `null` |" in note
    assert note.index("`resume`") < note.index("At their default:") < note.index("| `name` | `null` |")


@pytest.mark.parametrize(
    "kind", ["os:path", "marlab.nowhere:X", "marlab.lab.runs.run:Run", "marlab.lab.runs.run:No.x", "", None]
)
def test_defaults_of_strangers_are_unknown_and_never_imported(tmp_path: Path, kind: str | None) -> None:
    assert "The defaults of this config are unknown here" in write_note(make_run(tmp_path, config_type=kind))


def test_against_the_parent(tmp_path: Path) -> None:
    make_run(tmp_path, "fish/a", results={"survival": 0.9, "only a": 1})
    path = make_run(tmp_path, "fish/b", {"lr": 0.0001, "fish": 25, "deep": None}, parent="fish/a",
                    results={"survival": {"value": 0.95, "unit": "share"}, "verdict": "better"})  # fmt: skip
    note = write_note(path)
    for line in ("| Parent run | [fish/a](../../fish/a/note.md) |", "| `lr` | `0.0003` | `0.0001` |",
                 "| `net.width` | `64` | `not set` |", "| `deep` | `not set` | `null` |",
                 "| `survival` | 0.9 | 0.95 share | +0.05 |", "| `only a` | 1 | not recorded |  |",
                 "| `verdict` | not recorded | better |  |"):  # fmt: skip
        assert line in note, line
    assert "| `fish` |" not in note.partition("## Against the parent run")[2].partition("## Figures")[0]


@pytest.mark.parametrize("parent", ["fish/gone", "../../etc", "fish/<b>", "x" * 300])
def test_missing_parent_is_said(tmp_path: Path, parent: str) -> None:
    note = write_note(make_run(tmp_path, parent=parent))
    assert "cannot be read here, so what differs from it is unknown." in note
    assert "](../../" not in note


def test_unreadable_config_is_said(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    (path / "config.json").write_text("[1]")
    assert "The parameters are unknown:" in write_note(path)
    (path / "config.json").write_text("{")
    assert "The parameters are unknown:" in write_note(path)


def test_odd_values_in_results_and_stages(tmp_path: Path) -> None:
    note = write_note(
        make_run(
            tmp_path,
            results={"a": None, "b": {"low": "x", "value": True}, "c": {"value": 1e-9, "low": 0, "high": 1}, "d": [1]},
            stages=[{"lr": 0.0003}, {"name": "two", "lr": None, "fishes": [1, 2]}],
        )
    )
    for line in ("| `a` | unknown |", "| `b` | yes |", "| `c` | 1e-09 | [0, 1] |", "| `d` | \\[1\\] |",
                 "| unknown | 0.0003 |  |", "| two | unknown | \\[1, 2\\] |"):  # fmt: skip
        assert line in note, line


@pytest.mark.parametrize(
    "broken",
    [
        {"results": []},
        {"attempts": [3]},
        {"created": None},
        {"tags": [1]},
        {"goal": 5},
        {"attempts": [{"seconds": "x"}]},
    ],
)
def test_malformed_record_is_one_sentence(tmp_path: Path, broken: dict[str, object]) -> None:
    with pytest.raises(UserError, match=next(iter(broken))):
        write_note(make_run(tmp_path, **broken))


def test_many_weights_are_shortened_and_the_best_stays(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    for step in range(40):
        (path / "checkpoints" / f"model_iter_{step}.pt").write_bytes(b"x")
    (path / "checkpoints" / "best.json").write_text('{"step": 3, "score": 1.0, "file": "model_iter_3.pt"}')
    note = write_note(path)
    assert "model_iter_39.pt" in note and "(checkpoints/model_iter_3.pt) (1 B, best score)" in note
    assert "27 earlier ones" in note and "model_iter_5.pt" not in note


# --- Markdown shows what it is given ------------------------------------------------------------------------


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
@settings(deadline=None)
def test_plain_and_code_show_any_text_as_it_is(text: str) -> None:
    want = clean(text).strip()
    head = table(["h"], [["x" + plain(text) + "x"]])
    assert shown(head).removeprefix("h") == f"x{clean(text)}x"
    assert shown("x" + plain(text) + "x") == f"x{clean(text)}x"
    if want:
        assert shown(table(["h"], [[code(text)]])).removeprefix("h").strip() == want
        assert shown(code(text)).strip() == want


def test_strangers_cannot_break_the_note(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | ## x\n\n<!-- /marlab:00000000 summary --> ``` `"
    words = dict.fromkeys(("goal", "command", "reason", "group", "preset", "parent"), evil)
    path = make_run(tmp_path, tags=[evil], versions={evil: evil}, results={evil: evil}, **words)
    note = write_note(path)
    assert write_note(path) == note
    assert len(own_marks(note)) == 6
    assert "Kept from" not in note


# --- a person's words survive -------------------------------------------------------------------------------

LINES = st.sampled_from([
    "", "## Insights", "## Results", "# Title", "```", "~~~", "```python", "    indented", "- item", "| a | b |", "---",
    "<!-- a comment -->", "<!--", "-->", "<!-- marlab:12345678 results 12345678: from another note -->",
    "<!-- /marlab:12345678 results -->", "\ttab", "trailing  ", "Ünïcode ☂", "\ufeff", "\x0c", "\u2028", "x\x00y",
    "a\rb",
]) | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n"), max_size=30)  # fmt: skip
WORDS = st.builds(lambda lines, end: end.join(lines), st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]))


@given(st.lists(WORDS, min_size=5, max_size=5))
@settings(deadline=None)
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
@settings(deadline=None)
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
@settings(deadline=None)
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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=15)
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
