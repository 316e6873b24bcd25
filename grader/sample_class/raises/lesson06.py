"""Functions that raise: NumPy's own functions, which take no array of a GPU; a method that no function has."""

import numpy as np

from unrolled import device, ops


def conv2d_port(x, weight, bias, padding=0):
    x = np.asarray(x)
    (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    columns = np.zeros((c, kh, kw, n, oh, ow), dtype=x.dtype)
    for i in range(kh):
        for j in range(kw):
            columns[:, i, j] = padded[:, :, i : i + oh, j : j + ow].swapaxes(0, 1)
    y = weight.reshape(o, -1) @ columns.reshape(c * kh * kw, -1) + bias[:, None]
    return y.reshape(o, n, oh, ow).swapaxes(0, 1)


def gpu_time(function, x, calls=20):
    function(x)
    function.synchronize()
    start = device.clock(x)
    for _ in range(calls):
        function(x)
    function.synchronize()
    return (device.clock(x) - start) / calls


def train_epoch(images, labels, weight, bias, batch_size, rate):
    starts = range(0, len(images), batch_size)
    losses = np.zeros(len(starts), dtype=weight.dtype)
    for step, start in enumerate(starts):
        x = images[start : start + batch_size].reshape(-1, weight.shape[1])
        loss, grad = ops.softmax_cross_entropy(
            ops.affine(x, weight, bias), np.asarray(labels[start : start + batch_size])
        )
        weight = weight - rate * (grad.T @ x)
        bias = bias - rate * grad.sum(axis=0)
        losses[step] = loss
    return weight, bias, losses
