"""Windows with gaps: `col2im` with a dilation, which the variants of exercises ask for and `ops` does not have."""

from __future__ import annotations

import numpy as np

from unrolled import ops
from unrolled.device import Array

Sizes = tuple[int, ...]


def places(size: Sizes, kernel_size: Sizes, stride: int, padding: int, dilation: int) -> tuple[int, int]:
    """(OH, OW): where a window fits whose pixels lie `dilation` apart, so that it spans dilation * (K - 1) + 1."""
    tall, wide = (dilation * (k - 1) + 1 for k in kernel_size)
    return ops.conv2d_output_size((size[0], size[1]), (tall, wide), stride, padding)


def col2im_dilated(
    columns: Array, x_shape: Sizes, kernel_size: Sizes, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    """`ops.col2im` for windows whose pixels lie `dilation` apart: (N, C, H, W). columns is (C*KH*KW, N*OH*OW)."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = places((h, w), kernel_size, stride, padding, dilation)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    six = columns.reshape(c, kh, kw, n, oh, ow)
    for i, j in np.ndindex(kh, kw):
        top, left = i * dilation, j * dilation
        x[:, :, top : top + stride * oh : stride, left : left + stride * ow : stride] += six[:, i, j].swapaxes(0, 1)
    return x[:, :, padding : padding + h, padding : padding + w]


def col2im_dilated_loops(
    columns: Array, x_shape: Sizes, kernel_size: Sizes, stride: int = 1, padding: int = 0, dilation: int = 1
) -> Array:
    """`col2im_dilated` window by window. The definition, and slow."""
    h, w = x_shape[2:]
    padded = padded_back(columns, x_shape, kernel_size, stride, padding, dilation)
    return padded[:, :, padding : padding + h, padding : padding + w]


def padded_back(
    columns: Array,
    x_shape: Sizes,
    kernel_size: Sizes,
    stride: int,
    padding: int,
    dilation: int,
    overwrite: bool = False,
) -> Array:
    """The image with its padding, window by window; with `overwrite`, the last window to come stays."""
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), columns.dtype)
    oh, ow = places((h, w), kernel_size, stride, padding, dilation)
    for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
        top, left = row * stride, column * stride
        pixels = x[image, :, top : top + dilation * kh : dilation, left : left + dilation * kw : dilation]
        window = columns[:, at].reshape(c, kh, kw)
        pixels[...] = window if overwrite else pixels + window
    return x
