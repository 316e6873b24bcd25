"""A window stepping over an image: padding, kernel, products, and the output filled so far."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.cells import Cells, Scale
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.sheet import Sheet
from unrolled.show.style import BLUE, RED, WIDTH
from unrolled.show.windows import Pair, WindowSums, as_channels, one_or_pair, windows
from unrolled.show.words import count_of, listing, number

FEW = 16  # so many numbers can be read out
GAP = 0.27  # inches between panels, with room for a sign
HEADING = 0.55
ROW_HEIGHT = {1: 2.35, 2: 1.75, 3: 1.5, 4: 1.3}  # inches for a channel, by their number


def convolution(
    image: ArrayLike, kernel: ArrayLike, stride: int | Pair = 1, padding: int | Pair = 0, bias: float = 0.0
) -> Explorer:
    """Draw how a kernel steps over an image; a slider chooses the output position.

    image (H, W) or (C, H, W); kernel (KH, KW) or (C, KH, KW); stride and padding: int or pair, as in `ops.conv2d`.
    As everywhere in deep learning the kernel is not flipped. ValueError where the shapes do not fit.
    """
    steps = Steps.of(image, kernel, stride, padding, bias)
    seen, start = steps.seen, steps.seen.telling(np.abs(steps.output))
    slider = Slider("output position", range(seen.count), start, seen.place, play=True)
    return Explorer(partial(_draw, steps), partial(_alt, steps), position=slider)


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
        return np.asarray(self.seen.patches[self.seen.position(position)])

    def channel_sums(self, position: int) -> list[float]:
        """Return what each channel adds to the output at this position."""
        return [float(value) for value in (self.patch(position) * self.weight).sum(axis=(1, 2))]

    def sum_in_words(self, position: int) -> str:
        """Return the sum that makes this output, as in "14 + 9 + 16 = 39"; only the output if it has a single term."""
        terms = [number(value) for value in self.channel_sums(position)]
        if self.bias:
            terms.append(f"{number(self.bias)} (bias)")
        total = number(float(self.output.flat[position]))
        return f"{' + '.join(terms)} = {total}".replace("+ -", "− ") if len(terms) > 1 else total


def _layout(steps: Steps) -> tuple[list[Cells], list[list[Cells]], Cells, float]:
    """The inputs; for each channel window, kernel and products; the output; and the height of the sheet."""
    channels, row = len(steps.weight), ROW_HEIGHT[len(steps.weight)]
    room = row - 0.3
    small = Cells.fitting(steps.seen.kernel_size, 0.92, room - 0.25, 0.32)
    wide = WIDTH - 0.2 - 3 * small.size[0] - 4 * GAP  # what input and output share
    grid = Cells.fitting(steps.seen.padded.shape[1:], 0.58 * wide, room, 0.44)
    output = Cells.fitting(steps.output.shape, min(0.42 * wide, 1.9), room if channels == 1 else 1.9, 0.44)
    left = 0.1 + (wide - grid.size[0] - output.size[0]) / 2
    inputs = [grid.at(left, HEADING + channel * row) for channel in range(channels)]
    first, step = left + grid.size[0] + GAP, small.size[0] + GAP
    panels = [[small.at(first + i * step, g.middle[1] - small.size[1] / 2) for i in range(3)] for g in inputs]
    centre = (inputs[0].top + inputs[-1].bottom) / 2
    result = output.at(first + 3 * step, centre - output.size[1] / 2)
    height = max(inputs[-1].bottom, panels[-1][0].bottom + 0.25, result.bottom + 0.4) + (0.25 if channels > 1 else 0.1)
    return inputs, panels, result, height


def _draw(steps: Steps, position: int) -> Figure:
    inputs, panels, output, height = _layout(steps)
    sheet, seen, weight = Sheet(height), steps.seen, steps.weight
    patch, sums = steps.patch(position), steps.channel_sums(position)
    scales = Scale.of(seen.padded), Scale.of(weight), Scale.of(seen.patches * weight)
    for channel, (window, kernel, products) in enumerate(panels):
        seen.draw_channel(sheet, inputs[channel], channel, position)
        arrays = patch[channel], weight[channel], patch[channel] * weight[channel]
        for cells, values, scale in zip(panels[channel], arrays, scales, strict=True):
            sheet.matrix(cells, values, scale)
        sheet.outline(window.frame, BLUE)
        sheet.sign(window, kernel, "×")
        sheet.sign(kernel, products, "=")
        sheet.text((products.middle[0], products.bottom + 0.16), f"sum {number(sums[channel])}", anchor="middle")
    seen.draw_outputs(sheet, output, steps.output, Scale.of(steps.output), position)
    sheet.sign(panels[-1][-1], output)
    terms, _, total = steps.sum_in_words(position).rpartition(" = ")
    lines = f"{terms}\n= {total}" if terms else f"= {total}"
    sheet.text((output.right, output.bottom + 0.2), lines, RED, anchor="right", bold=True)
    padding = f"\npadding {one_or_pair(seen.padding)}, hatched" if any(seen.padding) else ""
    before, after = ("{} × {}".format(*size) for size in (seen.size, seen.output_size))
    headings = f"input {before}{padding}", "window", "kernel", "products", f"output {after}"
    for cells, text in zip((inputs[0], *panels[0], output), headings, strict=True):
        sheet.text_above(cells, text)
    return sheet.figure()


def _alt(steps: Steps, position: int) -> str:
    seen = steps.seen
    shape, kernel, result = ("{} by {}".format(*pair) for pair in (seen.size, seen.kernel_size, seen.output_size))
    done = [number(float(value)) for value in steps.output.flat[: position + 1]]
    so_far = f": {listing(done)}" if len(done) <= FEW else ""
    return (
        f"A kernel of {kernel} steps over an image of {shape}{seen.with_channels} (stride {one_or_pair(seen.stride)}, "
        f"padding {one_or_pair(seen.padding)}). For output {seen.place(position)} the window covers "
        f"{seen.in_words(position)}; window times kernel adds up to {steps.sum_in_words(position)}. "
        f"{position + 1} of {count_of(steps.output.size, 'output')} of the {result} result are filled{so_far}."
    )
