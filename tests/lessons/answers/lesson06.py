"""Wrong and imperfect answers to lesson 06."""

import numpy as np

from unrolled import device, ops

from . import Mutant, on_the_host, solution


def changed(exercise, *changes):
    return solution("06_gpu_port", exercise, *changes)


convolved = changed("conv2d_port")


# conv2d_port


def convolved_from_a_copy(x, weight, bias, padding=0):
    """One copy more than needed."""
    return convolved(x.copy(), weight, bias, padding)


def convolved_from_a_list(x, weight, bias, padding=0):
    """Places as a list that is concatenated: one more copy of everything."""
    xp = device.array_module(x)
    (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    padded = xp.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=x.dtype)
    padded[:, :, padding : padding + h, padding : padding + w] = x
    places = [padded[:, :, i : i + oh, j : j + ow].reshape(n, 1, c, -1) for i in range(kh) for j in range(kw)]
    columns = xp.concatenate(places, axis=1)
    rows = weight.reshape(o, c, -1).swapaxes(1, 2).reshape(o, -1)
    return (rows @ columns.reshape(n, kh * kw * c, -1) + bias[:, None]).reshape(n, o, oh, ow)


def convolved_image_by_image(x, weight, bias, padding=0):
    (n, _, h, w), (o, _, kh, kw) = x.shape, weight.shape
    y = device.array_module(x).empty((n, o, h + 2 * padding - kh + 1, w + 2 * padding - kw + 1), dtype=x.dtype)
    for i in range(n):
        y[i : i + 1] = convolved(x[i : i + 1], weight, bias, padding)
    return y


def convolved_image_by_image_if_many(x, weight, bias, padding=0):
    """A loop that no budget sees, since the cases are small."""
    return (convolved if len(x) <= 12 else convolved_image_by_image)(x, weight, bias, padding)


# max_pool2d_port


