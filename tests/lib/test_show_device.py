"""Pictures of arrays that lie on a GPU are those of the same values on the host."""

from __future__ import annotations

import numpy as np
import pytest

from unrolled import show, simgpu

RNG = np.random.default_rng(0)
IMAGES = RNG.random((4, 1, 6, 6), dtype=np.float32)
LABELS = np.array([0, 1, 2, 1])
GUESSES = np.array([0, 1, 1, 1])
KERNELS = RNG.standard_normal((2, 1, 3, 3)).astype(np.float32)
SMALL_NETWORK = {
    "x": RNG.standard_normal((2, 3)),
    "labels": np.array([0, 1]),
    "weights": [RNG.standard_normal((4, 3)), RNG.standard_normal((2, 4))],
    "biases": [np.zeros(4), np.zeros(2)],
}
PICTURES = {
    "barriers": lambda at: show.barriers(at(IMAGES[0, 0, 0, :4])),
    "images": lambda at: show.images(at(IMAGES), at(LABELS), at(GUESSES)),
    "difference": lambda at: show.difference(at(IMAGES[0, 0]), at(IMAGES[1, 0])),
    "convolution": lambda at: show.convolution(at(IMAGES[0]), at(KERNELS[0])),
    "conv2d_backward": lambda at: show.conv2d_backward(at(IMAGES[0, 0]), at(KERNELS[0, 0]), at(IMAGES[1, 0, :4, :4])),
    "im2col": lambda at: show.im2col(at(IMAGES[0, 0]), 3),
    "max_pool2d": lambda at: show.max_pool2d(at(IMAGES[0, 0]), 2, values=at(IMAGES[1, 0, :3, :3])),
    "filters": lambda at: show.filters(at(KERNELS), at(IMAGES[0])),
    "confusion": lambda at: show.confusion(at(LABELS), at(GUESSES)),
    "losses": lambda at: show.losses({"Adam": at(IMAGES[:, 0, 0, 0])}),
    "race": lambda at: show.race(at(IMAGES), at(LABELS), {"a": (1e-3, at(GUESSES)), "b": (1e-4, at(LABELS))}),
    "computation_graph": lambda at: show.computation_graph(
        **{
            name: list(map(at, value)) if isinstance(value, list) else at(value)
            for name, value in SMALL_NETWORK.items()
        }
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_device_arrays(name):
    on_host, on_device = PICTURES[name](np.asarray), PICTURES[name](simgpu.asarray)
    assert on_device.alt == on_host.alt


def test_what_is_no_array():
    with pytest.raises(TypeError, match="expected an array, got object"):
        show.images(object())
