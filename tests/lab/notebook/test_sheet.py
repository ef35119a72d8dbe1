from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from marlab.lab.notebook.panels import Panel
from marlab.lab.notebook.sheet import Sheet, as_data, as_json, href, plotly_script, put, words_script, write_assets

HOSTILE = "</script><img src=x onerror=alert(1)>\u2028`x`"


def sheet(folder: Path, single: bool = False) -> Sheet:
    return Sheet(folder / "report" / "index.html", folder / "_notebook", folder / "index.html", single)


def page(found: Sheet) -> str:
    panels = found.panels([Panel("table", HOSTILE, {"rows": [[HOSTILE]]}, parts={"more": lambda: [1.5, float("nan")]})])
    return found.render("page.html.j2", title=HOSTILE, title_text=HOSTILE, lead="", panels=panels, up="", up_text="")


def test_json_holds_no_tag_and_comes_back_as_it_was() -> None:
    assert "<" not in as_json(HOSTILE)
    assert json.loads(as_json({"a": [HOSTILE, None, float("inf")]})) == {"a": [HOSTILE, None, None]}
    assert as_data("x", 1) == 'notebook.receive("x",1);\n'


def test_data_lie_beside_the_page(tmp_path: Path) -> None:
    text = page(sheet(tmp_path))
    assert 'src="../_notebook/notebook.js"' in text
    assert "<img" not in text
    stored = (tmp_path / "report" / "data" / "index-0.js").read_text()
    assert stored.startswith('notebook.receive("index-0",{"rows"')
    assert (
        tmp_path / "report" / "data" / "index-0-more.js"
    ).read_text() == 'notebook.receive("index-0-more",[1.5,null]);\n'


def test_one_file_has_everything_inside(tmp_path: Path) -> None:
    text = page(sheet(tmp_path, single=True))
    assert not (tmp_path / "report").exists()
    assert "src=" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL).replace("img src=x", "")
    inside = re.search(r'<script type="application/json" id="data:index-0">(.*?)</script>', text)
    assert inside is not None
    assert json.loads(inside[1]) == {"rows": [[HOSTILE]]}
    assert len(text) > plotly_script().stat().st_size


def test_words_change_with_the_language_and_texts_do_not(tmp_path: Path) -> None:
    english, chinese = sheet(tmp_path), Sheet(tmp_path / "a.html", tmp_path, language="zh")
    assert english.text("run.results") == '<span data-t="run.results">Results</span>'
    assert chinese.text("run.results") == '<span data-t="run.results">结果</span>'
    assert english.text("<b>") == "<b>"  # the template makes it safe
    assert english.both({"en": "a `b` <c>", "zh": "a `b` <c>"}) == "a <code>b</code> &lt;c&gt;"
    assert "data-said" in chinese.both({"en": "one", "zh": "一"})


def test_addresses_are_relative_and_quoted(tmp_path: Path) -> None:
    assert href(tmp_path / "a b#?.png", tmp_path / "report") == "../a%20b%23%3F.png"


def test_shared_files_are_written_once(tmp_path: Path) -> None:
    write_assets(tmp_path, ["fish"])
    names = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert {"notebook.js", "notebook.css", "words.js", "plotly.min.js", "fish/words.js"} <= names
    times = {name: (tmp_path / name).stat().st_mtime_ns for name in names}
    write_assets(tmp_path, ["fish"])
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in names} == times
    assert words_script(None).startswith("notebook.learn({")


def test_a_file_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "deep" / "a.txt", "one")
    put(tmp_path / "deep" / "a.txt", b"two")
    assert [file.read_text() for file in (tmp_path / "deep").iterdir()] == ["two"]
