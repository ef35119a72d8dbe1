from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from marlab.lab.errors import UserError
from marlab.lab.notebook import panels
from marlab.lab.notebook.panels import Contribution, Page, Panel, Table, called, contribution, package_of, world_pages
from marlab.lab.runs.records import RunInfo, read_run
from tests.lab.report.cases import make_run


def info_of(tmp_path: Path, config_type: str | None) -> RunInfo:
    return read_run(make_run(tmp_path, config_type=config_type))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A world `pond` whose module of pages is made here."""
    module = ModuleType("marlab.pond.pages")
    monkeypatch.setattr(panels, "world_pages", lambda package: module if package == "pond" else None)
    return module


def test_a_record_of_a_stranger_names_no_module(tmp_path: Path) -> None:
    for hostile in ("os:system", "marlab.fish:x:y", "marlab...:a", "marlab.__main__:x"):
        assert package_of(info_of(tmp_path / "a", hostile)) is None
    assert package_of(info_of(tmp_path / "b", "marlab.fish.training.config:FishTrainConfig")) == "fish"
    assert world_pages("no_such_world") is None
    assert world_pages("../fish") is None


def test_a_world_shows_what_its_function_makes(tmp_path: Path, world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world.PAGES = {"marlab.pond.config:PondConfig": "tests.lab.notebook.test_panels:shown"}
    info = info_of(tmp_path, "marlab.pond.config:PondConfig")
    assert contribution(info).panels[0].data == info.id
    assert contribution(info_of(tmp_path / "other", "marlab.pond.config:Another")) == Contribution()


def shown(info: RunInfo) -> Contribution:
    return Contribution([Panel("pond.water", "a title", info.id)])


def broken(info: RunInfo) -> Contribution:
    raise KeyError("depth")


def test_what_a_world_stumbles_over_is_one_sentence(tmp_path: Path, world: Any) -> None:
    world.PAGES = {"marlab.pond.config:PondConfig": "tests.lab.notebook.test_panels:broken"}
    with pytest.raises(UserError, match="damaged or of another version: KeyError 'depth'"):
        contribution(info_of(tmp_path, "marlab.pond.config:PondConfig"))


def test_files_and_figures_are_called_by_the_names_of_people(world: Any) -> None:
    world.CAPTIONS = {"en": {"depth": "How deep it is", "wave_*": "A wave"}}
    assert called("pond", "depth", "CAPTIONS", "en") == "How deep it is"
    assert called("pond", "wave_12", "CAPTIONS", "en") == "A wave"
    assert called("pond", "other", "CAPTIONS", "en") is None
    assert called(None, "ppo/entropy", "METRICS", "en") == "entropy of the policy [nats]"


def test_kinds_and_names() -> None:
    assert Panel("table", "").package is None
    assert Panel("fish.tank", "").package == "fish"
    assert Table(["a"], [[1], ["b"]]).data() == {"columns": ["a"], "rows": [[1], ["b"]], "sort": True}
    for wrong in ("index", "../up", "a b", ""):
        with pytest.raises(ValueError, match="cannot be the name of a page"):
            Page(wrong, "", [])


def test_only_actions_that_are_named_can_be_asked_for(world: Any) -> None:
    world.ACTIONS = {"seat": "tests.lab.notebook.test_panels:shown"}
    assert panels.action("pond", "seat") is shown
    with pytest.raises(UserError, match="Nothing here answers pond/other"):
        panels.action("pond", "other")
