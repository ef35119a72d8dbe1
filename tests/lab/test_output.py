"""Commands whose output nobody reads any more, or which never had any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LONG = """
import sys
from pathlib import Path
from marlab.lab.output import open_missing_streams, readers_may_leave
open_missing_streams()
with readers_may_leave():
    for number in range(2000):
        print("a line of some length", number, flush=number % 2 == 0)
        print("and an error", file=sys.stderr)
    Path("done").write_text("all of it")
"""


@pytest.mark.parametrize("ending", ["| head -n 1", "2>&1 | head -n 1", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_work_goes_on_without_a_reader(tmp_path: Path, ending: str) -> None:
    (tmp_path / "work.py").write_text(LONG)
    words = f"set -o pipefail; {sys.executable} work.py {ending}"
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr
    assert (tmp_path / "done").read_text() == "all of it"  # and nothing that was printed is in it


def test_a_disk_that_is_full_is_still_an_error(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(LONG)
    words = f"{sys.executable} work.py > /dev/full"
    assert subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, check=False, timeout=120).returncode


@pytest.mark.parametrize("words", ["runs | head -n 1", "--help | head -n 1", "runs 2>&- >&-"])
def test_commands_whose_reader_leaves_end_well(tmp_path: Path, words: str) -> None:
    line = f"set -o pipefail; {sys.executable} -m marlab {words}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0 and "Traceback" not in done.stderr
