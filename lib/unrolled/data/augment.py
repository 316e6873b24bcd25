"""More training images from those there are."""

from __future__ import annotations

from operator import index

import numpy as np

from unrolled.device import Array, array_module, to_device


def shifted(images: Array, rng: np.random.Generator, most: int = 2) -> Array:
    """Return images (N, C, H, W), each moved by its own whole numbers of pixels; zeros move in.

    The numbers are drawn from -most to most; the same rng gives the same shifts on every device. The dtype stays; the
    images are not changed. Raises ValueError for fewer or more than four axes and for a negative `most`.
    """
    most = index(most)
    if images.ndim != 4:
        raise ValueError(f"images has shape {images.shape}; expected 4 axes (N, C, H, W)")
    if most < 0:
        raise ValueError(f"most is {most}; expected at least 0")
    module, (count, channels, height, width) = array_module(images), images.shape
    framed = module.zeros((count, channels, height + 2 * most, width + 2 * most), dtype=images.dtype)
    framed[:, :, most : most + height, most : most + width] = images
    top, left = rng.integers(0, 2 * most + 1, size=(2, count, 1, 1, 1))
    image, channel = np.arange(count)[:, None, None, None], np.arange(channels)[:, None, None]
    rows, columns = top + np.arange(height)[:, None], left + np.arange(width)
    return framed[tuple(to_device(each, module) for each in (image, channel, rows, columns))]
