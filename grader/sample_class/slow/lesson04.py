"""Right, and a loop over windows where places inside the window were asked for."""

import numpy as np

from unrolled import ops


def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=columns.dtype)
    for at, (image, row, column) in enumerate(np.ndindex(n, oh, ow)):
        top, left = row * stride, column * stride
        x[image, :, top : top + kh, left : left + kw] += columns[:, at].reshape(c, kh, kw)
    return x[:, :, padding : padding + h, padding : padding + w]
