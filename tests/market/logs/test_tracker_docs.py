"""The examples of `docs/market-data.md` run as they stand, in a folder that looks as the page says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from marlab.cli import main
from marlab.market.logs.daystate import DayState
from marlab.market.logs.worldfile import read_world
from marlab.market.logs.worldlog import TABLES
from marlab.market.networks.manager import HorizonManagerPPO
from marlab.market.networks.weights import save_network
from marlab.market.samples.dataset import schema
from marlab.market.samples.extract import extract
from marlab.market.samples.options import SampleOptions, Sizes
from tests.market.sample_tools import write_dataset

PAGE = (Path(__file__).parents[3] / "docs" / "market-data.md").read_text(encoding="utf-8")
TINY = Path(__file__).parents[2] / "golden" / "market" / "tiny_world.parquet"
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
HERE = [block for block in PYTHON if "record_world" not in block]
"""Examples that run in this process; playing a world again needs a Python that was started with its hash seed."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One recorded world, weights of L2 and a data set, under the names that the page uses."""
    monkeypatch.chdir(tmp_path)
    for name in set(re.findall(r"runs/market/mine/worlds/\S+?\.parquet", PAGE)):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TINY, name)
    save_network(Path("out/l2_bc.pt"), HorizonManagerPPO())
    samples = extract(next(read_world(TINY).tracked()), SampleOptions())
    write_dataset(Path("runs/market/penguin_none/data"), {"train": samples}, {})
    return tmp_path


@pytest.mark.parametrize("example", HERE, ids=[f"example {i}" for i in range(len(HERE))])
@pytest.mark.usefixtures("place")
def test_python_examples(example: str) -> None:
    exec(compile(example, "docs/market-data.md", "exec"), {"__name__": "example"})


def test_nearly_all_examples_are_run() -> None:
    assert len(HERE) == len(PYTHON) - 1 >= 3


def test_every_flag_on_the_page_exists(capsys: pytest.CaptureFixture[str]) -> None:
    """Flags of the commands in the page's sh blocks are those that the commands' help names."""
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("marlab market ")]
    assert len(commands) >= 10
    for name in {words[2] for words in commands}:
        with pytest.raises(SystemExit):
            main(["market", name, "--help"])
        known = capsys.readouterr().out.replace("[no-]", "")
        flags = {word for words in commands if words[2] == name for word in words if word.startswith("--")}
        assert not [flag for flag in flags if flag not in known], name


def test_every_field_is_on_the_page() -> None:
    """World logs, their meta data, mornings and samples: a new column needs a line."""
    meta = read_world(TINY).meta
    columns = {column for kinds in TABLES.values() for column in kinds}
    columns |= {column for kinds in schema(Sizes()).values() for column in kinds}
    names = {*columns, *DayState._fields, *meta, *meta["spec"], *meta["agents"][0]}
    bounds = re.compile(r"(buy|sell)_(quantity|price|day)_(min|max)")  # named by the first and the last of a side
    assert not sorted(name for name in names if f"`{name}`" not in PAGE and not bounds.fullmatch(name))
