"""The filters of a convolution, and what each makes of an image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled import ops
from unrolled.show.cells import Scale, on_host
from unrolled.show.picture import Picture
from unrolled.show.sheet import Sheet
from unrolled.show.style import WIDTH
from unrolled.show.words import count_of

MOST = 64
EDGE, GAP, ROW_GAP = 0.1, 0.08, 0.16  # inches


def filters(weight: ArrayLike, image: ArrayLike | None = None, padding: int = 0, title: str = "") -> Picture:
    """Draw the filters of weight (O, C, KH, KW), and below each its response to an image (C, H, W), after a ReLU.

    Filters of one channel are drawn in purple (below 0) and orange (above), each on its own scale; filters of three
    channels as colours. ValueError for other shapes, more than 64 filters, or an image with other channels.
    """
    kernels = on_host(weight, dtype=np.float32)
    if kernels.ndim != 4 or kernels.shape[1] not in (1, 3) or not 0 < len(kernels) <= MOST:
        raise ValueError(f"weight must be (O, 1 or 3, KH, KW) with at most {MOST} filters, got {kernels.shape}")
    responses = None if image is None else _responses(kernels, on_host(image, dtype=np.float32), padding)
    columns = min(len(kernels), 10 if responses is not None else 16)
    tile, rows = min((WIDTH - 2 * EDGE + GAP) / columns, 0.95), -(-len(kernels) // columns)
    side, step = tile - GAP, tile + (tile if responses is not None else 0) + ROW_GAP
    top = 0.4 if title else EDGE
    sheet = Sheet(top + rows * step, max(columns * tile - GAP + 2 * EDGE, 4.0 if title else 0.0))
    sheet.text((EDGE, 0.2), title, size=11)
    for i, kernel in enumerate(kernels):
        row, column = divmod(i, columns)
        box = (EDGE + column * tile, top + row * step, side, side)
        sheet.tile(box, filter_colours(kernel))
        if responses is not None:
            sheet.tile((box[0], box[1] + tile, side, side), Scale.of(responses[i]).colours(responses[i]))
    return Picture(sheet.figure(), _alt(kernels, responses, title))


def filter_colours(kernel: NDArray[Any]) -> NDArray[np.float64]:
    """Return a filter (C, KH, KW) as RGBA (KH, KW, 4): one channel on a signed scale, three as red, green and blue."""
    limit = float(np.abs(kernel).max()) or 1.0
    if len(kernel) == 1:
        return Scale(limit, signed=True).colours(kernel[0].astype(np.float64))
    colours = np.ones((*kernel.shape[1:], 4))
    colours[..., :3] = (kernel.transpose(1, 2, 0) / limit + 1) / 2
    return colours


def _responses(kernels: NDArray[Any], image: NDArray[Any], padding: int) -> NDArray[Any]:
    """What each filter gives on the image, after a ReLU: (O, OH, OW)."""
    if image.ndim != 3 or len(image) != kernels.shape[1]:
        raise ValueError(f"image must be ({kernels.shape[1]}, H, W) for weight {kernels.shape}, got {image.shape}")
    return np.asarray(ops.relu(ops.conv2d(image[None], kernels, padding=padding))[0])


def _alt(kernels: NDArray[Any], responses: NDArray[Any] | None, title: str) -> str:
    _, channels, height, width = kernels.shape
    text = f"{title}: " if title else ""
    text += f"{count_of(len(kernels), 'filter')} of {height} by {width}, {count_of(channels, 'channel')}"
    if responses is None:
        return f"{text}."
    silent = int((responses.reshape(len(responses), -1).max(axis=1) <= 0).sum())
    alive = f"{silent} of them {'gives' if silent == 1 else 'give'} 0 everywhere" if silent else "each answers"
    return f"{text}, and what each gives on one image after a ReLU: {alive}."
