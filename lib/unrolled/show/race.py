"""Contestants racing on the same digits: how far each is after a given time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from unrolled.show.images import as_images
from unrolled.show.picture import Explorer, Slider
from unrolled.show.sheet import Cells, Scale, Sheet, on_host
from unrolled.show.style import GREEN, INK, RED, SMALL, WIDTH
from unrolled.show.words import count_of, listing, number, seconds

MOST = 60  # digits that fit
MOMENTS = 48  # positions of the slider
EDGE, LABEL, TOP = 0.1, 0.19, 0.75  # inches
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
    seen running. ValueError where counts do not fit, or seconds are not above 0.
    """
    pixels, truth = as_images(images), on_host(labels)
    if len(pixels) > MOST:
        raise ValueError(f"images holds {len(pixels)} images; the race has room for {MOST}: pass images[:{MOST}]")
    if len(contestants) != 2:
        raise ValueError(f"contestants must be two, got {len(contestants)}")
    runners = []
    for name, (per_image, predictions) in contestants.items():
        guesses = on_host(predictions)
        if len(guesses) != len(truth):
            got = f"{len(guesses)} for {len(truth)}"
            raise ValueError(f"predictions of {name!r} must hold one value an image: got {got}")
        if not per_image > 0:
            raise ValueError(f"seconds of {name!r} must be above 0, got {per_image}")
        runners.append(Contestant(name, float(per_image), guesses))
    if len(truth) != len(pixels):
        raise ValueError(f"labels must hold one value an image: got {len(truth)} for {len(pixels)} images")
    at, start = moments(runners)
    shades = np.stack([Scale.of(pixels).colours(pixels * ink) for ink in (WAITING, 1.0)])
    slider = Slider("time since the start", at, start, seconds, play=True)
    return Explorer(partial(_draw, shades, truth, runners), partial(_alt, truth, runners), elapsed=slider)


def moments(runners: list[Contestant]) -> tuple[list[float], int]:
    """Return the slider's times in seconds, and the index of the one at which the first contestant is done.

    They run from 0 to the end, each but that one a fixed factor after the one before.
    """
    first, last = min(r.seconds_per_image for r in runners), max(r.total for r in runners)
    finish = min(r.total for r in runners)
    at = sorted({0.0, *np.geomspace(first, last, MOMENTS - 2).tolist()[:-1], last, finish})
    return at, at.index(finish)


def _draw(shades: NDArray[np.float64], truth: NDArray[Any], runners: list[Contestant], elapsed: float) -> Figure:
    count = len(truth)
    columns = next(columns for columns in (5, 6, 8, 10) if count <= columns * 6)
    width = WIDTH / 2 - 2 * EDGE
    tile, rows = width / columns, -(-count // columns)
    sheet = Sheet(TOP + rows * (tile + LABEL) + 0.55)
    for place, runner in enumerate(runners):
        left, done = EDGE + place * WIDTH / 2, runner.done(elapsed)
        sheet.text((left, 0.2), runner.name, bold=True, size=11)
        sheet.text((left, 0.42), _progress(runner, elapsed))
        if done:
            sheet.fill((left, 0.56, (width - 0.05) * (done / count), 0.09), GREEN)
        sheet.edge((left, 0.56, width - 0.05, 0.09), width=0.8)
        grid = Cells(left, TOP, rows, columns, tile, tile + LABEL)
        sheet.image(grid.frame, mosaic(np.concatenate([shades[1, :done], shades[0, done:]]), columns, LABEL / tile))
        for i in range(done):
            right = bool(runner.predictions[i] == truth[i])
            x, y = grid.centre(*divmod(i, columns))
            text = str(runner.predictions[i]) if right else f"✗ {runner.predictions[i]}"
            sheet.text((x, y + tile / 2), text, INK if right else RED, SMALL, "middle", not right)
    sheet.text((EDGE, sheet.height - 0.38), f"After {seconds(elapsed)}.", bold=True)
    sheet.text((EDGE, sheet.height - 0.16), _ratio(runners))
    return sheet.figure()


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


def _alt(truth: NDArray[Any], runners: list[Contestant], elapsed: float) -> str:
    states = []
    for runner in runners:
        done = runner.done(elapsed)
        of_them = f", {(runner.predictions[:done] != truth[:done]).sum()} of them wrong" if done else ""
        states.append(f"{runner.name}: {_progress(runner, elapsed)}{of_them}")
    return f"Race on the same digits after {seconds(elapsed)}. {listing(states)}. {_ratio(runners)}"
