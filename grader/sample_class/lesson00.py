"""Lesson 00: in what a student of the sample class differs from the solution, a class a student."""

import numpy as np


class slow:
    """Right, and a loop; in this lesson speed earns no points."""

    def ink(images):
        y = np.empty(len(images), dtype=images.dtype)
        for n in range(len(images)):
            y[n] = sum(float(pixel) for pixel in images[n].ravel()) / images[n].size
        return y


class off_by_one:
    """A mean without the last row of pixels."""

    ink = {"images.mean": "images[:, :, :-1].mean"}


class another_way:
    """Right, by another way than the lesson's: a product with a vector of equal parts."""

    def ink(images):
        x = images.reshape(len(images), -1)
        return x @ np.full(x.shape[1], 1 / x.shape[1], dtype=images.dtype)
