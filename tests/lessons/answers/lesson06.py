"""Wrong and imperfect answers to lesson 06."""

import numpy as np

from unrolled import device, ops, simgpu

from . import Mutant, on_the_host

# activation


def activation_right(kind, x, xp=None):
    xp = xp or device.array_module(x)
    if kind == "step":
        return (x > 0).astype(x.dtype)
    if kind == "relu":
        return xp.maximum(x, 0)
    if kind == "leaky_relu":
        return xp.maximum(x, 0.01 * x)
    return 1 / (1 + xp.exp(-x))


def activation_of_the_gpu_alone(kind, x):
    return activation_right(kind, x, simgpu)


def activation_by_way_of_float64(kind, x):
    if kind == "step":
        return device.array_module(x).where(x > 0, 1.0, 0.0).astype(x.dtype)
    return activation_right(kind, x)


# conv2d_port


def convolved(x, weight, bias, padding=0, xp=None, dtype="float32", pad=None):
    xp = xp or device.array_module(x)
    (n, c, h, w), (o, _, kh, kw) = x.shape, weight.shape
    oh, ow = h + 2 * padding - kh + 1, w + 2 * padding - kw + 1
    if pad is None:
        padded = xp.zeros((n, c, h + 2 * padding, w + 2 * padding), dtype=x.dtype)
        padded[:, :, padding : padding + h, padding : padding + w] = x
    else:
        padded = pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    columns = xp.empty((c, kh, kw, n, oh, ow), dtype=dtype)
    for i in range(kh):
        for j in range(kw):
            columns[:, i, j] = padded[:, :, i : i + oh, j : j + ow].swapaxes(0, 1)
    y = weight.reshape(o, -1) @ columns.reshape(c * kh * kw, -1) + bias[:, None]
    return y.reshape(o, n, oh, ow).swapaxes(0, 1)


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


def convolved_by_way_of_float64(x, weight, bias, padding=0):
    return convolved(x, weight, bias, padding, dtype="float64").astype(x.dtype)


def convolved_with_asarray(x, weight, bias, padding=0):
    return convolved(np.asarray(x), weight, bias, padding)


def convolved_with_a_bias_from_the_host(x, weight, bias, padding=0):
    xp = device.array_module(x)
    return convolved(x, weight, xp.asarray(device.to_host(bias)), padding)


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


def pooled_by_places(x, kernel_size, choose=None, beats=lambda pixel, largest: pixel > largest, place=None):
    xp, k = device.array_module(x), kernel_size
    n, c, h, w = x.shape
    oh, ow = h // k, w // k
    corner = (xp.arange(oh)[:, None] * w + xp.arange(ow)) * k
    largest, indices = x[:, :, : oh * k : k, : ow * k : k], xp.zeros((n, c, 1, 1), dtype=corner.dtype) + corner
    choose, place = choose or xp.where, place or (lambda corner, i, j: corner + (i * w + j))
    for i in range(k):
        for j in range(k):
            pixel = x[:, :, i : i + oh * k : k, j : j + ow * k : k]
            leads = beats(pixel, largest)
            indices = choose(leads, place(corner, i, j), indices)
            largest = choose(leads, pixel, largest)
    return largest, indices


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


def pooled_with_an_if(x, kernel_size):
    def choose(leads, new, old):
        return device.array_module(x).where(leads, new, old) if leads.any() else old

    return pooled_by_places(x, kernel_size, choose=choose)


# break_even


# gpu_time


def timed_with_a_wait_after_every_call(function, x, calls=20):
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    for _ in range(calls):
        function(x)
        device.synchronize(x)
    return (device.clock(x) - start) / calls


def timed_on_the_host(function, x):
    function(device.to_host(x))
    function(device.to_host(x))
    return 1e-3


# train_epoch


def trained(images, labels, weight, bias, batch_size, rate, look=lambda loss: None, keep=None, truth=None):
    xp, losses = device.array_module(images), []
    for start in range(0, len(images), batch_size):
        x = images[start : start + batch_size].reshape(-1, weight.shape[1])
        y = labels[start : start + batch_size]
        loss, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), truth(y) if truth else y)
        look(loss)
        weight = weight - rate * (grad.T @ x)
        bias = bias - rate * grad.sum(axis=0)
        losses.append(loss.reshape(1) if keep is None else keep(loss))
    return weight, bias, xp.concatenate(losses) if keep is None else xp.asarray(np.array(losses, np.float32))


def trained_with_numpys_labels(**inputs):
    return trained(**inputs, truth=np.asarray)


def trained_with_an_if(**inputs):
    def look(loss):
        if loss > 1000:
            raise ValueError("the loss is too large")

    return trained(**inputs, look=look)


def trained_with_a_list_of_floats(**inputs):
    return trained(**inputs, keep=float)


def timed_of_one_call_for_many(function, x, calls=20):
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    function(x)
    device.synchronize(x)
    return (device.clock(x) - start) / calls


MUTANTS = {
    "activation": [
        Mutant(activation_of_the_gpu_alone, "Unsupported type <class 'numpy.ndarray'>"),
        Mutant(activation_by_way_of_float64, "1 float64 launch, none allowed: 1 x where"),
        Mutant(on_the_host("activation"), "2 transfers, none allowed: 1 x to host, 1 x to device"),
    ],
    "conv2d_port": [
        Mutant(convolved_by_way_of_float64, "float64 launches, none allowed"),
        Mutant(convolved_with_asarray, "Implicit conversion to a NumPy array is not allowed"),
        Mutant(convolved_with_a_bias_from_the_host, "2 transfers, none allowed: 1 x to host, 1 x to device"),
    ],
    "max_pool2d_port": [
        Mutant(pooled_window_by_window, "launches, at most 44 allowed"),
        Mutant(pooled_with_an_if, "transfers, none allowed: 8 x to host"),
        Mutant(on_the_host("max_pool2d_port"), "3 transfers, none allowed"),
    ],
    "gpu_time": [
        Mutant(timed_of_one_call_for_many, "Or it ran for one call"),
        Mutant(timed_with_a_wait_after_every_call, "so long takes a call that the host waits for"),
        Mutant(timed_on_the_host, "call function(x) with x as it comes"),
    ],
    "train_epoch": [
        Mutant(trained_with_numpys_labels, "Implicit conversion to a NumPy array is not allowed"),
        Mutant(trained_with_an_if, "2 transfers, none allowed: 2 x to host"),
        Mutant(trained_with_a_list_of_floats, "3 transfers, none allowed: 2 x to host, 1 x to device"),
    ],
}

HONEST = {"conv2d_port": [convolved, convolved_from_a_list]}

LOOP = {"conv2d_port": convolved_image_by_image_if_many}
