"""Functions that raise: no training before the way back, keys taken for attributes, a name of another cell."""


def time_layers(layers, x, grad, clock, synchronize):
    forward, backward = [], []
    for layer in layers:
        synchronize()
        start = clock()
        x = layer.forward(x)
        synchronize()
        forward.append(clock() - start)
    for layer in reversed(layers):
        synchronize()
        start = clock()
        grad = layer.backward(grad)
        synchronize()
        backward.append(clock() - start)
    return list(zip(forward, reversed(backward), strict=True))


def find_bottleneck(trace):
    seconds = {}
    for event in trace:
        seconds[event.line] = seconds.get(event.line, 0) + event.end - event.start
    line = max(seconds, key=seconds.get)
    return line, seconds[line]


def roofline_bound(flops, nbytes, peak, bandwidth):
    from_memory = intensity * bandwidth  # noqa: F821  the mistake
    return (from_memory, "memory") if from_memory < peak else (peak, "arithmetic")
