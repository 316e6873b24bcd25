"""Images made from images: ZCA whitening, pixels without correlation as close to the images as that allows; shifts."""

from __future__ import annotations

from operator import index

import numpy as np
from numpy.typing import NDArray

from unrolled.device import Array, array_module, to_device

Images = NDArray[np.float32]
_ROWS = 1000  # images taken at once, so that no second copy of all images is made in another type


def zca_whiten(train_images: Images, *others: Images, epsilon: float = 1e-2) -> tuple[Images, ...]:
    """Return the images (N, ...) and the others, whitened by the mean and the covariance of the first alone.

    With mean m and covariance C = U diag(s) U^T of the train images as rows of D pixels, each image x becomes
    (x - m) W with W = U diag(1 / sqrt(s + epsilon)) U^T, which is symmetric (A. Bell and T. Sejnowski 1997, "The
    independent components of natural scenes are edge filters"; A. Krizhevsky 2009, "Learning multiple layers of
    features from tiny images", appendix A). `epsilon` keeps directions that hardly vary, such as noise, from being
    blown up; in squared pixels. float32 in and out, all in one tuple, also for one argument.

    40,000 images of CIFAR-10 (D = 3072) take about 20 seconds on one core.
    Raises ValueError for fewer than 2 train images, images of another shape, and an epsilon that is not positive.
    """
    if len(train_images) < 2:
        raise ValueError(f"train_images has shape {train_images.shape}; expected at least 2 images")
    if not epsilon > 0:
        raise ValueError(f"epsilon is {epsilon}; expected more than 0")
    for images in others:
        if images.shape[1:] != train_images.shape[1:]:
            raise ValueError(
                f"others has shape {images.shape}; expected images as in train_images, {train_images.shape}"
            )
    mean, matrix = zca_matrix(train_images, epsilon)
    return tuple(_transformed(images, mean, matrix) for images in (train_images, *others))


def zca_matrix(images: Images, epsilon: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the mean (D,) and the whitening matrix (D, D) of images (N, ...) of D pixels each; see `zca_whiten`."""
    rows = images.reshape(len(images), -1)
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    covariance = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, len(rows), _ROWS):
        centred = rows[start : start + _ROWS] - mean
        covariance += centred.T @ centred
    covariance /= len(rows) - 1
    variances, directions = np.linalg.eigh(covariance)
    scaled = directions / np.sqrt(np.maximum(variances, 0) + epsilon)
    return mean, (scaled @ directions.T).astype(np.float32)


def _transformed(images: Images, mean: NDArray[np.float32], matrix: NDArray[np.float32]) -> Images:
    rows = images.reshape(len(images), -1)
    white = np.empty(rows.shape, np.float32)
    for start in range(0, len(rows), _ROWS):
        np.matmul(rows[start : start + _ROWS] - mean, matrix, out=white[start : start + _ROWS])
    return white.reshape(images.shape)


def shifted(images: Array, rng: np.random.Generator, most: int = 2) -> Array:
    """Return images (N, C, H, W), each moved by its own whole numbers of pixels; zeros move in.

    The numbers are drawn from -most to most; the same rng gives the same shifts on every device. The dtype stays; the
    images are not changed. Raises ValueError for fewer or more than four axes and for a negative `most`.
    """
    most = index(most)
    if images.ndim != 4:
        raise ValueError(f"images has shape {images.shape}; expected 4 axes (N, C, H, W)")
    if most < 0:
        raise ValueError(f"most is {most}; expected at least 0")
    module, (count, channels, height, width) = array_module(images), images.shape
    framed = module.zeros((count, channels, height + 2 * most, width + 2 * most), dtype=images.dtype)
    framed[:, :, most : most + height, most : most + width] = images
    top, left = rng.integers(0, 2 * most + 1, size=(2, count, 1, 1, 1))
    image, channel = np.arange(count)[:, None, None, None], np.arange(channels)[:, None, None]
    rows, columns = top + np.arange(height)[:, None], left + np.arange(width)
    return framed[tuple(to_device(each, module) for each in (image, channel, rows, columns))]
