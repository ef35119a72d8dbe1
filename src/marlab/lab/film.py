"""Films from frames: an MP4 that plays everywhere, written completely or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from marlab.lab.errors import UserError
from marlab.lab.runs.files import replacing


def can_film() -> bool:
    """Whether this machine has the encoder (imageio-ffmpeg)."""
    try:
        import imageio_ffmpeg  # noqa: F401
    except ImportError:
        return False
    return True


def write_mp4(path: Path, frames: Iterable[np.ndarray], fps: float) -> int:
    """Encode frames [H, W, 3] uint8 (H and W even, all alike) as H.264, one at a time; returns how many there were."""
    if not can_film():
        raise UserError("Films need the package imageio-ffmpeg: pip install imageio-ffmpeg.")
    import imageio_ffmpeg

    writer = None
    count = 0
    with replacing(path) as temporary:
        target = temporary.with_suffix(".mp4")  # the encoder chooses the container by the ending
        try:
            for frame in frames:
                if writer is None:
                    writer = imageio_ffmpeg.write_frames(
                        str(target), frame.shape[1::-1], fps=fps, codec="libx264", quality=None, macro_block_size=2,
                        output_params=["-crf", "24", "-preset", "veryfast", "-movflags", "+faststart"],
                    )  # fmt: skip
                    writer.send(None)
                writer.send(np.ascontiguousarray(frame))
                count += 1
            if writer is None:
                raise ValueError("a film needs at least one frame")
            writer.close()
            target.replace(temporary)
        finally:
            if writer is not None:
                writer.close()
            target.unlink(missing_ok=True)
    return count
