"""A mean over one sample less, and a loop that leaves out the last row of windows."""

import numpy as np

from unrolled import ops


def softmax_cross_entropy(scores, labels):
    rows, count = np.arange(len(scores)), max(len(scores) - 1, 1)
    shifted = scores - scores.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1)
    grad = exponentials / sums[:, None]
    grad[rows, labels] -= 1
    return (np.log(sums) - shifted[rows, labels]).sum() / count, grad / count


def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    columns = columns.reshape(c, kh, kw, n, oh, ow)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=columns.dtype)
    for image in range(n):
        for row in range(oh - 1):
            for column in range(ow):
                top, left = row * stride, column * stride
                x[image, :, top : top + kh, left : left + kw] += columns[:, :, :, image, row, column]
    return x[:, :, padding : padding + h, padding : padding + w]
