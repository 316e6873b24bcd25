"""A window stepping over an image: the convolution, forward and backward.

Backward, each gradient by an output is shared out to the image's gradient and to the kernel's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.ops.arguments import pair
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Cells, Scale, Sheet, on_host
from unrolled.show.style import BLUE, RED, SMALL, WIDTH
from unrolled.show.words import count_of, listing, number, span

# The windows that a kernel sees, as numbers, in words and drawn

MOST_CHANNELS = 4
PADDING = "#B0B0B0"  # hatching that leaves numbers readable

Pair = tuple[int, int]


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
    (kh, kw), (sh, sw) = pair("kernel_size", kernel_size, 1), pair("stride", stride, 1)
    (ph, pw), (height, width) = pair("padding", padding), channels.shape[1:]
    padded = np.pad(channels, ((0, 0), (ph, ph), (pw, pw)))
    if kh > padded.shape[1] or kw > padded.shape[2]:
        raise ValueError(f"kernel_size {(kh, kw)} is larger than the padded image {padded.shape[1:]}")
    views = np.lib.stride_tricks.sliding_window_view(padded, (kh, kw), axis=(1, 2))
    patches = views[:, ::sh, ::sw].transpose(1, 2, 0, 3, 4)
    inside = np.pad(np.ones((height, width), dtype=bool), ((ph, ph), (pw, pw)))
    return Windows(padded, inside, patches, (height, width), (kh, kw), (sh, sw), (ph, pw))


Values = NDArray[np.float64]

EDGE = 0.1  # inches

# Forward and backward

FEW, FEW_BACK = 16, 25  # so many numbers can be read out, forward and backward
GAP = 0.27  # inches between panels, with room for a sign
HEADING = 0.55
ROW_HEIGHT = {1: 2.35, 2: 1.75, 3: 1.5, 4: 1.3}  # inches for a channel, by their number
TOP, BACK_GAP, BETWEEN = 0.5, 0.42, 0.6  # inches, on the way back
LARGE, TINY, CELL = (1.75, 1.75), (1.25, 1.25), 0.36  # largest sizes there


def convolution(image: ArrayLike, kernel: ArrayLike, stride: int | Pair = 1, padding: int | Pair = 0) -> Explorer:
    """Draw how a kernel steps over an image; a slider chooses the output position.

    image (H, W) or (C, H, W); kernel (KH, KW) or (C, KH, KW); stride and padding: int or pair, as in `ops.conv2d`.
    As everywhere in deep learning the kernel is not flipped. ValueError where the shapes do not fit.
    """
    steps = Steps.of(image, kernel, stride, padding)
    seen, start = steps.seen, steps.seen.start_position(np.abs(steps.output))
    slider = Slider("output position", range(seen.count), start, seen.place, play=True)
    return Explorer(_draw, steps, position=slider)


def conv2d_backward(
    image: ArrayLike, kernel: ArrayLike, grad: ArrayLike, stride: int | Pair = 1, padding: int | Pair = 0
) -> Explorer:
    """Draw the way back through a convolution, one output at a time; a slider chooses the output.

    image (H, W), kernel (KH, KW), grad (OH, OW), the gradient by the output. `ops.conv2d_backward` does so for all at
    once. ValueError where the shapes do not fit, or for several channels.
    """
    steps, given = Steps.of(image, kernel, stride, padding), on_host(grad, dtype=np.float64)
    if len(steps.weight) > 1:
        raise ValueError(f"image has {len(steps.weight)} channels; the picture has room for one")
    if given.shape != steps.output.shape:
        raise ValueError(f"grad has shape {given.shape}; the output of this convolution has {steps.output.shape}")
    seen = steps.seen
    slider = Slider("output", range(seen.count), seen.start_position(np.abs(given)), seen.place, play=True)
    return Explorer(_draw_back, steps, given, position=slider)


@dataclass(frozen=True)
class Steps:
    """A convolution, position by position: weight (C, KH, KW), output (OH, OW)."""

    seen: Windows
    weight: Values
    output: Values

    @classmethod
    def of(cls, image: ArrayLike, kernel: ArrayLike, stride: Any, padding: Any) -> Steps:
        weight = as_channels(kernel, "kernel")
        seen = windows(image, weight.shape[1:], stride, padding)
        if len(weight) != len(seen.padded):
            raise ValueError(f"kernel has {len(weight)} channels, image {len(seen.padded)}; they must be equal")
        return cls(seen, weight, np.einsum("ijchw,chw->ij", seen.patches, weight))

    def patch(self, position: int) -> Values:
        """Return what the window covers at this position: (C, KH, KW)."""
        return np.asarray(self.seen.patches[self.seen.position(position)])

    def channel_sums(self, position: int) -> list[float]:
        """Return what each channel adds to the output at this position."""
        return [float(value) for value in (self.patch(position) * self.weight).sum(axis=(1, 2))]

    def sum_in_words(self, position: int) -> str:
        """Return the sum that makes this output, as in "14 + 9 + 16 = 39"; only the output if it has a single term."""
        terms = [number(value) for value in self.channel_sums(position)]
        total = number(float(self.output.flat[position]))
        return f"{' + '.join(terms)} = {total}".replace("+ -", "− ") if len(terms) > 1 else total


def shared(steps: Steps, grad: Values, last: int) -> tuple[Values, Values]:
    """Return what the outputs 0 to `last` add up to: the gradients by the padded image and by the kernel (KH, KW)."""
    patches = steps.seen.patches.reshape(steps.seen.count, *steps.seen.kernel_size)[: last + 1]
    return added(steps.seen, np.outer(steps.weight, grad), last), np.tensordot(grad.ravel()[: last + 1], patches, 1)


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
    result = output.at(first + 3 * step, (inputs[0].top + inputs[-1].bottom) / 2 - output.size[1] / 2)
    height = max(inputs[-1].bottom, panels[-1][0].bottom + 0.25, result.bottom + 0.4) + (0.25 if channels > 1 else 0.1)
    return inputs, panels, result, height


def _draw(steps: Steps, position: int) -> Picture:
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
    return Picture(sheet.figure(), _alt(steps, position))


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


def _layout_back(steps: Steps) -> tuple[list[list[Cells]], float]:
    """Both rows, each of an array, its product with a gradient, and a sum; before them grad; and the sheet's height."""
    padded, kernel = steps.seen.padded.shape[1:], steps.seen.kernel_size
    shapes = (
        ((kernel, TINY), (kernel, TINY), (padded, LARGE)),
        ((padded, LARGE), (kernel, TINY), (kernel, TINY)),
    )
    grad = Cells.fitting(steps.output.shape, *TINY, CELL)
    rows = [[Cells.fitting(shape, *most, CELL) for shape, most in row] for row in shapes]
    widths = [max(row[i].size[0] for row in rows) for i in range(3)]
    left = max(EDGE, (WIDTH - grad.size[0] - sum(widths) - 3 * BACK_GAP) / 2)
    top, placed = TOP, []
    for row in rows:
        tall, x = max(cells.size[1] for cells in row), left + grad.size[0] + BACK_GAP
        line = []
        for cells, width in zip(row, widths, strict=True):
            line.append(cells.at(x + (width - cells.size[0]) / 2, top + (tall - cells.size[1]) / 2))
            x += width + BACK_GAP
        placed.append(line)
        top += tall + BETWEEN
    return [[grad.at(left, TOP + (top - BETWEEN - TOP - grad.size[1]) / 2)], *placed], top - BETWEEN + 2 * EDGE


