"""The flags of a command that uses the engine, and what remains of a command without them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from marlab.lab.engine.flags import EngineFlags, config_of
from marlab.lab.engine.tasks import EngineConfig
from marlab.lab.errors import UserError


@dataclass(frozen=True)
class Config:
    games: int = 3


@dataclass(frozen=True)
class Command(EngineFlags, Config):
    """A command's flags."""


def test_flags_name_an_engine() -> None:
    assert EngineFlags().engine_config() == EngineConfig("local")
    flags = EngineFlags("ray", workers=4, address="127.0.0.1:6379")
    assert flags.engine_config() == EngineConfig("ray", 4, "127.0.0.1:6379")
    with pytest.raises(UserError, match="takes no address"):
        EngineFlags(address="127.0.0.1:1").engine_config()


def test_where_work_is_done_is_no_part_of_the_config() -> None:
    assert config_of(Command(engine="serial", quiet=True, games=5), Config) == Config(games=5)
