"""Right, and slow on a GPU: a launch for each image or window, and a look at the loss in each step."""

import numpy as np

from unrolled import device, ops


def conv2d_port(x, weight, bias, padding=0):
    xp = device.array_module(x)
    (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    padded = xp.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=x.dtype)
    padded[:, :, padding : padding + h, padding : padding + w] = x
    y = xp.empty((n, o, oh, ow), dtype=x.dtype)
    for image in range(n):
        columns = xp.empty((c, kh, kw, oh, ow), dtype=x.dtype)
        for i in range(kh):
            for j in range(kw):
                columns[:, i, j] = padded[image, :, i : i + oh, j : j + ow]
        y[image] = (weight.reshape(o, -1) @ columns.reshape(c * kh * kw, -1) + bias[:, None]).reshape(o, oh, ow)
    return y


def max_pool2d_port(x, kernel_size):
    xp, k = device.array_module(x), kernel_size
    n, c, h, w = x.shape
    largest = xp.empty((n, c, h // k, w // k), dtype=x.dtype)
    indices = xp.empty(largest.shape, dtype=np.int64)
    for row in range(h // k):
        for column in range(w // k):
            window = x[:, :, row * k : row * k + k, column * k : column * k + k].reshape(n, c, -1)
            place = window.argmax(axis=2)
            largest[:, :, row, column] = window.max(axis=2)
            indices[:, :, row, column] = (row * k + place // k) * w + column * k + place % k
    return largest, indices


def train_epoch(images, labels, weight, bias, batch_size, rate):
    losses = []
    for start in range(0, len(images), batch_size):
        x = images[start : start + batch_size].reshape(-1, weight.shape[1])
        loss, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels[start : start + batch_size])
        if loss > 1000:
            raise ValueError(f"the loss is {loss} in step {len(losses)}")
        weight = weight - rate * (grad.T @ x)
        bias = bias - rate * grad.sum(axis=0)
        losses.append(loss)
    return weight, bias, device.array_module(images).stack(losses)
