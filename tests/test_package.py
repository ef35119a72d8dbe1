"""What a package is expected to bring: a licence, a citation, type information, and a workflow that runs the tests."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

import marlab

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


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
    assert [f"Programming Language :: Python :: {v}" in PROJECT["classifiers"] for v in versions] == [True, True]
