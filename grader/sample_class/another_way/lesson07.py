"""Right, by other ways than the lesson's: one measuring function, sums by NumPy, maxima, the smaller of two pairs."""

import numpy as np

from unrolled import device


def time_layers(layers, x, grad, clock, synchronize):
    def timed(work, value):
        synchronize()
        start = clock()
        result = work(value)
        synchronize()
        return result, clock() - start

    times = np.zeros((len(layers), 2))
    for index, layer in enumerate(layers):
        x, times[index, 0] = timed(lambda value, layer=layer: layer.forward(value, training=True), x)
    for index, layer in reversed(list(enumerate(layers))):
        grad, times[index, 1] = timed(layer.backward, grad)
    return [(float(forward), float(backward)) for forward, backward in times]


def find_bottleneck(trace):
    lines, which = np.unique([event["line"] for event in trace], return_inverse=True)
    seconds = np.bincount(which, weights=[event["end"] - event["start"] for event in trace])
    return int(lines[seconds.argmax()]), float(seconds.max())


def repaired_step(images, weight):
    xp = device.array_module(images)
    distance = xp.abs(xp.arange(-2, 3, dtype=images.dtype))
    x = images * ((5 - distance) * (5 - distance[:, None]) / 25)
    x = xp.where((xp.arange(len(x)) % 2 == 1)[:, None, None, None], x[:, :, :, ::-1], x)
    mean = x.mean(axis=(0, 2, 3), keepdims=True)
    x = (x - mean) / xp.sqrt((x * x).mean(axis=(0, 2, 3), keepdims=True) - mean * mean)
    scores = (x.reshape(len(x), -1) @ weight).reshape(len(x), -1, 32)
    return 1.001 * xp.maximum(scores.max(axis=2), 0)


def roofline_bound(flops, nbytes, peak, bandwidth):
    return min((peak, "arithmetic"), (flops / nbytes * bandwidth, "memory"))
