"""A window stepping over an image: padding, kernel, products, and the output filled so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.cells import Cells, Scale
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, RED, SMALL, WIDTH
from unrolled.show.windows import PADDING, Pair, WindowSums, as_channels, windows
from unrolled.show.words import count_of, listing, number

FEW = 16  # so many numbers can be read out
GAP = 0.27  # inches between panels, with room for a sign
HEADING = 0.55
ROW_HEIGHT = {1: 2.35, 2: 1.75, 3: 1.5, 4: 1.3}  # inches for a channel, by their number


def convolution(
    image: ArrayLike,
    kernel: ArrayLike,
    stride: int | Pair = 1,
    padding: int | Pair = 0,
    bias: float = 0.0,
) -> Explorer:
    """Draw how a kernel steps over an image; a slider chooses the output position.

    image (H, W) or (C, H, W); kernel (KH, KW) or (C, KH, KW); stride and padding: int or pair, as in `ops.conv2d`.
    As everywhere in deep learning the kernel is not flipped. ValueError where the shapes do not fit.
    """
    steps = Steps.of(image, kernel, stride, padding, bias)

    def words(position: int) -> str:
        return "row {}, column {}".format(*steps.seen.position(position))

    slider = Slider("output position", range(steps.output.size), steps.telling(), words, play=True)
    return Explorer(
        lambda position: _draw(steps, position),
        lambda position: _alt(steps, position),
        position=slider,
    )


@dataclass(frozen=True)
class Steps:
    """A convolution, position by position: weight (C, KH, KW), output (OH, OW)."""

    seen: WindowSums
    weight: NDArray[np.float64]
    bias: float
    output: NDArray[np.float64]

    @classmethod
    def of(cls, image: ArrayLike, kernel: ArrayLike, stride: Any, padding: Any, bias: float) -> Steps:
        weight = as_channels(kernel, "kernel")
        seen = windows(image, weight.shape[1:], stride, padding)
        if len(weight) != len(seen.padded):
            raise ValueError(f"kernel has {len(weight)} channels, image {len(seen.padded)}; they must be equal")
        return cls(seen, weight, bias, np.einsum("ijchw,chw->ij", seen.patches, weight) + bias)

    def patch(self, position: int) -> NDArray[np.float64]:
        """Return what the window covers at this position: (C, KH, KW)."""
        row, column = self.seen.position(position)
        patch: NDArray[np.float64] = self.seen.patches[row, column]
        return patch

    def channel_sums(self, position: int) -> list[float]:
        """Return what each channel adds to the output at this position."""
        return [float(value) for value in (self.patch(position) * self.weight).sum(axis=(1, 2))]

    def filled(self, position: int) -> NDArray[np.float64]:
        """Return the output (OH, OW) up to and with this position, row by row; NaN after it."""
        return np.where(np.arange(self.output.size).reshape(self.output.shape) <= position, self.output, np.nan)

    def telling(self) -> int:
        """Return the position in the middle row of outputs whose output is farthest from zero."""
        rows, columns = self.seen.output_size
        middle = (rows - 1) // 2
        return middle * columns + int(np.abs(self.output[middle]).argmax())

    def sum_in_words(self, position: int) -> str:
        """Return the sum that makes this output, as in "14 + 9 + 16 = 39"; only the output if it has a single term."""
        terms = [number(value) for value in self.channel_sums(position)]
        if self.bias:
            terms.append(f"{number(self.bias)} (bias)")
        total = number(float(self.output.flat[position]))
        return f"{' + '.join(terms)} = {total}".replace("+ -", "− ") if len(terms) > 1 else total


@dataclass(frozen=True)
class _ConvolutionLayout:
    inputs: list[Cells]
    panels: list[list[Cells]]  # for each channel: window, kernel, products
    output: Cells
    height: float


def _layout(steps: Steps) -> _ConvolutionLayout:
    channels, (kh, kw) = len(steps.weight), steps.seen.kernel_size
    row = ROW_HEIGHT[channels]
    room = row - 0.3
    small = Cells.fitting((kh, kw), 0.92, room - 0.25, 0.32)
    wide = WIDTH - 0.2 - 3 * small.size[0] - 4 * GAP  # what input and output share
    input_shape = steps.seen.padded.shape[1:]
    grid = Cells.fitting(input_shape, 0.58 * wide, room, 0.44)
    output = Cells.fitting(steps.output.shape, min(0.42 * wide, 1.9), room if channels == 1 else 1.9, 0.44)
    left = 0.1 + (wide - grid.size[0] - output.size[0]) / 2
    inputs = [grid.at(left, HEADING + channel * row) for channel in range(channels)]
    first, step = left + grid.size[0] + GAP, small.size[0] + GAP
    panels = [[small.at(first + i * step, g.middle[1] - small.size[1] / 2) for i in range(3)] for g in inputs]
    centre = (inputs[0].top + inputs[-1].bottom) / 2
    result = output.at(first + 3 * step, centre - output.size[1] / 2)
    height = max(inputs[-1].bottom, panels[-1][0].bottom + 0.25, result.bottom + 0.4) + (0.25 if channels > 1 else 0.1)
    return _ConvolutionLayout(inputs, panels, result, height)


def _draw(steps: Steps, position: int) -> Figure:
    layout = _layout(steps)
    sheet = Sheet(layout.height)
    patch, sums = steps.patch(position), steps.channel_sums(position)
    scales = Scale.of(steps.seen.padded), Scale.of(steps.weight), Scale.of(steps.seen.patches * steps.weight)
    for channel, grid in enumerate(layout.inputs):
        _draw_input(sheet, grid, steps.seen, channel, position, scales[0])
        arrays = patch[channel], steps.weight[channel], patch[channel] * steps.weight[channel]
        for cells, values, scale in zip(layout.panels[channel], arrays, scales, strict=True):
            sheet.matrix(cells, values, scale)
        window, kernel, products = layout.panels[channel]
        sheet.outline(window.frame, BLUE)
        for sign, cells in (("×", window), ("=", kernel)):
            sheet.text((cells.right + GAP / 2, cells.middle[1]), sign, size=12, anchor="middle")
        sheet.text((products.middle[0], products.bottom + 0.16), f"sum {number(sums[channel])}", anchor="middle")
    _draw_output(sheet, layout.output, steps, position)
    _headings(sheet, layout, steps.seen)
    return sheet.figure()


def _draw_input(sheet: Sheet, cells: Cells, seen: WindowSums, channel: int, position: int, scale: Scale) -> None:
    sheet.matrix(cells, seen.padded[channel], scale)
    sheet.hatch(cells.runs(~seen.inside), "////", PADDING)
    sheet.outline(cells.box(*seen.corner(position), *seen.kernel_size), BLUE)
    if len(seen.padded) > 1:
        sheet.text((cells.left, cells.bottom + 0.12), f"channel {channel}", size=SMALL)


def _draw_output(sheet: Sheet, cells: Cells, steps: Steps, position: int) -> None:
    filled = steps.filled(position)
    sheet.matrix(cells, filled, Scale.of(steps.output))
    sheet.hatch(cells.runs(np.isnan(filled)), "....", PADDING)
    sheet.outline(cells.box(*steps.seen.position(position)), RED)
    sheet.text((cells.left - GAP / 2, cells.middle[1]), "→", size=12, anchor="middle")
    terms, _, total = steps.sum_in_words(position).rpartition(" = ")
    lines = f"{terms}\n= {total}" if terms else f"= {total}"
    sheet.text((cells.right, cells.bottom + 0.2), lines, RED, anchor="right", bold=True)


def _headings(sheet: Sheet, layout: _ConvolutionLayout, seen: WindowSums) -> None:
    padding = f"\npadding {_same(seen.padding)}, hatched" if any(seen.padding) else ""
    sheet.text_above(layout.inputs[0], "input {} × {}".format(*seen.size) + padding)
    for cells, text in zip(layout.panels[0], ("window", "kernel", "products"), strict=True):
        sheet.text_above(cells, text)
    sheet.text_above(layout.output, "output {} × {}".format(*seen.output_size))


def _alt(steps: Steps, position: int) -> str:
    seen = steps.seen
    shape, kernel, result = ("{} by {}".format(*pair) for pair in (seen.size, seen.kernel_size, seen.output_size))
    channels = f" with {len(steps.weight)} channels" if len(steps.weight) > 1 else ""
    done = [number(float(value)) for value in steps.output.flat[: position + 1]]
    so_far = f": {listing(done)}" if len(done) <= FEW else ""
    row, column = seen.position(position)
    return (
        f"A kernel of {kernel} steps over an image of {shape}{channels} (stride {_same(seen.stride)}, padding "
        f"{_same(seen.padding)}). For output row {row}, column {column} the window covers {seen.in_words(position)}; "
        f"window times kernel adds up to {steps.sum_in_words(position)}. "
        f"{position + 1} of {count_of(steps.output.size, 'output')} of the {result} result are filled{so_far}."
    )


def _same(value: Pair) -> str:
    return str(value[0]) if value[0] == value[1] else str(value)
