"""A convolution backward: each gradient by an output is shared out to the image's gradient and to the kernel's."""

from __future__ import annotations

from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.cells import Cells, Scale, on_host
from unrolled.show.convolution import Steps
from unrolled.show.explorer import Explorer, Slider
from unrolled.show.folding import added
from unrolled.show.sheet import Sheet
from unrolled.show.style import RED, WIDTH
from unrolled.show.windows import Pair
from unrolled.show.words import number

Values = NDArray[np.float64]

FEW = 25  # so many values can be read out
TOP, EDGE, GAP, BETWEEN = 0.5, 0.1, 0.42, 0.6  # inches
LARGE, SMALL, CELL = (1.75, 1.75), (1.25, 1.25), 0.36  # largest sizes


def conv2d_backward(
    image: ArrayLike, kernel: ArrayLike, grad: ArrayLike, stride: int | Pair = 1, padding: int | Pair = 0
) -> Explorer:
    """Draw the way back through a convolution, one output at a time; a slider chooses the output.

    image (H, W), kernel (KH, KW), grad (OH, OW), the gradient by the output. `ops.conv2d_backward` does so for all at
    once. ValueError where the shapes do not fit, or for several channels.
    """
    steps, given = Steps.of(image, kernel, stride, padding, 0.0), on_host(grad, dtype=np.float64)
    if len(steps.weight) > 1:
        raise ValueError(f"image has {len(steps.weight)} channels; the picture has room for one")
    if given.shape != steps.output.shape:
        raise ValueError(f"grad has shape {given.shape}; the output of this convolution has {steps.output.shape}")
    seen = steps.seen
    slider = Slider("output", range(seen.count), seen.telling(np.abs(given)), seen.place, play=True)
    return Explorer(partial(_draw, steps, given), partial(_alt, steps, given), position=slider)


def shared(steps: Steps, grad: Values, last: int) -> tuple[Values, Values]:
    """Return what the outputs 0 to `last` add up to: the gradients by the padded image and by the kernel (KH, KW)."""
    by_image = added(steps.seen, np.outer(steps.weight, grad), last)
    patches = steps.seen.patches.reshape(steps.seen.count, *steps.seen.kernel_size)[: last + 1]
    return by_image, np.tensordot(grad.ravel()[: last + 1], patches, 1)


def _layout(steps: Steps) -> tuple[list[list[Cells]], float]:
    """Both rows, each of an array, its product with a gradient, and a sum; before them grad; and the sheet's height."""
    padded, kernel = steps.seen.padded.shape[1:], steps.seen.kernel_size
    shapes = ((kernel, SMALL), (kernel, SMALL), (padded, LARGE)), ((padded, LARGE), (kernel, SMALL), (kernel, SMALL))
    grad = Cells.fitting(steps.output.shape, *SMALL, CELL)
    rows = [[Cells.fitting(shape, *most, CELL) for shape, most in row] for row in shapes]
    widths = [max(row[i].size[0] for row in rows) for i in range(3)]
    left = max(EDGE, (WIDTH - grad.size[0] - sum(widths) - 3 * GAP) / 2)
    top, placed = TOP, []
    for row in rows:
        tall, x = max(cells.size[1] for cells in row), left + grad.size[0] + GAP
        line = []
        for cells, width in zip(row, widths, strict=True):
            line.append(cells.at(x + (width - cells.size[0]) / 2, top + (tall - cells.size[1]) / 2))
            x += width + GAP
        placed.append(line)
        top += tall + BETWEEN
    return [[grad.at(left, TOP + (top - BETWEEN - TOP - grad.size[1]) / 2)], *placed], top - BETWEEN + 2 * EDGE


def _draw(steps: Steps, grad: Values, position: int) -> Figure:
    ((given,), above, below), height = _layout(steps)
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
    return sheet.figure()


def _alt(steps: Steps, grad: Values, position: int) -> str:
    seen = steps.seen
    by_image, by_kernel = shared(steps, grad, position)
    far = (
        f" The gradient by the {name} so far, row by row: {'; '.join(', '.join(map(number, row)) for row in values)}."
        for name, values in (("kernel", by_kernel.tolist()), ("image", by_image.tolist()))
        if len(values) * len(values[0]) <= FEW
    )
    shape, kernel = ("{} by {}".format(*pair) for pair in (seen.size, seen.kernel_size))
    return (
        f"The way back through a convolution of an image of {shape} with a kernel of {kernel}. "
        f"The gradient by output {seen.place(position)} is {number(float(grad.flat[position]))}. That many times the "
        f"kernel is added to the gradient by the image, at {seen.in_words(position)}; that many times the window there "
        f"is added to the gradient by the kernel.{''.join(far)}"
    )