def pooled_window_by_window(x, kernel_size):
    xp, k = device.array_module(x), kernel_size
    n, c, h, w = x.shape
    y, indices = (xp.empty((n, c, h // k, w // k), dtype=dtype) for dtype in (x.dtype, "int64"))
    for row in range(h // k):
        for column in range(w // k):
            window = x[:, :, row * k : row * k + k, column * k : column * k + k].reshape(n, c, -1)
            place = window.argmax(axis=2)
            y[:, :, row, column] = window.max(axis=2)
            indices[:, :, row, column] = (row * k + place // k) * w + column * k + place % k
    return y, indices


# gpu_time


def timed_on_the_host(function, x):
    function(device.to_host(x))
    function(device.to_host(x))
    return 1e-3


MUTANTS = {
    "activation": [
        Mutant(
            changed("activation", ("xp = device.array_module(x)", "xp = cp")),
            "Unsupported type <class 'numpy.ndarray'>",
        ),
        Mutant(
            changed("activation", ("(x > 0)", "xp.where(x > 0, 1.0, 0.0)")), "1 float64 launch, none allowed: 1 x where"
        ),
        Mutant(on_the_host("activation"), "2 transfers, none allowed: 1 x to host, 1 x to device"),
    ],
    "conv2d_port": [
        Mutant(
            changed(
                "conv2d_port",
                ("oh, ow), dtype=x.dtype", "oh, ow), dtype='f8'"),
                ("y.reshape", "y.astype('f4').reshape"),
            ),
            "float64 launches, none allowed",
        ),
        Mutant(
            changed("conv2d_port", ("bias[:, None]", "xp.asarray(device.to_host(bias))[:, None]")),
            "2 transfers, none allowed: 1 x to host, 1 x to device",
        ),
    ],
    "max_pool2d_port": [
        Mutant(pooled_window_by_window, "launches, at most 44 allowed"),
        Mutant(on_the_host("max_pool2d_port"), "3 transfers, none allowed"),
    ],
    "gpu_time": [
        Mutant(
            changed("gpu_time", ("    for _ in range(calls):\n        function", "    function")),
            "Or it ran for one call",
        ),
        Mutant(
            changed("gpu_time", ("        function(x)", "        function(x)\n        device.synchronize(x)")),
            "so long takes a call that the host waits for",
        ),
        Mutant(timed_on_the_host, "call function(x) with x as it comes"),
    ],
    "train_epoch": [
        Mutant(
            changed(
                "train_epoch",
                ("losses = device.array_module(images).zeros(len(starts), dtype=weight.dtype)", "losses = []"),
                ("losses[step] = loss", "losses.append(float(loss))"),
                (", losses\n", ", device.array_module(images).asarray(np.array(losses, 'f4'))\n"),
            ),
            "3 transfers, none allowed: 2 x to host, 1 x to device",
        )
    ],
}

HONEST = {"conv2d_port": [convolved, convolved_from_a_copy]}

LOOP = {"conv2d_port": convolved_image_by_image_if_many}


# Right answers in other styles

SUMS = ("1 / (1 + xp.exp(-x))", "xp.exp(-xp.logaddexp(0, -x))")


def activated_by_products(kind, x):
    xp = device.array_module(x)
    above = (x > 0).astype(x.dtype)
    slopes = {"relu": 0, "leaky_relu": 0.01}
    if kind in slopes:
        return x * (above + slopes[kind] * (1 - above))
    return above if kind == "step" else xp.reciprocal(1 + xp.exp(-x))


def activated_on_a_copy(kind, x):
    xp = device.array_module(x)
    y = x.copy()
    if kind == "sigmoid":
        xp.exp(-abs(x), out=y)
        return xp.where(x > 0, 1 / (1 + y), y / (1 + y)).astype(x.dtype)
    if kind == "step":
        y[...] = x > 0
        return y
    return xp.maximum(y, y * (0.01 if kind == "leaky_relu" else 0))


def pooled(x, kernel_size, choose):
    """The largest of each window by `choose(places, shape)`, whose result is the place inside of it."""
    xp, k = device.array_module(x), kernel_size
    h, w = x.shape[2:]
    oh, ow = h // k, w // k
    stacked = xp.stack([x[:, :, i : i + oh * k : k, j : j + ow * k : k] for i in range(k) for j in range(k)])
    place = choose(xp, stacked)
    rows, columns = xp.arange(oh)[:, None] * k + place // k, xp.arange(ow) * k + place % k
    return stacked.max(axis=0), rows * w + columns


def first_of_equals(xp, stacked):
    numbers = xp.arange(len(stacked)).reshape(-1, 1, 1, 1, 1)
    return xp.where(stacked == stacked.max(axis=0), numbers, len(stacked)).min(axis=0)


def backwards(xp, stacked):
    place, largest = xp.zeros(stacked.shape[1:], dtype=int), stacked[-1]
    for number in reversed(range(len(stacked))):
        leads = stacked[number] >= largest
        place, largest = xp.where(leads, number, place), xp.maximum(stacked[number], largest)
    return place


def even(cpu, gpu, launch, latency, bandwidth, uses=1):
    each_byte = cpu - gpu - 2 / bandwidth / uses
    if each_byte <= 0:
        return np.inf
    return (2 * latency / uses + launch) / each_byte


def even_by_lines(cpu, gpu, launch, latency, bandwidth, uses=1):
    """Where two straight lines meet."""

    def there(size):
        return 2 * (latency + size / bandwidth) + uses * (launch + gpu * size)

    slope = uses * cpu - (2 / bandwidth + uses * gpu)
    return float("inf") if slope <= 0 else np.float64(there(0)) / slope


def even_in_microseconds(cpu, gpu, launch, latency, bandwidth, uses=1):
    cost = 1e6 * (latency + latency) + sum(1e6 * launch for _ in range(uses))
    gain = 1e6 * (uses * cpu) - 1e6 * (uses * gpu) - 1e6 * (1 / bandwidth + 1 / bandwidth)
    return [float("inf"), cost / (gain or 1)][gain > 0]


def timed_by_differences(function, x, calls=20):
    """Twice as many calls less once as many."""

    def seconds(count):
        device.synchronize(x)
        start = device.clock(x)
        for _ in range(count):
            function(x)
        device.synchronize(x)
        return device.clock(x) - start

    function(x)
    once = seconds(calls)
    return (seconds(2 * calls) - once) / calls


def trained_in_place(images, labels, weight, bias, batch_size, rate):
    xp = device.array_module(images)
    weight, bias, flat = weight.copy(), bias.copy(), images.reshape(len(images), -1)
    losses = []
    while len(flat):
        x, y, flat, labels = flat[:batch_size], labels[:batch_size], flat[batch_size:], labels[batch_size:]
        loss, grad = ops.softmax_cross_entropy(x @ weight.T + bias, y)
        weight -= rate * (grad.T @ x)
        bias -= rate * grad.sum(0)
        losses.append(loss.reshape(1))
    return weight, bias, xp.concatenate(losses).astype(weight.dtype)


RIGHT = {
    "activation": [
        activated_by_products,
        activated_on_a_copy,
        changed("activation", SUMS),
        changed(
            "activation",
            ("xp.maximum(x, 0)", "x.clip(0, None)"),
            ("xp.maximum(x, 0.01 * x)", "xp.where(x < 0, x * 0.01, x)"),
        ),
    ],
    "conv2d_port": [convolved_from_a_list],
    "max_pool2d_port": [
        lambda x, kernel_size: pooled(x, kernel_size, lambda xp, stacked: stacked.argmax(axis=0)),
        lambda x, kernel_size: pooled(x, kernel_size, first_of_equals),
        lambda x, kernel_size: pooled(x, kernel_size, backwards),
        changed(
            "max_pool2d_port", ("largest = xp.where(leads, pixel, largest)", "largest = xp.maximum(largest, pixel)")
        ),
    ],
    "break_even": [
        even,
        even_by_lines,
        even_in_microseconds,
        changed("break_even", ('fixed / saved if saved > 0 else float("inf")', "np.divide(fixed, max(saved, 0.0))")),
        changed(
            "break_even",
            ("saved = uses * (cpu - gpu) - 2 / bandwidth", "saved = uses * cpu - uses * gpu - 2 * bandwidth**-1"),
        ),
    ],
    "gpu_time": [
        timed_by_differences,
        changed(
            "gpu_time",
            ("    device.synchronize(x)\n    start", "    function(x)\n    device.synchronize(x)\n    start"),
        ),
        changed("gpu_time", ("in range(calls)", "in range(2 * calls)"), ("/ calls", "/ (2 * calls)")),
        changed("gpu_time", ("for _ in range(calls):", "for _ in [None] * calls:")),
    ],
    "train_epoch": [
        trained_in_place,
        changed(
            "train_epoch",
            (
                "losses = device.array_module(images).zeros(len(starts), dtype=weight.dtype)",
                "losses = device.array_module(images).empty_like(weight, shape=(len(starts),))",
            ),
        ),
        changed(
            "train_epoch",
            ("rate * (grad.T @ x)", "(rate * grad.T) @ x"),
            ("rate * grad.sum(axis=0)", "(rate * grad).sum(axis=0)"),
        ),
        changed("train_epoch", ("grad.T @ x", "device.array_module(x).einsum('nm,nd->md', grad, x)")),
    ],
}