def _draw_back(steps: Steps, grad: Values, position: int) -> Picture:
    ((given,), above, below), height = _layout_back(steps)
    sheet, seen, g = Sheet(height), steps.seen, float(grad.flat[position])
    kernel, patch = steps.weight[0], steps.patch(position)[0]
    by_image, by_kernel = shared(steps, grad, position)
    all_by_image, all_by_kernel = shared(steps, grad, seen.count - 1)
    sheet.matrix(given, grad, Scale.of(grad))
    sheet.outline(given.box(*seen.position(position)), RED)
    image_scale = Scale.of(np.append(np.outer(kernel, grad), all_by_image))
    kernel_scale = Scale.of(np.append(seen.patches * np.abs(grad).max(), all_by_kernel))
    sheet.matrix(above[0], kernel, Scale.of(kernel))
    sheet.matrix(above[1], g * kernel, image_scale)
    seen.draw_image(sheet, above[2], by_image, image_scale, position, RED)
    seen.draw_channel(sheet, below[0], 0, position)
    sheet.matrix(below[1], g * patch, kernel_scale)
    sheet.matrix(below[2], by_kernel, kernel_scale)
    for cells in (above[1], below[1], below[2]):
        sheet.outline(cells.frame, RED)
    for row in (above, below):
        sheet.sign(row[0], row[1])
        sheet.sign(row[1], row[2], "+", colour=RED, size=14, bold=True)
    times = f"times {number(g)}"
    headings = (
        (given, "gradient\nby output"),
        *zip(above, ("kernel", f"kernel {times}", "gradient by image, so far"), strict=True),
        *zip(below, ("image", f"window {times}", "gradient by\nkernel, so far"), strict=True),
    )
    for cells, text in headings:
        sheet.text_above(cells, text)
    return Picture(sheet.figure(), _alt_back(steps, grad, position))


def _alt_back(steps: Steps, grad: Values, position: int) -> str:
    seen = steps.seen
    by_image, by_kernel = shared(steps, grad, position)
    far = (
        f" The gradient by the {name} so far, row by row: {rows_in_words(values)}."
        for name, values in (("kernel", by_kernel), ("image", by_image))
        if values.size <= FEW_BACK
    )
    shape, kernel = ("{} by {}".format(*pair) for pair in (seen.size, seen.kernel_size))
    return (
        f"The way back through a convolution of an image of {shape} with a kernel of {kernel}. "
        f"The gradient by output {seen.place(position)} is {number(float(grad.flat[position]))}. That many times the "
        f"kernel is added to the gradient by the image, at {seen.in_words(position)}; that many times the window there "
        f"is added to the gradient by the kernel.{''.join(far)}"
    )


def added(seen: Windows, matrix: Values, last: int) -> Values:
    """Return the padded image (H + 2 PH, W + 2 PW) once the columns 0 to `last` have been added."""
    image, (kh, kw) = np.zeros(seen.padded.shape[1:]), seen.kernel_size
    for column in range(last + 1):
        top, left = seen.corner(column)
        image[top : top + kh, left : left + kw] += matrix[:, column].reshape(kh, kw)
    return image


def rows_in_words(values: Values) -> str:
    """Return a matrix in words, row by row."""
    return "; ".join(", ".join(map(number, row)) for row in values.tolist())
