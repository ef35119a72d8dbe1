from __future__ import annotations

from pathlib import Path

from marlab.lab.notebook.charts import lines_of
from marlab.lab.notebook.compare_page import compared, data_name, run_data, write_compare
from marlab.lab.runs.records import read_run
from tests.lab.report.cases import make_run


def test_a_run_brings_its_settings_results_and_curves(tmp_path: Path) -> None:
    info = read_run(make_run(tmp_path))
    data = run_data(info, lines_of(info.path))
    assert data["settings"] == {"lr": "0.0003", "fish": "25", "net.width": "64"}
    assert data["results"][0]["name"]["en"] == "survival"
    assert data["stages"] == [{"name": "phase 1", "first": 1, "last": 9}]
    assert [line["metric"] for line in data["lines"]] == ["survival/mean", "loss/policy"]
    (info.path / "config.json").write_text("[]")
    assert run_data(info, [])["settings"] == {}


def test_data_of_a_run_has_a_name_of_its_own() -> None:
    assert data_name("fish/a") == data_name("fish/a") != data_name("fish/b")


def test_the_lab_tells_what_a_difference_is_worth(tmp_path: Path) -> None:
    for seed, value in ((0, 0.5), (1, 0.6)):
        make_run(tmp_path, f"fish/low-{seed}", {"lr": 1, "seed": seed}, seed=seed, results={"score": value})
        make_run(tmp_path, f"fish/high-{seed}", {"lr": 2, "seed": seed}, seed=seed, results={"score": value + 0.2})
    found = compared([tmp_path / "fish" / f"{name}-{seed}" for name in ("low", "high") for seed in (0, 1)], tmp_path)
    assert [(row["name"], row["value"], row["outcome"]) for row in found["rows"]] == [
        ("lr=1", 0.55, "the reference"), ("lr=2", 0.75, "higher"),
    ]  # fmt: skip
    assert found["verdict"][0]["en"].startswith("lr=2 is above lr=1: score 0.75 against 0.55, +0.2")


def test_the_page_has_the_quantiles_of_its_bands(tmp_path: Path) -> None:
    page = write_compare(tmp_path, "en")
    [data] = (page.parent / "data").iterdir()
    assert '"student":[12.706,4.3027,3.1824' in data.read_text()
    assert "compare.js" in page.read_text()
