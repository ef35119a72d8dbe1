"""Films from frames: all frames in the file, or no file at all."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from marlab.lab import film
from marlab.lab.errors import UserError
from marlab.lab.film import can_film, write_film, write_mp4


def greys(levels: list[int]) -> Iterator[np.ndarray]:
    return (np.full((32, 48, 3), level, np.uint8) for level in levels)


def test_frames_come_back_in_order(tmp_path: Path) -> None:
    assert can_film()
    assert write_mp4(tmp_path / "a.mp4", greys([0, 120, 240]), fps=10) == 3
    decode = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-v",
        "error",
        "-i",
        tmp_path / "a.mp4",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
    ]
    raw = subprocess.run([*decode, "-"], check=True, capture_output=True).stdout
    means = np.frombuffer(raw, np.uint8).reshape(-1, 32, 48, 3).mean((1, 2, 3))
    assert means == pytest.approx([0, 120, 240], abs=6)  # the encoder may change a little
    assert [path.name for path in tmp_path.iterdir()] == ["a.mp4"]


def test_a_film_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    def breaking() -> Iterator[np.ndarray]:
        yield from greys([0])
        raise RuntimeError("no more light")

    path = tmp_path / "a.mp4"
    path.write_text("the old film")
    with pytest.raises(RuntimeError, match="no more light"):
        write_mp4(path, breaking(), fps=10)
    with pytest.raises(ValueError, match="at least one frame"):
        write_mp4(path, greys([]), fps=10)
    assert path.read_text() == "the old film" and [p.name for p in tmp_path.iterdir()] == ["a.mp4"]


def test_a_missing_encoder_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(film, "can_film", lambda: False)
    with pytest.raises(UserError, match="pip install imageio-ffmpeg"):
        write_mp4(tmp_path / "a.mp4", greys([0]), fps=10)


def test_a_gif_keeps_the_hue_of_small_things(tmp_path: Path) -> None:
    from PIL import Image

    sea = np.zeros((64, 64, 3), np.uint8)
    sea[..., 2] = np.arange(64)[:, None] + 150  # many blues
    sea[..., 1] = np.arange(64)[None, :] + 80
    frames = []
    for step in range(3):
        frame = sea.copy()
        frame[10 + step, 20:22] = (208, 44, 44)  # two red pixels
        frames.append(frame)
    assert write_film(tmp_path / "a.gif", frames, fps=10) == 3
    with Image.open(tmp_path / "a.gif") as film:
        assert film.n_frames == 3 and film.info["loop"] == 0
        film.seek(2)
        red, green, blue = film.convert("RGB").getpixel((20, 12))
    assert red > 180 and green < 80 and blue < 80
    with pytest.raises(ValueError, match="at least one frame"):
        write_film(tmp_path / "b.gif", [], fps=10)
