"""The wheel in an environment of its own: it is complete, small, and does without the simulator."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.long  # fetches what builds a wheel, and starts torch in new processes

ROOT = Path(__file__).parents[1]
MEGABYTE = 1_000_000
HIDDEN = ("marlab", "scml", "negmas", "__editable__", "_marlab")
"""What the new environment does not get of the one that runs the tests."""


def run(*words: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "DISPLAY", "WAYLAND_DISPLAY")}
    return subprocess.run(words, cwd=cwd, env=kept | env, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built by what pyproject.toml asks for."""
    folder = tmp_path_factory.mktemp("built")
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    tools = folder / "tools"
    fetched = run(sys.executable, "-m", "pip", "install", "--quiet", "--target", tools, *asked, cwd=folder)
    assert fetched.returncode == 0, fetched.stderr
    done = run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT, PYTHONPATH=str(tools))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def marlab(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The installed command. Dependencies come as links to those of the tests, all but the hidden ones."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder / "venv", symlinks=True)
    own = folder / "venv" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    links = folder / "links"
    links.mkdir()
    for name in ("purelib", "platlib"):
        for path in Path(sysconfig.get_paths()[name]).iterdir():
            if not path.name.startswith(HIDDEN) and not (links / path.name).exists():
                (links / path.name).symlink_to(path)
    (own / "links.pth").write_text(f"{links}\n")
    python = folder / "venv" / "bin" / "python"
    [wheel] = built.glob("*.whl")
    words = (python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    installed = run(*words, cwd=folder)
    assert installed.returncode == 0, installed.stderr
    where = run(python, "-c", "import marlab; print(marlab.__file__)", cwd=folder)
    assert Path(where.stdout.strip()).is_relative_to(own), where
    return folder / "venv" / "bin" / "marlab"


def test_both_are_small(built: Path) -> None:
    [wheel], [sdist] = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.stat().st_size <= 16 * MEGABYTE
    assert sdist.stat().st_size <= wheel.stat().st_size + MEGABYTE


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("fish watch best --steps 60 --film seen.mp4", "seen.mp4"),
        ("hunt watch hop_4x4 --team NS+2NH --output-dir hunt", "hunt/*.mp4"),
    ],
)
def test_shipped_policies_play(marlab: Path, words: str, made: str, tmp_path: Path) -> None:
    done = run(marlab, *words.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    [film] = tmp_path.glob(made)
    assert film.stat().st_size > 1000


def test_the_market_says_what_it_needs(marlab: Path, tmp_path: Path) -> None:
    done = run(marlab, "market", "play", cwd=tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode == 2 and "Traceback" not in said
    assert len(said.strip().splitlines()) == 1 and "marlab[market]" in said
    assert list(tmp_path.iterdir()) == []
