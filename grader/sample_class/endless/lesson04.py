"""A loop that never comes to the last window."""

import numpy as np


def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=columns.dtype)
    top = left = at = 0
    while top + kh <= h + 2 * padding:
        x[0, :, top : top + kh, left : left + kw] += columns[:, at].reshape(c, kh, kw)
    return x[:, :, padding : padding + h, padding : padding + w]
