"""Lesson 00: one practice exercise, so that the whole path is walked once."""

from __future__ import annotations

import numpy as np

from unrolled.checks.domain import edge_size
from unrolled.checks.mistakes import result
from unrolled.checks.spec import Draw, Inputs, Mistake, Spec, Speed, case, random_case
from unrolled.device import Array


def _pixels(n: int, h: int, w: int) -> Draw:
    """Draw images (n, 1, h, w) with pixels from 0 to 1, as the digits have."""
    return Draw(lambda rng: rng.random((n, 1, h, w), dtype=np.float32))


def _any_digits(rng: np.random.Generator) -> Inputs:
    """Draw images of any sizes with pixels from 0 to 1, many of them alike; in float64 too small for float32."""
    n, h, w = (edge_size(rng, 9) for _ in range(3))
    images, small = rng.integers(0, 9, (n, 1, h, w)) / 8, rng.random() < 0.5
    return {"images": images / 2.0**200 if small else images.astype(np.float32)}


def ink_in_one_expression(images: Array) -> Array:
    """Return the mean over all pixels of each of the images (N, 1, H, W): (N,)."""
    return images.mean(axis=(1, 2, 3))


def ink_in_loops(images: Array) -> Array:
    """Return what `ink_in_one_expression` does, pixel by pixel, as the notebook shows it."""
    n, _, height, width = images.shape
    result = np.zeros(n, dtype=images.dtype)
    for image in range(n):
        total = 0.0
        for row in range(height):
            for column in range(width):
                total += images[image, 0, row, column]
        result[image] = total / (height * width)
    return result


ink = Spec(
    reference=ink_in_one_expression,
    cases=[
        case("two images of 2 x 2 pixels", images=np.array([[[[0, 1], [1, 1]]], [[[0, 0.5], [0, 0]]]], np.float32)),
        case("five images, 4 rows of 7", images=_pixels(5, 4, 7)),
        case("six images, 7 rows of 4", images=_pixels(6, 7, 4)),
        case("float64 in, float64 out", images=np.array([[[[0.25, 1, 1]]], [[[0, 0, 0.1]]]])),
    ],
    domain=random_case("images of any sizes", _any_digits),
    points=1,
    hints=(
        "NumPy's mean can average over some of the axes and keep the others. Which axis is to be kept?",
        "images is (N, 1, H, W) and the result is (N,). So axis 0 stays and axes 1, 2 and 3 go. "
        "The argument `axis` of mean takes a tuple.",
        "return images.mean(axis=(…)), with the three axes that go in place of the dots",
    ),
    mistakes=[
        Mistake("this is one mean over everything: give `axis`", lambda images: images.mean()),
        Mistake("this is a sum: the mean divides by the number of pixels", lambda images: images.sum(axis=(1, 2, 3))),
        Mistake("one axis is left over: average over axes 1, 2 and 3 at once", lambda images: images.mean(axis=(2, 3))),
        Mistake("the columns are left over: average over the last axis too", lambda images: images.mean(axis=(1, 2))),
        Mistake("this averages over the images (axis 0): the images are what must stay", lambda images: images.mean(0)),
        result("every image keeps empty axes behind it: leave out keepdims", lambda y: y[:, None, None, None]),
    ],
    # No points: the ratio is there to be looked at.
    speed=Speed(
        baseline=ink_in_loops,
        inputs={"images": _pixels(100, 28, 28)},
        at_least=5,
        points=0,
        against="the loop over pixels, on 100 digits",
        advice="one call of mean, over three axes, takes all images at once",
        loops=False,
    ),
)
