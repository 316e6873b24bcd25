"""Images side by side: digits with labels, filters with what each makes of an image, two results that differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled import ops
from unrolled.show.picture import Picture
from unrolled.show.sheet import Cells, Scale, Sheet, on_host
from unrolled.show.style import INK, RED, SMALL, WIDTH
from unrolled.show.words import count_of, listing, span

MOST = 200  # images in one picture
LABEL = 0.22  # inches under a thumbnail
EDGE = 0.1
MOST_FILTERS, GAP, ROW_GAP = 64, 0.08, 0.16  # how many; inches between filters, and between rows
Labels = Sequence[Any] | NDArray[Any] | None


def images(
    images: ArrayLike, labels: Labels = None, predictions: Labels = None, columns: int = 10, title: str = ""
) -> Picture:
    """Draw a grid of images (N, H, W) or (N, 1, H, W), or one image, each over its label.

    With predictions, these are the labels; a wrong one is marked ✗, with the true label beside it. ValueError where
    counts differ or there are more than 200.
    """
    pixels = as_images(images)
    labels, predictions = (None if given is None else on_host(given) for given in (labels, predictions))
    names, wrong = captions(len(pixels), labels, predictions)
    columns = min(columns, len(pixels))
    tile = min((WIDTH - 2 * EDGE) / columns, 0.9 if columns > 4 else 1.6)
    rows, height = -(-len(pixels) // columns), tile + (LABEL if names else 0.0)
    top = 0.4 if title else EDGE
    sheet = Sheet(top + rows * height + EDGE, max(columns * tile + 2 * EDGE, 3.5 if title else 0.0))
    sheet.text((EDGE, 0.2), title, size=11)
    for i, image in enumerate(Scale.of(pixels).colours(pixels)):
        row, column = divmod(i, columns)
        box = (EDGE + column * tile, top + row * height, tile * 0.94, tile * 0.94)
        sheet.tile(box, image)
        if names:
            middle = (box[0] + box[2] / 2, box[1] + box[3] + LABEL / 2)
            sheet.text(middle, names[i], RED if wrong[i] else INK, SMALL, "middle", wrong[i])
    return Picture(sheet.figure(), _alt(pixels, labels, predictions, wrong, title))


def as_images(images: ArrayLike) -> NDArray[np.float64]:
    """Return images as float64 (N, H, W), from (N, H, W), (N, 1, H, W), (1, H, W) or (H, W).

    ValueError for another shape, no pixels, or more than 200 images.
    """
    pixels = on_host(images, dtype=np.float64)
    if pixels.ndim == 4 and pixels.shape[1] == 1:
        pixels = pixels[:, 0]
    if pixels.ndim == 2:
        pixels = pixels[None]
    if pixels.ndim != 3 or not pixels.size:
        raise ValueError(f"images must be (N, H, W) or (N, 1, H, W), got shape {np.shape(images)}")
    if len(pixels) > MOST:
        raise ValueError(f"images holds {len(pixels)} images; one picture has room for {MOST}: pass images[:{MOST}]")
    return pixels


def captions(count: int, labels: Any, predictions: Any) -> tuple[list[str], list[bool]]:
    """Return the text under each image, and whether its prediction is wrong.

    Without labels and predictions there are no texts. ValueError where there is not one value for each image.
    """
    for name, given in (("labels", labels), ("predictions", predictions)):
        if given is not None and len(given) != count:
            raise ValueError(f"{name} must hold one value an image: got {len(given)} for {count} images")
    if predictions is None or labels is None:
        given = labels if predictions is None else predictions
        return [str(value) for value in ([] if given is None else given)], [False] * count
    wrong = [bool(prediction != label) for prediction, label in zip(predictions, labels, strict=True)]
    rows = zip(predictions, labels, wrong, strict=True)
    return [f"✗ {guess}, is {label}" if bad else str(guess) for guess, label, bad in rows], wrong


def _alt(pixels: NDArray[np.float64], labels: Any, predictions: Any, wrong: list[bool], title: str) -> str:
    count, height, width = pixels.shape
    text = f"{title}: " if title else ""
    text += f"{count_of(count, 'image')} of {height} by {width} pixels"
    if predictions is not None:
        text += f", predicted {listing([str(value) for value in predictions])}"
        if labels is not None:
            slips = [f"{predictions[i]} for a {labels[i]}" for i in range(count) if wrong[i]]
            text += f"; {len(slips)} wrong" + (f": {listing(slips)}" if slips else "")
    elif labels is not None:
        text += f", labelled {listing([str(value) for value in labels])}"
    return text + "."


def filters(weight: ArrayLike, image: ArrayLike | None = None, padding: int = 0, title: str = "") -> Picture:
    """Draw the filters of weight (O, C, KH, KW), and below each its response to an image (C, H, W), after a ReLU.

    Filters of one channel are drawn in purple (below 0) and orange (above), each on its own scale; filters of three
    channels as colours. ValueError for other shapes, more than 64 filters, or an image with other channels.
    """
    kernels = on_host(weight, dtype=np.float32)
    if kernels.ndim != 4 or kernels.shape[1] not in (1, 3) or not 0 < len(kernels) <= MOST_FILTERS:
        raise ValueError(f"weight must be (O, 1 or 3, KH, KW) with at most {MOST_FILTERS} filters, got {kernels.shape}")
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
    return Picture(sheet.figure(), _filters_alt(kernels, responses, title))


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


def _filters_alt(kernels: NDArray[Any], responses: NDArray[Any] | None, title: str) -> str:
    _, channels, height, width = kernels.shape
    text = f"{title}: " if title else ""
    text += f"{count_of(len(kernels), 'filter')} of {height} by {width}, {count_of(channels, 'channel')}"
    if responses is None:
        return f"{text}."
    silent = int((responses.reshape(len(responses), -1).max(axis=1) <= 0).sum())
    alive = f"{silent} of them {'gives' if silent == 1 else 'give'} 0 everywhere" if silent else "each answers"
    return f"{text}, and what each gives on one image after a ReLU: {alive}."


def difference(
    got: ArrayLike, expected: ArrayLike, differs: ArrayLike | None = None, rtol: float = 1e-4, atol: float = 1e-6
) -> Picture:
    """Draw two results of one shape, and where they differ: a small picture for the findings of a check.

    Of arrays with more than two axes, the first image that differs is drawn. differs: a mask of that shape, where the
    caller has a tolerance of its own; else `numpy.isclose` with rtol and atol (NaN equals NaN) decides. ValueError
    where shapes differ or there is nothing two-dimensional to show.
    """
    left, right = on_host(got, dtype=np.float64), on_host(expected, dtype=np.float64)
    if left.shape != right.shape or left.ndim < 2 or not left.size:
        raise ValueError(f"got and expected must be images of one shape, got {left.shape} and {right.shape}")
    if differs is None:
        mask = ~np.isclose(left, right, rtol=rtol, atol=atol, equal_nan=True)
    else:
        mask = np.broadcast_to(on_host(differs, dtype=bool), left.shape)
    index = first_difference(mask)
    where, scale = mask[index], Scale.of(np.stack([left[index], right[index]]))
    cells = Cells.fitting(where.shape, 1.9, 2.2, 0.34)
    step = max(cells.size[0], 1.4) + 0.25
    sheet = Sheet(0.45 + cells.size[1] + EDGE, EDGE + 3 * step)
    headings = f"yours{_name(index)}", "expected", f"✗ {count_of(int(where.sum()), 'difference')}"
    panels = [cells.at(EDGE + i * step, 0.4) for i in range(3)]
    for panel, heading in zip(panels, headings, strict=True):
        sheet.text_above(panel, heading, colour=RED if heading.startswith("✗") else INK)
    sheet.matrix(panels[0], left[index], scale)
    sheet.matrix(panels[1], right[index], scale)
    marked = sheet.fill_runs(panels[2], where, "#F6D3BD")
    if not sheet.numbers(panels[2], ["✗" if bad else "" for bad in where.ravel()], RED):
        sheet.hatch(marked, "xxxx", RED)
    sheet.rule(panels[2])
    return Picture(sheet.figure(), _difference_alt(mask, index, left, right))


def first_difference(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the leading indices of the first image of mask (..., H, W) with a true value; of the first if none has."""
    images = mask.reshape(-1, *mask.shape[-2:]).any(axis=(1, 2))
    return tuple(int(i) for i in np.unravel_index(int(images.argmax()), mask.shape[:-2])) if mask.ndim > 2 else ()


def _name(index: tuple[int, ...]) -> str:
    return f" [{', '.join(str(i) for i in index)}]" if index else ""


def _difference_alt(
    mask: NDArray[np.bool_], index: tuple[int, ...], got: NDArray[np.float64], expected: NDArray[np.float64]
) -> str:
    if not mask.any():
        return f"Your result and the expected one, shape {got.shape}: no value differs."
    first = (*index, *(int(i) for i in np.argwhere(mask[index])[0]))
    rows, columns = np.nonzero(mask[index])
    here = f"In image{_name(index)} {int(mask[index].sum())} of {mask[index].size} differ" if index else "They lie"
    place = (span(noun, int(at.min()), int(np.ptp(at)) + 1) for noun, at in (("row", rows), ("column", columns)))
    return (
        f"{int(mask.sum()):,} of {mask.size:,} values differ from the expected ones. {here} in {' and '.join(place)}; "
        f"first at [{', '.join(map(str, first))}]: got {got[first]:.4g}, expected {expected[first]:.4g}."
    )
