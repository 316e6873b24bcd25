"""Wrong and imperfect answers to lesson 06."""

from unrolled import device

from . import Mutant, on_the_host, solution


def changed(exercise, *changes):
    return solution("06_gpu_port", exercise, *changes)


convolved = changed("conv2d_port")


# conv2d_port


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
            changed("activation", ("(x > 0)", "xp.where(x > 0, 1.0, 0.0)")),
            "1 float64 launch, none allowed: 1 x where",
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
            changed("conv2d_port", ("    padded = ", "    x = np.asarray(x)\n    padded = ")),
            "Implicit conversion to a NumPy array is not allowed",
        ),
        Mutant(
            changed("conv2d_port", ("bias[:, None]", "xp.asarray(device.to_host(bias))[:, None]")),
            "2 transfers, none allowed: 1 x to host, 1 x to device",
        ),
    ],
    "max_pool2d_port": [
        Mutant(pooled_window_by_window, "launches, at most 44 allowed"),
        Mutant(
            changed(
                "max_pool2d_port", ("            indices =", "            if leads.any():\n                indices =")
            ),
            "transfers, none allowed: 4 x to host",
        ),
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
            changed("train_epoch", ("labels[start", "np.asarray(labels)[start")),
            "Implicit conversion to a NumPy array is not allowed",
        ),
        Mutant(
            changed("train_epoch", ("        weight =", "        assert loss < 1000\n        weight =")),
            "2 transfers, none allowed: 2 x to host",
        ),
        Mutant(
            changed(
                "train_epoch",
                ("losses = device.array_module(images).zeros(len(starts), dtype=weight.dtype)", "losses = []"),
                ("losses[step] = loss", "losses.append(float(loss))"),
                (", losses\n", ", device.array_module(images).asarray(np.array(losses, 'f4'))\n"),
            ),
            "3 transfers, none allowed: 2 x to host, 1 x to device",
        ),
    ],
}

HONEST = {"conv2d_port": [convolved, convolved_from_a_list]}

LOOP = {"conv2d_port": convolved_image_by_image_if_many}
