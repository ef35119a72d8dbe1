"""What a package is expected to bring: a licence, a citation, type information, and a workflow that runs the tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import marlab

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, HATCH = PYPROJECT["project"], PYPROJECT["tool"]["hatch"]


def test_the_licence_is_named_and_there() -> None:
    assert PROJECT["license"] == "MIT" and PROJECT["license-files"] == ["LICENSE"]
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(citation["version"]) == PROJECT["version"] == marlab.__version__
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)


def test_types_are_announced() -> None:
    assert (Path(marlab.__file__).parent / "py.typed").exists()


def test_the_workflow_runs_what_we_run() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    assert {"run": "make test"} in jobs["test"]["steps"]
    versions = jobs["test"]["strategy"]["matrix"]["python"]
    assert versions == re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))


def test_the_changes_begin_with_this_version() -> None:
    [first, *_] = re.findall(r"^## (\S+) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert first == (PROJECT["version"], str(citation["date-released"]))


def test_the_first_page_is_short() -> None:
    """A wheel shows README too, without the folder beside it: no link or picture of its text leads there."""
    hook = HATCH["metadata"]["hooks"]["fancy-pypi-readme"]
    for page in ("README.md", "README.zh.md"):
        lines = (ROOT / page).read_text().splitlines()
        assert len(lines) <= 110 and max(map(len, lines)) <= 300
    text = (ROOT / "README.md").read_text()
    assert 'src="docs/images/' in text
    for change in hook["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert re.findall(r"\]\((?!https://)[^)]*\)|<img", text) == []
