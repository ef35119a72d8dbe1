"""Films from frames: an MP4 that plays everywhere, or a GIF for pages; written completely or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from marlab.lab.errors import UserError
from marlab.lab.progress import Progress
from marlab.lab.runs.files import replacing


def can_film() -> bool:
    """Whether this machine has the encoder (imageio-ffmpeg)."""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        return False
    return True


class FilmCut(Exception):
    """Somebody did not want to wait for the rest of a film; there is no file then."""


def until(stop: Callable[[], bool], frames: Iterable[np.ndarray], bar: Progress | None = None) -> Iterator[np.ndarray]:
    """Frames with a safe point before each, where `stop` ends the film by `FilmCut`; `bar` counts them."""
    for frame in frames:
        if stop():
            raise FilmCut
        yield frame
        if bar is not None:
            bar.advance(1)


def write_film(path: Path, frames: Iterable[np.ndarray], fps: float) -> int:
    """A GIF where the name ends so, otherwise an MP4; returns how many frames there were."""
    return (write_gif if path.suffix == ".gif" else write_mp4)(path, frames, fps)


def write_gif(path: Path, frames: Iterable[np.ndarray], fps: float) -> int:
    """An endless GIF of frames [H, W, 3] uint8. All share one palette in which every hue has its place, however few
    pixels it fills: by their number a small red thing in a large blue picture would turn purple."""
    shots = [Image.fromarray(frame) for frame in frames]
    if not shots:
        raise ValueError("a film needs at least one frame")
    some = shots[:: max(1, len(shots) // 12)]
    seen = np.unique(np.concatenate([np.asarray(shot).reshape(-1, 3) for shot in some]), axis=0)  # every colour once
    palette = Image.fromarray(seen[None]).quantize(255, method=Image.Quantize.MEDIANCUT)
    drawn = [shot.quantize(palette=palette, dither=Image.Dither.NONE) for shot in shots]
    with replacing(path) as temporary:
        drawn[0].save(
            temporary, format="gif", save_all=True, append_images=drawn[1:], duration=round(1000 / fps), loop=0,
            optimize=False, disposal=1,
        )  # fmt: skip
    return len(drawn)


def write_mp4(path: Path, frames: Iterable[np.ndarray], fps: float) -> int:
    """Encode frames [H, W, 3] uint8 (H and W even, all alike) as H.264, one at a time; returns how many there were."""
    if not can_film():
        raise UserError("Films need the package imageio-ffmpeg: pip install imageio-ffmpeg.")
    import imageio_ffmpeg

    writer = None
    count = 0
    with replacing(path) as temporary:
        try:
            for frame in frames:
                if writer is None:
                    writer = imageio_ffmpeg.write_frames(
                        str(temporary), frame.shape[1::-1], fps=fps, codec="libx264", quality=None, macro_block_size=2,
                        output_params=["-crf", "24", "-preset", "veryfast", "-movflags", "+faststart", "-f", "mp4"],
                    )  # fmt: skip
                    writer.send(None)
                writer.send(np.ascontiguousarray(frame))
                count += 1
            if writer is None:
                raise ValueError("a film needs at least one frame")
        finally:
            if writer is not None:
                writer.close()
    return count
