from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.notebook import site as site_module
from marlab.lab.notebook.site import build, program_mark, run_folders, signature
from tests.lab.report.cases import make_run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_run(tmp_path, "fish/a")
    make_run(tmp_path, "fish/b", status="interrupted", reason="time limit")
    return tmp_path


def entries(root: Path) -> list[dict[str, object]]:
    text = (root / "_notebook" / "runs.js").read_text()
    found: list[dict[str, object]] = json.loads(text.removeprefix('notebook.receive("runs",').removesuffix(");\n"))
    return found


def test_every_run_has_its_page_and_its_entry(root: Path) -> None:
    site = build(root)
    assert [entry["id"] for entry in entries(root)] == ["fish/a", "fish/b"]
    assert all((root / str(entry["href"])).is_file() for entry in entries(root))
    assert site.index.is_file()
    assert len(site.made) == 2


def test_only_what_changed_is_made_again(root: Path) -> None:
    build(root)
    assert build(root).made == []
    os.utime(root / "fish" / "a" / "metrics.jsonl", (1, 1))
    assert build(root).made == [root / "fish" / "a"]
    (root / "fish" / "b" / "report" / "index.html").unlink()
    assert build(root).made == [root / "fish" / "b"]
    make_run(root, "hunt/c")
    assert build(root).made == [root / "hunt" / "c"]
    assert len(build(root, "zh").made) == 3  # another language


def test_a_pipe_in_one_run_is_told_of_that_run_alone(root: Path) -> None:
    (root / "fish" / "a" / "metrics.jsonl").unlink()
    os.mkfifo(root / "fish" / "a" / "metrics.jsonl")
    site = build(root)
    assert [broken.path.name for broken in site.broken] == ["a"] and [path.name for path in site.made] == ["b"]


def test_another_program_makes_all_pages_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(root)
    mark = program_mark()
    monkeypatch.setattr(site_module, "program_mark", lambda: mark + "x")
    assert len(build(root).made) == 2


def test_a_run_that_is_gone_leaves_the_index(root: Path) -> None:
    import shutil

    build(root)
    shutil.rmtree(root / "fish" / "b")
    build(root)
    assert [entry["id"] for entry in entries(root)] == ["fish/a"]


def test_a_damaged_state_is_no_state(root: Path) -> None:
    build(root)
    for text in ("{", "[]", '{"schema": 1}'):
        (root / "_notebook" / "state.json").write_text(text)
        assert len(build(root).made) == 2


def test_trials_belong_to_their_sweep(root: Path) -> None:
    make_run(root, "sweep/lr")
    make_run(root / "sweep" / "lr", "trials/one")
    assert [(path.name, sweep) for path, sweep in run_folders(root)][-1] == ("one", "sweep/lr")
    build(root)
    trial = entries(root)[-1]
    assert (trial["sweep"], trial["href"]) == ("sweep/lr", "sweep/lr/trials/one/report/index.html")


def test_folders_that_cannot_be_read_are_named(root: Path) -> None:
    (root / "fish" / "torn").mkdir()
    (root / "fish" / "torn" / "run.json").write_text("{")
    (root / "fish" / "headless").mkdir()
    (root / "fish" / "headless" / "metrics.jsonl").touch()
    assert sorted(item.path.name for item in build(root).broken) == ["headless", "torn"]
    assert "headless" in (root / "index.html").read_text()


def test_pages_are_not_written_through_links(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    precious = [elsewhere / name for name in ("index.html", "thumb.webp", "run.json", "page.html")]
    for file in precious:
        file.write_text("{}")
    (root / "fish" / "a" / "report").symlink_to(elsewhere)  # whatever it leads to, another run as well
    (root / "fish" / "b" / "report").mkdir()
    (root / "fish" / "b" / "report" / "index.html").symlink_to(elsewhere / "page.html")
    (root / "fish" / "b" / "report" / "thumb.webp").symlink_to(elsewhere / "thumb.webp")
    make_run(root, "fish/c")
    (root / "fish" / "c" / "report").mkdir()
    (root / "fish" / "c" / "report" / "data").symlink_to(elsewhere)
    site = build(root)
    assert [(item.path.name, "is a link" in item.reason) for item in site.broken] == [("a", True), ("c", True)]
    assert [entry["id"] for entry in entries(root)] == ["fish/b"]
    for shared in ("_notebook/fish", "_notebook"):
        (root / shared).rename(elsewhere / shared.replace("/", "-"))
        (root / shared).symlink_to(elsewhere)
        with pytest.raises(UserError, match=rf"{shared} is a link"):
            build(root)
        (root / shared).unlink()
        (elsewhere / shared.replace("/", "-")).rename(root / shared)
    assert sorted(elsewhere.iterdir()) == sorted(precious) and {file.read_text() for file in precious} == {"{}"}


def test_a_signature_tells_files_and_not_their_pages(root: Path) -> None:
    path = root / "fish" / "a"
    before = signature(path)
    (path / "report").mkdir()
    (path / "lock").touch()
    assert signature(path) == before
    (path / "figures" / "new.png").touch()
    assert signature(path) != before
