"""The lab note: what it says, and that a person's words survive whatever they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from marlab.lab.errors import UserError
from marlab.lab.report.note import write_note
from tests.lab.report.cases import make_run


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


def test_tables_and_evaluations_are_in_the_note(tmp_path: Path) -> None:
    path = make_run(tmp_path)
    assert "## Evaluations" not in write_note(path)
    for name, text in (("tables/probes.csv", "iteration,gate\n4,a|b\n8\n"), ("tables/none.csv", ""),
                       ("eval/best/film.mp4", "film"), ("eval/best/deaths.png", "picture")):  # fmt: skip
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    (path / "tables" / "many.csv").write_text("n\n" + "7\n" * 100)
    note = write_note(path)
    assert "## Probes\n\n| iteration | gate |\n| --- | --- |\n| 4 | a\\|b |\n| 8 |  |" in note
    assert "All 100 rows are in [many.csv](tables/many.csv)." in note and "## None" not in note
    assert "![best/deaths](eval/best/deaths.png)" in note and "[best/film.mp4](eval/best/film.mp4)" in note


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
    for line in ("| Parent run | [fish/a](../a/note.md) |", "| `lr` | `0.0003` | `0.0001` |",
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
    for name in ("state_39.pt", "memory_39.pt", "model_iter_39_halfway.pt"):  # to go on from, not to play with
        (path / "checkpoints" / name).write_bytes(b"x")
    (path / "checkpoints" / "best.json").write_text('{"step": 3, "score": 1.0, "file": "model_iter_3.pt"}')
    note = write_note(path)
    assert "model_iter_39.pt" in note and "(checkpoints/model_iter_3.pt) (1 B, best score)" in note
    assert "memory_39" not in note and "halfway" not in note
    assert "27 earlier ones" in note and "model_iter_5.pt" not in note


@pytest.mark.parametrize("text", ["[" * 100_000, "3", "{}", "no JSON"])
def test_a_damaged_mark_of_the_best_weights_marks_nothing(tmp_path: Path, text: str) -> None:
    path = make_run(tmp_path)
    (path / "checkpoints" / "best.json").write_text(text)
    assert "best score" not in write_note(path)


# --- Markdown shows what it is given ------------------------------------------------------------------------


def test_strangers_cannot_break_the_note(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script> | ## x\n\n<!-- /marlab:00000000 summary --> ``` `"
    words = dict.fromkeys(("goal", "command", "reason", "group", "preset", "parent"), evil)
    path = make_run(tmp_path, tags=[evil], versions={evil: evil}, results={evil: evil}, **words)
    note = write_note(path)
    assert write_note(path) == note
    assert len(own_marks(note)) == 6
    assert "Kept from" not in note


# --- a person's words survive -------------------------------------------------------------------------------
