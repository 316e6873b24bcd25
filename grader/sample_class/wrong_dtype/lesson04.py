"""float64 where float32 came in, because np.zeros says so; and float32 where small differences want float64."""

import numpy as np

from unrolled import ops


def numeric_gradient(function, x, step=1e-5):
    x = np.array(x, dtype=np.float32)
    gradient = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient


def softmax_cross_entropy(scores, labels):
    one_hot = np.zeros(scores.shape)
    one_hot[np.arange(len(labels)), labels] = 1
    loss = -np.log(ops.softmax(scores))[np.arange(len(labels)), labels].mean()
    return loss, (ops.softmax(scores) - one_hot) / len(scores)


def col2im(columns, x_shape, kernel_size, stride=1, padding=0):
    (n, c, h, w), (kh, kw) = x_shape, kernel_size
    oh, ow = ops.conv2d_output_size((h, w), kernel_size, stride, padding)
    columns = columns.reshape(c, kh, kw, n, oh, ow)
    x = np.zeros((n, c, h + 2 * padding, w + 2 * padding))
    for i in range(kh):
        for j in range(kw):
            values = columns[:, i, j].swapaxes(0, 1)
            x[:, :, i : i + stride * oh : stride, j : j + stride * ow : stride] += values
    return x[:, :, padding : padding + h, padding : padding + w]
