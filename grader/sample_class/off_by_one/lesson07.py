"""Without the last layer, without the last event, and the other half of the maps mirrored."""

from unrolled import device


def time_layers(layers, x, grad, clock, synchronize):
    forward, backward = [], []
    synchronize()
    start = clock()
    for index in range(len(layers)):
        x = layers[index].forward(x, True)
        synchronize()
        end = clock()
        forward.append(end - start)
        start = end
    for index in range(len(layers) - 1, 0, -1):
        grad = layers[index].backward(grad)
        synchronize()
        end = clock()
        backward.append(end - start)
        start = end
    return [(forward[i], backward[-1 - i]) for i in range(len(backward))]


def find_bottleneck(trace):
    seconds = {}
    for number in range(len(trace) - 1):
        event = trace[number]
        seconds[event["line"]] = seconds.get(event["line"], 0) + event["end"] - event["start"]
    line = max(seconds, key=seconds.get)
    return line, seconds[line]


def repaired_step(images, weight):
    xp = device.array_module(images)
    n = len(images)
    middle = 1 - 0.2 * xp.abs(xp.arange(5, dtype=xp.float32) - 2)
    x = images * middle * middle[:, None]
    x[::2] = x[::2, :, :, ::-1].copy()
    x = x - x.mean(axis=(0, 2, 3), keepdims=True)
    x = x / x.std(axis=(0, 2, 3), keepdims=True)
    scores = xp.maximum(x.reshape(n, -1) @ weight, 0)
    rows = scores.reshape(-1, 32)
    largest = rows[xp.arange(len(rows)), rows.argmax(axis=1)]
    return 1.001 * largest.reshape(n, -1)
