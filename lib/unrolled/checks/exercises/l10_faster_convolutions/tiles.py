"""A large image through a small transform: tiles, convolved one by one, whose results overlap."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from unrolled.checks.compare import Mismatch, mismatch
from unrolled.checks.spec import Function, Inputs, normals
from unrolled.device import Array


class SmallTransform:
    """Convolves a tile of at most `most` x `most` pixels with its kernel, in full: k - 1 rows and columns more."""

    def __init__(self, kernel: Array, most: int) -> None:
        self.kernel, self.most = kernel, most
        self.sizes: list[tuple[int, ...]] = []

    def __call__(self, tile: Array) -> Array:
        self.sizes.append(tile.shape)
        return full(tile, self.kernel)


def full(image: Array, kernel: Array) -> Array:
    """Return the full convolution (H + KH - 1, W + KW - 1) of an image (H, W): each pixel adds a flipped kernel."""
    y = np.zeros([size + k - 1 for size, k in zip(image.shape, kernel.shape, strict=True)], image.dtype)
    height, width = image.shape
    for i, row in enumerate(kernel):
        for j, value in enumerate(row):
            y[i : i + height, j : j + width] += value * image
    return y


def overlap_add(
    image: Array, kernel: int, step: int, convolve: Function, *, adds: bool = True, whole: bool = True
) -> Array:
    """Return the full convolution (H + kernel - 1, W + kernel - 1) of an image (H, W), from step x step pixels each.

    Mistakes are results put over each other, where nothing `adds`, and results of a tile that are not `whole`.
    """
    y = np.zeros([size + kernel - 1 for size in image.shape], image.dtype)
    for top in range(0, image.shape[0], step):
        for left in range(0, image.shape[1], step):
            tile = image[top : top + step, left : left + step]
            part = convolve(tile)
            height, width = part.shape if whole else tile.shape
            place = y[top : top + height, left : left + width]
            place[...] = part[:height, :width] + (place if adds else 0)
    return y


def drawn(rng: np.random.Generator, height: int, width: int, kernel: int, step: int) -> Inputs:
    """Draw an image, and a kernel in a transform for tiles of step x step pixels."""
    arrays = normals(rng, image=(height, width), weights=(kernel, kernel))
    convolve = SmallTransform(arrays["weights"], step)
    return {"image": arrays["image"], "kernel": kernel, "step": step, "convolve": convolve}


def any_image(rng: np.random.Generator) -> Inputs:
    """Draw an image that no number of tiles covers exactly."""
    step = int(rng.integers(4, 9))
    height, width = (int(step * rng.integers(2, 5) + rng.integers(1, step)) for _ in range(2))
    return drawn(rng, height, width, int(rng.integers(2, 6)), step)


def in_small_tiles(got: Any, expected: Any, inputs: Inputs) -> Mismatch | None:
    """Judge the values, and that no tile was larger than the transform."""
    sizes, step = inputs["convolve"].sizes, inputs["step"]
    found = mismatch(got, expected, 1e-4)
    if large := [size for size in sizes if max(size, default=0) > step]:
        line = f"you gave convolve a tile of {large[0]}; its transform has room for {step} x {step} (step)"
        return Mismatch((line, *(found.lines if found else ("the values are right",))))
    most = prod(-(-size // step) for size in inputs["image"].shape)  # so many tiles cover the image
    if found is None and len(sizes) > most:
        return Mismatch((f"right, but in {len(sizes)} tiles: {most} of step x step pixels cover the image",))
    return found
