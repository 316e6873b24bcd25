"""Lesson 07: in what a student of the sample class differs from the solution, a class a student."""

import numpy as np

from unrolled import device


class slow:
    """Right, and half repaired: nothing waits for a channel's mean any more, but the loop over channels is there."""

    repaired_step = {
        "x = x - x.mean(axis=(0, 2, 3), keepdims=True)": "for c in range(x.shape[1]):",
        "x = x / x.std(axis=(0, 2, 3), keepdims=True)": "    x[:, c] = (x[:, c] - x[:, c].mean()) / x[:, c].std()",
    }


class off_by_one:
    """Without the last layer, without the last event, and the other half of the maps mirrored."""

    time_layers = {"reversed(layers)": "reversed(layers[1:])", ", strict=True": ""}
    find_bottleneck = {'for event in sorted(trace, key=lambda event: event["start"]):': "for event in trace[:-1]:"}
    repaired_step = {"x[1::2": "x[::2"}


class another_way:
    """Right, by other ways: one measuring function, sums by NumPy, maxima, masks."""

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
        events = sorted(trace, key=lambda event: event["start"])
        before = [{"line": events[0]["line"], "end": 0, "waits": False}, *events[:-1]]
        causes = [(b if b["waits"] else e)["line"] for b, e in zip(before, events, strict=True)]
        gaps = [e["start"] - b["end"] for b, e in zip(before, events, strict=True)]
        lines, which = np.unique(causes + [e["line"] for e in events], return_inverse=True)
        seconds = np.bincount(which, weights=gaps + [e["end"] - e["start"] for e in events])
        return int(lines[seconds.argmax()]), float(seconds.max())

    def repaired_step(images, weight):
        xp = device.array_module(images)
        distance = xp.abs(xp.arange(-2, 3, dtype=images.dtype))
        x = images * ((5 - distance) * (5 - distance[:, None]) / 25)
        x = xp.where((xp.arange(len(x)) % 2 == 1)[:, None, None, None], x[:, :, :, ::-1], x)
        mean = x.mean(axis=(0, 2, 3), keepdims=True)
        x = (x - mean) / xp.sqrt((x * x).mean(axis=(0, 2, 3), keepdims=True) - mean * mean)
        scores = (x.reshape(len(x), -1) @ weight).reshape(len(x), -1, 16)
        return 1.001 * xp.maximum(scores.max(axis=2), 0)

    def roofline_bound(kernels, peak, bandwidth, launch):
        seconds = np.array(kernels) / (peak, bandwidth)
        arithmetic = seconds[:, 0] > seconds[:, 1]
        sums = {"arithmetic": seconds[arithmetic, 0].sum(), "memory": seconds[~arithmetic, 1].sum()}
        host = len(kernels) * launch
        if host > sum(sums.values()):
            return host, "launches"
        return float(sum(sums.values())), max(sums, key=sums.get)
