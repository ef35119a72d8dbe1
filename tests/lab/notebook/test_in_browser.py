"""Index, comparison and the page of a run as a reader sees them, in Chromium."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from marlab.lab.notebook.run_page import write_single
from marlab.lab.notebook.serve import Notebook
from marlab.lab.notebook.site import build
from marlab.lab.runs.folders import ELSEWHERE
from marlab.lab.runs.records import read_run
from tests.lab.notebook.browser import faults, fresh_page, open_page
from tests.lab.notebook.served import serving
from tests.lab.report.cases import make_run

HOSTILE = "<img src=x onerror=alert(1)>"
SENTENCE = {"key": "lab.compare.equal", "numbers": {"name": HOSTILE, "other": "b", "what": "score", "value": 1.0}}
JUDGED = {"results": ["survival"], "metric": "survival/mean", "better": "higher"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two worlds: two that differ in their seed alone, one with other settings, a hostile one."""
    root = tmp_path_factory.mktemp("notebook") / "runs"
    for seed in (0, 1):
        config = {"lr": 0.1, "seed": seed}
        results = {"survival": {"value": 0.9 + seed / 50, "low": 0.8, "high": 0.99, "unit": "share"}}
        make_run(root, f"fish/same-{seed}", config, seed=seed, judged_by=JUDGED, verdict=[SENTENCE], results=results)
    make_run(
        root,
        "fish/other",
        {"lr": 0.2, "seed": 0},
        seed=0,
        judged_by=JUDGED,
        goal=HOSTILE,
        tags=["new", HOSTILE],
        parent=HOSTILE,
    )
    make_run(root, "hunt/failed", status="failed", reason=HOSTILE, results={"zeal": 1})
    path = root / "fish" / "other"
    rows = [{"step": i, "survival/mean": 0.5 + 0.01 * i, "loss/policy": 1 / i} for i in range(1, 10)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    build(root)
    return root


def names(page: Any) -> list[str]:
    found: list[str] = page.locator("#runs .name").all_text_contents()
    return found


def test_the_index_lists_filters_and_sorts(page: Any, root: Path) -> None:
    open_page(page, root / "index.html")
    page.wait_for_selector("html[data-ready]")
    assert sorted(names(page)) == ["fish/other", "fish/same-0", "fish/same-1", "hunt/failed"]
    page.select_option("#world", "hunt")
    assert names(page) == ["hunt/failed"]
    page.select_option("#world", "")
    page.keyboard.press("/")  # not while a menu has the focus
    page.locator("h1").click()
    page.keyboard.press("/")
    page.keyboard.type("OTHER new")
    assert names(page) == ["fish/other"]
    assert "find=OTHER" in page.url
    page.fill("#find", "")
    page.select_option("#status", "failed")
    assert names(page) == ["hunt/failed"]
    page.select_option("#status", "")
    page.select_option("#sort", "name")
    assert names(page) == ["fish/other", "fish/same-0", "fish/same-1", "hunt/failed"]
    page.select_option("#sort", "figure")
    assert [n for n in names(page) if n.startswith("fish")] == ["fish/other", "fish/same-1", "fish/same-0"]
    assert page.locator("#runs .key strong").first.text_content() == "0.98"
    assert page.locator(".spark polyline").count() == 4


def test_chosen_runs_are_compared(page: Any, root: Path) -> None:
    open_page(page, root / "index.html")
    page.wait_for_selector("html[data-ready]")
    assert page.locator("#compare").is_disabled()
    for name in ("fish/same-0", "fish/same-1", "fish/other"):
        page.get_by_label(f"Choose {name} for a comparison").check()
    page.get_by_role("button", name="Compare 3").click()
    page.wait_for_selector("[data-ready] .plot .main-svg")
    assert page.locator("tr.differs th").all_text_contents() == ["lr", "seed"]
    assert page.locator("tr.differs").first.locator("td").all_text_contents() == ["0.1", "0.1", "0.2"]
    # two runs differ in their seed alone: one line of theirs with a band, one line of the other
    assert page.locator(".plot").first.get_attribute("data-lines") == "2"
    shown = page.evaluate("document.querySelector('.plot').data.map((t) => [t.name, t.y.length, t.fill || ''])")
    assert [row[2] for row in shown] == ["toself", "", ""]
    page.locator("summary", has_text="loss").click()  # several curves at once, every group in its colour
    page.wait_for_function("() => document.querySelectorAll('details .plot .main-svg').length > 0")
    drawn = "document.querySelectorAll('.plot')[{}].data.filter((t) => !t.fill).map((t) => t.line.color)"
    assert page.evaluate(drawn.format(0)) == page.evaluate(drawn.format(1))
    assert page.locator(".keys").text_content() == "fish/same-0, one of 2fish/other"
    assert "marlab compare fish/same-0 fish/same-1 fish/other" in page.locator("main").text_content()
    page.get_by_label("Leave out fish/other").click()
    page.wait_for_function("() => document.querySelectorAll('.chosen li').length === 2")


def test_the_band_is_students(page: Any, root: Path) -> None:
    open_page(page, root / "_notebook" / "compare.html")
    found = page.evaluate("""() => {
        const run = (y, i) => ({ id: String(i), lines: [{ metric: "m", x: [1, 2], y }] });
        return notebook.joined([[1, 4], [2, 6], [6, 8]].map(run), "m", [12.706, 4.3027]);
    }""")
    assert found["y"] == [3, 6]
    assert found["high"] == pytest.approx([3 + 4.3027 * 7**0.5 / 3**0.5, 6 + 4.3027 * 2 / 3**0.5])


def test_the_page_of_a_run_begins_with_its_verdict(page: Any, root: Path) -> None:
    open_page(page, root / "fish" / "same-0" / "report" / "index.html")
    assert page.locator(".verdict p").first.text_content() == f"{HOSTILE} and b are equal: score 1."
    page.wait_for_selector(".plot .main-svg")
    first = page.evaluate("document.querySelector('.plot').data[0].y")
    assert first == pytest.approx([0.1 * i for i in range(1, 10)])
    assert page.locator("#main details .plot").count() == 0
    page.locator("summary", has_text="loss").click()
    page.wait_for_selector("details .plot .main-svg")
    assert page.locator("tr.key td").first.text_content() == "0.9"
    assert page.locator("a[href$='.json']").count() == 0


def test_curves_are_smoothed_on_a_log_axis_and_over_time(page: Any, root: Path) -> None:
    open_page(page, root / "fish" / "same-0" / "report" / "index.html")
    page.wait_for_selector(".plot .main-svg")
    page.get_by_label("Smoothing").fill("0.5")
    page.get_by_label("log axis").check()
    page.get_by_label("working time instead of steps").check()
    page.wait_for_function("() => document.querySelector('.plot').layout.yaxis.type === 'log'")
    raw, smooth = page.evaluate("document.querySelector('.plot').data.map((trace) => [trace.x, trace.y])")
    assert raw[1] == pytest.approx([0.1 * i for i in range(1, 10)])
    assert smooth[0] == raw[0] == [float(i) for i in range(9)]  # seconds
    assert smooth[1][:3] == pytest.approx([0.1, (0.1 / 2 + 0.2) / 1.5, (0.1 / 4 + 0.2 / 2 + 0.3) / 1.75])
    page.locator("summary", has_text="loss").click()  # what is opened later is drawn in the same way
    page.wait_for_selector("details .plot .main-svg")
    assert page.evaluate("document.querySelector('details .plot').data[1].x") == smooth[0]
    open_page(page, root / "fish" / "same-1" / "report" / "index.html")  # smoothing and time stay for the next page
    page.wait_for_selector(".plot .main-svg")
    assert page.get_by_label("Smoothing").input_value() == "0.5" and not page.get_by_label("log axis").is_checked()


def test_names_with_markup_are_texts(page: Any, root: Path) -> None:
    for place in ("index.html", "hunt/failed/report/index.html", "fish/other/report/index.html"):
        open_page(page, root / place)
        page.wait_for_function(f"() => document.body.textContent.includes({json.dumps(HOSTILE)})")
        assert page.locator("img[src=x]").count() == 0


def test_language_and_theme_are_the_readers_and_stay(page: Any, root: Path) -> None:
    open_page(page, root / "index.html")
    page.wait_for_selector("html[data-ready]")
    page.click("#language")
    assert page.locator("h1").text_content() == "实验运行"
    assert page.locator("#sort option").first.text_content() == "最新的在前"
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    open_page(page, root / "fish" / "same-0" / "report" / "index.html")
    assert page.locator("#results").text_content() == "结果"
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_keys_alone_are_enough(page: Any, root: Path) -> None:
    open_page(page, root / "index.html")
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#runs input").first.focus()
    page.keyboard.press("Space")
    page.locator("#runs input").nth(1).focus()
    page.keyboard.press("Space")
    assert page.locator("#compare").is_enabled()
    page.locator("#compare").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/compare.html#*")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_is_inaccessible_or_off_screen(browser: Any, root: Path, theme: str) -> None:
    for page in fresh_page(browser, color_scheme=theme):
        for place in (
            "index.html", "fish/same-0/report/index.html", "_notebook/compare.html#fish%2Fsame-0&fish%2Fother",
        ):  # fmt: skip
            open_page(page, (root / "x").as_uri()[:-1] + place)
            page.wait_for_timeout(200)
            assert faults(page) == [], place
            for width in (1400, 420):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (place, width)


def test_one_file_shows_everything_by_itself(page: Any, root: Path, tmp_path: Path) -> None:
    target = write_single(read_run(root / "fish" / "same-0"), tmp_path / "alone.html")
    open_page(page, target)
    page.wait_for_selector(".plot .main-svg")
    assert page.evaluate("document.querySelector('figure img').naturalWidth") > 0
    assert (
        page.evaluate("performance.getEntriesByType('resource').filter((r) => !r.name.startsWith('data:')).length") == 0
    )


def test_a_served_page_follows_its_run(page: Any, tmp_path: Path) -> None:
    path = make_run(tmp_path, "fish/a", status="interrupted")
    make_run(tmp_path, "fish/b")
    with serving(Notebook(tmp_path)) as server:
        open_page(page, server.address + "fish/a/report/index.html")
        page.wait_for_selector(".plot .main-svg")
        with (path / "metrics.jsonl").open("a") as file:
            file.write(json.dumps({"step": 10, "survival/mean": 7.0}) + "\n")
        page.wait_for_function("() => document.querySelector('.plot').data[0].y.includes(7)")
        page.goto(server.address)
        page.wait_for_selector("html[data-ready]")
        page.get_by_label("Choose fish/b for a comparison").check()
        make_run(tmp_path, "fish/c")
        page.wait_for_function("() => document.querySelectorAll('#runs li').length === 3")
        assert page.get_by_label("Choose fish/b for a comparison").is_checked()


def test_a_run_elsewhere_opens_from_the_index_and_not_through_a_server(page: Any, tmp_path: Path) -> None:
    root = tmp_path / "project" / "runs"
    make_run(root, "fish/a")
    far = make_run(tmp_path / "disk", "fish/far", root="../../../project/runs")
    (root / ELSEWHERE).write_text("../../disk/fish/far\n")
    build(root)
    open_page(page, root / "index.html")
    page.wait_for_selector("html[data-ready]")
    page.get_by_role("link", name="fish/far").click()
    page.wait_for_selector(".plot .main-svg")
    assert page.url == (far / "report" / "index.html").as_uri()
    with serving(Notebook(root)) as server:
        open_page(page, server.address)
        page.wait_for_selector("html[data-ready]")
        assert page.get_by_role("link", name="fish/far").count() == 0 and page.get_by_text("fish/far").count() == 1
        assert page.get_by_label("Choose fish/far for a comparison").is_disabled()


def test_a_served_comparison_says_what_the_differences_are_worth(page: Any, root: Path) -> None:
    with serving(Notebook(root)) as server:
        open_page(page, server.address + "_notebook/compare.html#fish%2Fother&fish%2Fsame-0&fish%2Fsame-1")
        page.wait_for_selector("[data-judged] tbody tr")
        assert page.locator("[data-judged] tbody tr").count() == 2
        assert "survival" in page.locator(".verdict").text_content()


def test_a_strangers_page_runs_no_script_and_reads_no_other_run(browser: Any, tmp_path: Path) -> None:
    path = make_run(tmp_path, "fish/strange")
    make_run(tmp_path, "fish/private")
    names = ("x.js.gz", "x.js.xz", "x.es", "x.mjs", "x.js")
    for name in names:
        (path / name).write_text("document.title = 'taken'; fetch('../private/run.json').then(() => done = true);")
    tags = "".join(f"<script src='{name}'></script><script type=module src='{name}'></script>" for name in names)
    hostile = f"<html><title>still</title>{tags}<script>document.title = 'taken'</script><img src=x onerror=eval(1)>"
    (path / "x.html").write_text(hostile)
    (path / "x.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    (path / "frame.html").write_text("<title>still</title><iframe src='../private/report/index.html'></iframe>")
    with serving(Notebook(tmp_path)) as server:
        context = browser.new_context()
        tab, asked = context.new_page(), []
        tab.on("request", lambda request: asked.append(request.url))
        for name in ("x.html", "x.svg", "frame.html", "report/index.html"):
            if name.startswith("report"):  # a page in the place of ours may use our scripts, and none of its own
                (path / "report" / "index.html").write_text(hostile)
            tab.goto(f"{server.address}fish/strange/{name}")
            tab.wait_for_load_state("networkidle")
            assert tab.title() in ("still", "")
        context.close()
    assert not [url for url in asked if "private/run.json" in url]
