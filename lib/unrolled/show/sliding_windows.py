"""The windows that a kernel sees, as numbers, in words and drawn: padding, positions and patches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.show.sheet import Cells, Scale, Sheet, on_host
from unrolled.show.style import BLUE, RED, SMALL
from unrolled.show.words import span

MOST_CHANNELS = 4
PADDING = "#B0B0B0"  # hatching that leaves numbers readable

Pair = tuple[int, int]


def pair(value: int | tuple[int, int], name: str, least: int) -> Pair:
    """Return an int or a pair of ints as a pair. ValueError for one below `least`."""
    first, second = (value, value) if isinstance(value, int) else value
    if min(first, second) < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return int(first), int(second)


def as_channels(array: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return one image or kernel as float64 (C, H, W), from (H, W), (C, H, W) or (1, C, H, W).

    ValueError for another shape, no values, or more than four channels.
    """
    values = on_host(array, dtype=np.float64)
    if values.ndim == 4 and len(values) == 1:
        values = values[0]
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or not values.size:
        raise ValueError(f"{name} must be one (H, W) or (C, H, W) array, got shape {np.shape(array)}")
    if len(values) > MOST_CHANNELS:
        raise ValueError(f"{name} has {len(values)} channels; the picture has room for {MOST_CHANNELS}")
    return values


@dataclass(frozen=True)
class Windows:
    """The windows of one image.

    padded: (C, H + 2 PH, W + 2 PW), with zeros around the image; inside: (H + 2 PH, W + 2 PW), true where there is a
    pixel of the image, not padding; patches: (OH, OW, C, KH, KW), a view.
    """

    padded: NDArray[np.float64]
    inside: NDArray[np.bool_]
    patches: NDArray[np.float64]
    size: Pair
    kernel_size: Pair
    stride: Pair
    padding: Pair

    @property
    def output_size(self) -> Pair:
        return self.patches.shape[0], self.patches.shape[1]

    @property
    def count(self) -> int:
        """How many windows, and outputs of a channel, there are."""
        return self.output_size[0] * self.output_size[1]

    def position(self, index: int) -> Pair:
        """Return row and column of the index-th output, counted row by row."""
        return divmod(index, self.output_size[1])

    def place(self, index: int) -> str:
        """Return where the index-th output stands, in words."""
        return "row {}, column {}".format(*self.position(index))

    def corner(self, index: int) -> Pair:
        """Return row and column, in the padded image, of the upper left cell of the index-th window."""
        row, column = self.position(index)
        return row * self.stride[0], column * self.stride[1]

    def in_words(self, index: int) -> str:
        """Return in words which rows and columns the index-th window covers, counted in the padded image."""
        (row, column), (height, width) = self.corner(index), self.kernel_size
        of = " of the padded image" if any(self.padding) else ""
        return f"{span('row', row, height)} and {span('column', column, width)}{of}"

    @property
    def with_channels(self) -> str:
        """The image's channels in words; "" for a single one."""
        return f" with {len(self.padded)} channels" if len(self.padded) > 1 else ""

    def filled(self, outputs: NDArray[np.float64], index: int) -> NDArray[np.float64]:
        """Return outputs (..., OH, OW) up to and with the index-th, row by row; NaN after it."""
        return np.where(np.arange(self.count).reshape(self.output_size) <= index, outputs, np.nan)

    def start_position(self, outputs: NDArray[np.float64]) -> int:
        """Return the index of the largest of outputs (OH, OW) in the middle row."""
        middle = (len(outputs) - 1) // 2
        return int(middle * outputs.shape[1] + outputs[middle].argmax())

    def draw_image(
        self, sheet: Sheet, cells: Cells, pixels: NDArray[np.float64], scale: Scale, index: int, colour: str = BLUE
    ) -> None:
        """Draw pixels, in the shape of a padded channel, with the padding hatched and the index-th window framed."""
        sheet.matrix(cells, pixels, scale)
        sheet.hatch(cells.runs(~self.inside), "////", PADDING)
        sheet.outline(cells.box(*self.corner(index), *self.kernel_size), colour)

    def draw_channel(self, sheet: Sheet, cells: Cells, channel: int, index: int) -> None:
        """Draw a channel of the image, named where there are more than one, with its index-th window."""
        self.draw_image(sheet, cells, self.padded[channel], Scale.of(self.padded), index)
        if len(self.padded) > 1:
            sheet.text((cells.left, cells.bottom + 0.12), f"channel {channel}", size=SMALL)

    def draw_outputs(self, sheet: Sheet, cells: Cells, outputs: NDArray[np.float64], scale: Scale, index: int) -> None:
        """Draw outputs (OH, OW) up to and with the index-th, which is framed; dots are where the others will be."""
        filled = self.filled(outputs, index)
        sheet.matrix(cells, filled, scale)
        sheet.hatch(cells.runs(np.isnan(filled)), "....", PADDING)
        sheet.outline(cells.box(*self.position(index)), RED)


def one_or_pair(value: Pair) -> str:
    """Return a pair as text; two equal numbers as one of them."""
    return str(value[0]) if value[0] == value[1] else str(value)


def windows(image: ArrayLike, kernel_size: Any, stride: Any = 1, padding: Any = 0) -> Windows:
    """Return all windows of an image (H, W) or (C, H, W). ValueError where no window fits."""
    channels = as_channels(image, "image")
    (kh, kw), (sh, sw) = pair(kernel_size, "kernel_size", 1), pair(stride, "stride", 1)
    (ph, pw), (height, width) = pair(padding, "padding", 0), channels.shape[1:]
    padded = np.pad(channels, ((0, 0), (ph, ph), (pw, pw)))
    if kh > padded.shape[1] or kw > padded.shape[2]:
        raise ValueError(f"kernel_size {(kh, kw)} is larger than the padded image {padded.shape[1:]}")
    views = np.lib.stride_tricks.sliding_window_view(padded, (kh, kw), axis=(1, 2))
    patches = views[:, ::sh, ::sw].transpose(1, 2, 0, 3, 4)
    inside = np.pad(np.ones((height, width), dtype=bool), ((ph, ph), (pw, pw)))
    return Windows(padded, inside, patches, (height, width), (kh, kw), (sh, sw), (ph, pw))
