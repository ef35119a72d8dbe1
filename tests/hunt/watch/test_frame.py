"""Frames of a film."""

from __future__ import annotations

import numpy as np

from marlab.hunt.watch.command import WatchConfig
from marlab.hunt.watch.film import watch
from marlab.hunt.watch.frame import HEIGHT, WIDTH, frame
from marlab.hunt.watch.record import Episode


def test_frames_are_pictures_of_one_size_that_change(planned: Episode) -> None:
    first, last = frame(planned, 0), frame(planned, len(planned.moments) - 1)
    assert first.shape == last.shape == (HEIGHT, WIDTH, 3) and first.dtype == np.uint8
    assert (first != last).any() and first.std() > 10
    large = watch(WatchConfig("EXPL", game="msh_8x8_b5"))
    assert frame(large, 0).shape == (HEIGHT, WIDTH, 3)
