"""Images side by side: digits with labels, or raced for; filters and what each makes of one; what is taken for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled import ops
from unrolled.show.picture import Explorer, Picture, Slider
from unrolled.show.sheet import Cells, Scale, Sheet, on_host
from unrolled.show.style import GREEN, INK, RED, SMALL, WIDTH
from unrolled.show.words import count_of, listing, number, percent, seconds, span, titled

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
    for name, values in (("labels", labels), ("predictions", predictions)):
        if values is not None:
            _check_count(name, values, len(pixels))
    shown = labels if predictions is None else predictions
    names, wrong = [str(value) for value in ([] if shown is None else shown)], [False] * len(pixels)
    if labels is not None and predictions is not None:
        wrong = [bool(bad) for bad in predictions != labels]
        names = [
            f"✗ {name}, is {label}" if bad else name for name, label, bad in zip(names, labels, wrong, strict=True)
        ]
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


def as_images(images: ArrayLike, most: int = MOST, where: str = "one picture") -> NDArray[np.float64]:
    """Return images as float64 (N, H, W), from (N, H, W), (N, 1, H, W), (1, H, W) or (H, W).

    ValueError for another shape, no pixels, or more images than there is room for.
    """
    pixels = on_host(images, dtype=np.float64)
    if pixels.ndim == 4 and pixels.shape[1] == 1:
        pixels = pixels[:, 0]
    if pixels.ndim == 2:
        pixels = pixels[None]
    if pixels.ndim != 3 or not pixels.size:
        raise ValueError(f"images must be (N, H, W) or (N, 1, H, W), got shape {np.shape(images)}")
    if len(pixels) > most:
        raise ValueError(f"images holds {len(pixels)} images; {where} has room for {most}: pass images[:{most}]")
    return pixels


def _check_count(name: str, values: Any, count: int) -> None:
    if len(values) != count:
        raise ValueError(f"{name} must hold one value an image: got {len(values)} for {count} images")


def _alt(pixels: NDArray[np.float64], labels: Any, predictions: Any, wrong: list[bool], title: str) -> str:
    count, height, width = pixels.shape
    text = titled(title, f"{count_of(count, 'image')} of {height} by {width} pixels", ":")
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
    (count, channels, height, width), responses = kernels.shape, None
    alt = titled(title, f"{count_of(count, 'filter')} of {height} by {width}, {count_of(channels, 'channel')}", ":")
    if image is not None:
        seen = on_host(image, dtype=np.float32)
        if seen.ndim != 3 or len(seen) != channels:
            raise ValueError(f"image must be ({channels}, H, W) for weight {kernels.shape}, got {seen.shape}")
        responses = np.asarray(ops.relu(ops.conv2d(seen[None], kernels, padding=padding))[0])
        silent = int((responses.reshape(count, -1).max(axis=1) <= 0).sum())
        alive = f"{silent} of them {'gives' if silent == 1 else 'give'} 0 everywhere" if silent else "each answers"
        alt += f", and what each gives on one image after a ReLU: {alive}"
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
    return Picture(sheet.figure(), f"{alt}.")


def filter_colours(kernel: NDArray[Any]) -> NDArray[np.float64]:
    """Return a filter (C, KH, KW) as RGBA (KH, KW, 4): one channel on a signed scale, three as red, green and blue."""
    limit = float(np.abs(kernel).max()) or 1.0
    if len(kernel) == 1:
        return Scale(limit, signed=True).colours(kernel[0].astype(np.float64))
    colours = np.ones((*kernel.shape[1:], 4))
    colours[..., :3] = (kernel.transpose(1, 2, 0) / limit + 1) / 2
    return colours


def difference(got: ArrayLike, expected: ArrayLike) -> Picture:
    """Draw two results of one shape, and where they differ: a small picture for the findings of a check.

    Of arrays with more than two axes, the first image that differs is drawn. NaN equals NaN. ValueError where shapes
    differ or there is nothing two-dimensional to show.
    """
    left, right = on_host(got, dtype=np.float64), on_host(expected, dtype=np.float64)
    if left.shape != right.shape or left.ndim < 2 or not left.size:
        raise ValueError(f"got and expected must be images of one shape, got {left.shape} and {right.shape}")
    mask = ~np.isclose(left, right, rtol=1e-4, atol=1e-6, equal_nan=True)
    first = int(mask.reshape(-1, *mask.shape[-2:]).any(axis=(1, 2)).argmax())
    index = tuple(int(i) for i in np.unravel_index(first, mask.shape[:-2])) if mask.ndim > 2 else ()
    name = f" {[*index]}" if index else ""
    where, scale = mask[index], Scale.of(np.stack([left[index], right[index]]))
    cells = Cells.fitting(where.shape, 1.9, 2.2, 0.34)
    step = max(cells.size[0], 1.4) + 0.25
    sheet = Sheet(0.45 + cells.size[1] + EDGE, EDGE + 3 * step)
    headings = f"yours{name}", "expected", f"✗ {count_of(int(where.sum()), 'difference')}"
    panels = [cells.at(EDGE + i * step, 0.4) for i in range(3)]
    for panel, heading in zip(panels, headings, strict=True):
        sheet.text_above(panel, heading, colour=RED if heading.startswith("✗") else INK)
    sheet.matrix(panels[0], left[index], scale)
    sheet.matrix(panels[1], right[index], scale)
    marked = sheet.fill_runs(panels[2], where, "#F6D3BD")
    if not sheet.numbers(panels[2], ["✗" if bad else "" for bad in where.ravel()], RED):
        sheet.hatch(marked, "xxxx", RED)
    sheet.rule(panels[2])
    if not mask.any():
        return Picture(sheet.figure(), f"Your result and the expected one, shape {left.shape}: no value differs.")
    differing = np.argwhere(where)
    place = [*index, *differing[0].tolist()]
    got_here, expected_here = left[tuple(place)], right[tuple(place)]
    here = f"In image{name} {len(differing)} of {where.size} differ" if index else "They lie"
    (top, first_column), ends = differing.min(axis=0).tolist(), (np.ptp(differing, axis=0) + 1).tolist()
    alt = (
        f"{int(mask.sum()):,} of {mask.size:,} values differ from the expected ones. {here} in "
        f"{span('row', top, ends[0])} and {span('column', first_column, ends[1])}; "
        f"first at {place}: got {got_here:.4g}, expected {expected_here:.4g}."
    )
    return Picture(sheet.figure(), alt)


# A race

MOST_RACING = 60  # digits that fit
MOMENTS = 48  # positions of the slider
UNDER, TOP = 0.19, 0.75  # inches; UNDER: below a digit
WAITING = 0.2  # ink of a digit whose turn has not come


@dataclass(frozen=True)
class Contestant:
    """A contestant: a name, seconds for one image, and a prediction for each image (N,)."""

    name: str
    seconds_per_image: float
    predictions: NDArray[Any]

    def done(self, elapsed: float) -> int:
        """Return how many images the contestant has finished after `elapsed` seconds."""
        return min(len(self.predictions), int(elapsed / self.seconds_per_image + 1e-9))

    @property
    def total(self) -> float:
        """Seconds for all images."""
        return len(self.predictions) * self.seconds_per_image


def race(images: ArrayLike, labels: ArrayLike, contestants: Mapping[str, tuple[float, ArrayLike]]) -> Explorer:
    """Draw a race of two on the same digits; the slider chooses the time since the start.

    images (N, H, W) or (N, 1, H, W) and labels (N,), N at most 60; contestants: name -> (measured seconds for one
    image, predictions (N,)). The slider's steps grow with time, so that a contestant a thousand times faster is still
    seen running. ValueError where counts do not fit.
    """
    pixels, truth = as_images(images, MOST_RACING, "the race"), on_host(labels)
    _check_count("labels", truth, len(pixels))
    runners = []
    for name, (per_image, predictions) in contestants.items():
        _check_count(f"predictions of {name!r}", guesses := on_host(predictions), len(truth))
        runners.append(Contestant(name, float(per_image), guesses))
    at, start = moments(runners)
    shades = np.stack([Scale.of(pixels).colours(pixels * ink) for ink in (WAITING, 1.0)])
    slider = Slider("time since the start", at, start, seconds, play=True)
    return Explorer(_draw_race, shades, truth, runners, elapsed=slider)


def moments(runners: list[Contestant]) -> tuple[list[float], int]:
    """Return the slider's times in seconds, and the index of the one at which the first contestant is done.

    They run from 0 to the end, each but that one a fixed factor after the one before.
    """
    first, last = min(r.seconds_per_image for r in runners), max(r.total for r in runners)
    finish = min(r.total for r in runners)
    at = sorted({0.0, *np.geomspace(first, last, MOMENTS - 2).tolist()[:-1], last, finish})
    return at, at.index(finish)


def _draw_race(shades: NDArray[np.float64], truth: NDArray[Any], runners: list[Contestant], elapsed: float) -> Picture:
    count = len(truth)
    columns = next(columns for columns in (5, 6, 8, 10) if count <= columns * 6)
    width = WIDTH / 2 - 2 * EDGE
    tile, rows = width / columns, -(-count // columns)
    sheet = Sheet(TOP + rows * (tile + UNDER) + 0.55)
    states = []
    for place, runner in enumerate(runners):
        left, done = EDGE + place * WIDTH / 2, runner.done(elapsed)
        sheet.text((left, 0.2), runner.name, bold=True, size=11)
        sheet.text((left, 0.42), _progress(runner, elapsed))
        states.append(f"{runner.name}: {_progress(runner, elapsed)}")
        if done:
            states[-1] += f", {(runner.predictions[:done] != truth[:done]).sum()} of them wrong"
            sheet.fill((left, 0.56, (width - 0.05) * (done / count), 0.09), GREEN)
        sheet.edge((left, 0.56, width - 0.05, 0.09), width=0.8)
        grid = Cells(left, TOP, rows, columns, tile, tile + UNDER)
        sheet.image(grid.frame, mosaic(np.concatenate([shades[1, :done], shades[0, done:]]), columns, UNDER / tile))
        for i in range(done):
            right = bool(runner.predictions[i] == truth[i])
            x, y = grid.centre(*divmod(i, columns))
            text = str(runner.predictions[i]) if right else f"✗ {runner.predictions[i]}"
            sheet.text((x, y + tile / 2), text, INK if right else RED, SMALL, "middle", not right)
    sheet.text((EDGE, sheet.height - 0.38), f"After {seconds(elapsed)}.", bold=True)
    sheet.text((EDGE, sheet.height - 0.16), _ratio(runners))
    alt = f"Race on the same digits after {seconds(elapsed)}. {listing(states)}. {_ratio(runners)}"
    return Picture(sheet.figure(), alt)


def mosaic(tiles: NDArray[np.float64], columns: int, below: float) -> NDArray[np.float64]:
    """Return images (N, H, W, 4) as one, in rows of `columns`, each over clear room of `below` times its height."""
    count, height, width, depth = tiles.shape
    rows, room = -(-count // columns), round(height * below)
    padded = np.zeros((rows * columns, height + room, width, depth))
    padded[:count, :height] = tiles
    grid = padded.reshape(rows, columns, height + room, width, depth).swapaxes(1, 2)
    return np.asarray(grid.reshape(rows * (height + room), columns * width, depth))


def _progress(runner: Contestant, elapsed: float) -> str:
    done, digits = runner.done(elapsed), count_of(len(runner.predictions), "digit")
    if done == len(runner.predictions):
        return f"all {digits} done after {seconds(runner.total)}"
    return f"{done} of {digits} done"


def _ratio(runners: list[Contestant]) -> str:
    fast, slow = sorted(runners, key=lambda runner: runner.seconds_per_image)
    ratio = slow.seconds_per_image / fast.seconds_per_image
    if ratio < 1.05:
        return f"{runners[0].name} and {runners[1].name} are equally fast."
    digits = number(round(ratio) if ratio >= 10 else round(ratio, 1))
    return f"One digit of {slow.name} takes as long as {digits} digits of {fast.name}."


# What a classifier takes for what

MOST_CLASSES = 12  # classes for which the cells have room
LISTED = 6  # pairs in words
SIDE, LEFT, CONFUSION_TOP = 3.6, 0.95, 0.6  # inches


def confusion(labels: ArrayLike, predictions: ArrayLike, names: Sequence[str] | None = None) -> Picture:
    """Draw how often each class (a row) was predicted as each class (a column), and list the usual mix-ups in words.

    labels, predictions: integers (N,) from 0 on; names: those of the classes, by default their numbers. ValueError for
    shapes that differ, no labels, labels or predictions without a class, or more than 12 classes.
    """
    truth, guess = on_host(labels), on_host(predictions)
    if truth.shape != guess.shape or truth.ndim != 1 or not truth.size:
        raise ValueError(f"labels and predictions must be (N,) alike, got {truth.shape} and {guess.shape}")
    count = int(max(truth.max(), guess.max())) + 1 if names is None else len(names)
    if min(truth.min(), guess.min()) < 0 or max(truth.max(), guess.max()) >= count or count > MOST_CLASSES:
        raise ValueError(
            f"labels and predictions must be 0 to {min(count, MOST_CLASSES) - 1}, at most {MOST_CLASSES} classes"
        )
    words = [str(name) for name in (range(count) if names is None else names)]
    counts = np.zeros((count, count), dtype=np.int64)
    np.add.at(counts, (truth, guess), 1)
    right, total = int(np.trace(counts)), int(counts.sum())
    score, share = f"{right:,} of {total:,} right", percent(right / total)
    wrong = counts * (1 - np.eye(count, dtype=np.int64))
    pairs = sorted(np.argwhere(wrong).tolist(), key=lambda pair: -wrong[tuple(pair)])
    lines = []
    for row, column in pairs[:LISTED]:
        article = "an" if words[row][:1].lower() in "8aeiou" else "a"
        lines.append(f"{article} {words[row]} taken for {words[column]}: {count_of(int(wrong[row, column]), 'time')}")
    if len(pairs) > LISTED:
        lines.append(f"and {sum(int(wrong[row, column]) for row, column in pairs[LISTED:])} more")
    cells = Cells.fitting(counts.shape, SIDE, SIDE, 0.45).at(LEFT, CONFUSION_TOP)
    sheet = Sheet(CONFUSION_TOP + cells.size[1] + 0.15)
    sheet.paint(cells, Scale(float(wrong.max()) or 1.0, signed=True).colours(wrong.astype(np.float64), 1.6))
    for i in range(count):
        sheet.fill(cells.box(i, i), "#CFEBE1")
        sheet.text((cells.left - 0.1, cells.centre(i, 0)[1]), words[i][:10], size=SMALL, anchor="right")
        sheet.text((cells.centre(0, i)[0], cells.top - 0.14), words[i][:4], size=SMALL, anchor="middle")
    sheet.rule(cells)
    sheet.numbers(cells, [str(value) if value else "" for value in counts.ravel()])
    sheet.text((cells.left, 0.17), "taken for ...")
    sheet.text((0.1, cells.top - 0.14), "a true ...")
    left = cells.right + 0.35
    sheet.text((left, CONFUSION_TOP + 0.1), score, GREEN, 11, bold=True)
    sheet.text((left, CONFUSION_TOP + 0.38), f"{share} of them, on the diagonal", size=SMALL)
    for place, text in enumerate(lines):
        sheet.text((left, CONFUSION_TOP + 0.82 + 0.26 * place), text, RED if place == 0 else INK, SMALL)
    alt = f"Confusion matrix: {score} ({share}). {'; '.join(lines) or 'no mix-ups'}."
    return Picture(sheet.figure(), alt)
