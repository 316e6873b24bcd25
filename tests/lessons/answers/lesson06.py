"""Wrong and imperfect answers to lesson 06."""

import math
import time

import numpy as np

from unrolled import device, ops, simgpu

from . import Mutant


def moved_to_the_host(function):
    """The NumPy version between two transfers."""

    def wrong(x, **others):
        host = {name: device.to_host(value) if hasattr(value, "shape") else value for name, value in others.items()}
        return device.array_module(x).asarray(function(x=device.to_host(x), **host))

    return wrong


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


def activation_of_numpy_alone(kind, x):
    return activation_right(kind, x, np)


def activation_of_the_gpu_alone(kind, x):
    return activation_right(kind, x, simgpu)


def activation_in_whole_numbers(kind, x):
    if kind == "step":
        return device.array_module(x).where(x > 0, 1, 0)
    return activation_right(kind, x)


def activation_with_a_float64_slope(kind, x):
    if kind == "leaky_relu":
        return device.array_module(x).where(x > 0, x, np.float64(0.01) * x)
    return activation_right(kind, x)


def activation_by_way_of_float64(kind, x):
    if kind == "step":
        return device.array_module(x).where(x > 0, 1.0, 0.0).astype(x.dtype)
    return activation_right(kind, x)


def activation_on_the_host(kind, x):
    return device.array_module(x).asarray(activation_right(kind, device.to_host(x)))


def activation_that_stays_on_the_host(kind, x):
    return activation_right(kind, device.to_host(x))


def activation_value_by_value(kind, x):
    xp = device.array_module(x)
    flat, y = x.reshape(-1), xp.empty(x.size, dtype=x.dtype)
    for i in range(x.size):
        y[i] = activation_right(kind, flat[i : i + 1])[0]
    return y.reshape(x.shape)


def activation_with_an_if(kind, x):
    if kind == "relu" and x.min() >= 0:
        return x
    return activation_right(kind, x)


def activation_with_another_slope(kind, x):
    return device.array_module(x).maximum(x, 0.1 * x) if kind == "leaky_relu" else activation_right(kind, x)


def activation_one_at_zero(kind, x):
    return (x >= 0).astype(x.dtype) if kind == "step" else activation_right(kind, x)


def activation_by_a_mask(kind, x):
    if kind == "relu":
        y = x.copy()
        y[y < 0] = 0
        return y
    return activation_right(kind, x)


def activation_of_where(kind, x):
    return device.array_module(x).where(x > 0, 1.0, 0.0) if kind == "step" else activation_right(kind, x)


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


def convolved_in_float64(x, weight, bias, padding=0):
    return convolved(x, weight, bias, padding, dtype="float64")


def convolved_by_way_of_float64(x, weight, bias, padding=0):
    return convolved(x, weight, bias, padding, dtype="float64").astype(x.dtype)


def convolved_with_asarray(x, weight, bias, padding=0):
    return convolved(np.asarray(x), weight, bias, padding)


def convolved_in_numpys_zeros(x, weight, bias, padding=0):
    return convolved(x, weight, bias, padding, xp=np)


def convolved_with_numpys_pad(x, weight, bias, padding=0):
    return convolved(x, weight, bias, padding, pad=np.pad)


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


def convolved_without_bias(x, weight, bias, padding=0):
    return convolved(x, weight, 0 * bias, padding)


def convolved_without_padding(x, weight, bias, padding=0):
    return convolved(x, weight, bias)


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


def pooled_by_numpys_where(x, kernel_size):
    return pooled_by_places(x, kernel_size, choose=np.where)


def pooled_with_an_if(x, kernel_size):
    def choose(leads, new, old):
        return device.array_module(x).where(leads, new, old) if leads.any() else old

    return pooled_by_places(x, kernel_size, choose=choose)


def pooled_on_the_host(x, kernel_size):
    xp = device.array_module(x)
    y, indices = pooled_by_places(device.to_host(x), kernel_size)
    return xp.asarray(y), xp.asarray(indices)


def pooled_to_the_last(x, kernel_size):
    return pooled_by_places(x, kernel_size, beats=lambda pixel, largest: pixel >= largest)


def pooled_within_the_window(x, kernel_size):
    return pooled_by_places(x, kernel_size, place=lambda corner, i, j: 0 * corner + (i * kernel_size + j))


def pooled_in_rows_of_the_result(x, kernel_size):
    y, indices = pooled_by_places(x, kernel_size)
    w, ow = x.shape[3], y.shape[3]
    return y, indices // w * ow + indices % w


def pooled_with_corners_in_rows_of_the_result(x, kernel_size):
    k, ow = kernel_size, x.shape[3] // kernel_size
    xp, oh = device.array_module(x), x.shape[2] // kernel_size
    y, indices = pooled_by_places(x, kernel_size)
    right = (xp.arange(oh)[:, None] * x.shape[3] + xp.arange(ow)) * k
    return y, indices - right + (xp.arange(oh)[:, None] * ow + xp.arange(ow)) * k


def pooled_with_the_number_of_the_window(x, kernel_size):
    y, indices = pooled_by_places(x, kernel_size)
    return y, 0 * indices + device.array_module(x).arange(y[0, 0].size).reshape(y.shape[2:])


def pooled_without_indices(x, kernel_size):
    return pooled_by_places(x, kernel_size)[0]


def pooled_with_float_indices(x, kernel_size):
    y, indices = pooled_by_places(x, kernel_size)
    return y, indices.astype("float64")


# break_even


def fewest(cpu, gpu, launch, latency, bandwidth, uses=1, ways=2, latencies=2, moves=1):
    saved = uses * (cpu - gpu) - moves * ways / bandwidth
    return (moves * latencies * latency + uses * launch) / saved if saved > 0 else float("inf")


def fewest_one_way(**figures):
    return fewest(**figures, ways=1, latencies=1)


def fewest_with_one_latency(**figures):
    return fewest(**figures, latencies=1)


def fewest_with_bytes_one_way(**figures):
    return fewest(**figures, ways=1)


def fewest_moved_in_each_use(uses=1, **figures):
    return fewest(**figures, uses=uses, moves=uses)


def fewest_with_one_launch(launch, uses=1, **figures):
    return fewest(launch=launch / uses, uses=uses, **figures)


def fewest_without_launches(launch, **figures):
    return fewest(launch=0, **figures)


def fewest_even_below_zero(cpu, gpu, launch, latency, bandwidth, uses=1):
    return (2 * latency + uses * launch) / (uses * (cpu - gpu) - 2 / bandwidth)


# gpu_time


def timed_without_a_wait(function, x):
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    function(x)
    return device.clock(x) - start


def timed_with_a_wait_at_the_start_alone(function, x, calls=20):
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    for _ in range(calls):
        function(x)
    return (device.clock(x) - start) / calls


def timed_with_the_first_call(function, x, calls=20):
    device.synchronize(x)
    start = device.clock(x)
    for _ in range(calls):
        function(x)
    device.synchronize(x)
    return (device.clock(x) - start) / calls


def timed_with_the_rest_of_the_first_call(function, x, calls=10):
    function(x)
    start = device.clock(x)
    for _ in range(calls):
        function(x)
    device.synchronize(x)
    return (device.clock(x) - start) / calls


def timed_cold_with_a_wait_after_every_call(function, x, calls=20):
    start = device.clock(x)
    for _ in range(calls):
        function(x)
        device.synchronize(x)
    return (device.clock(x) - start) / calls


def timed_once_and_cold(function, x):
    start = device.clock(x)
    function(x)
    device.synchronize(x)
    return device.clock(x) - start


def timed_all_together(function, x, calls=20):
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    for _ in range(calls):
        function(x)
    device.synchronize(x)
    return device.clock(x) - start


def timed_with_a_wait_after_every_call(function, x, calls=20):
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    for _ in range(calls):
        function(x)
        device.synchronize(x)
    return (device.clock(x) - start) / calls


def timed_by_a_single_call(function, x):
    return timed_with_a_wait_after_every_call(function, x, 1)


def timed_on_the_host(function, x):
    function(device.to_host(x))
    function(device.to_host(x))
    return 1e-3


def timed_in_milliseconds(function, x):
    module = device.array_module(x)
    function(x)
    start, end = module.cuda.Event(), module.cuda.Event()
    start.record()
    function(x)
    end.record()
    end.synchronize()
    return module.cuda.get_elapsed_time(start, end)


def timed_by_this_computers_clock(function, x, calls=5):
    function(x)
    device.synchronize(x)
    start = time.perf_counter()
    for _ in range(calls):
        function(x)
    device.synchronize(x)
    return (time.perf_counter() - start) / calls + 1.0  # so that it is like no other mistake's by chance


def timed_backwards(function, x):
    function(x)
    function(x)
    device.synchronize(x)
    return -1.0


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


def trained_with_an_array_of_floats(**inputs):
    weight, bias, losses = trained(**inputs)
    return weight, bias, np.array([float(loss) for loss in losses])


def trained_with_a_wait(**inputs):
    return trained(**inputs, look=lambda loss: device.synchronize(loss))


def trained_with_labels_from_the_host(images, labels, **others):
    labels = device.to_host(labels)
    return trained(images, labels, **others, truth=device.array_module(images).asarray)


def trained_in_place(images, labels, weight, bias, batch_size, rate):
    new, its_bias, losses = trained(images, labels, weight, bias, batch_size, rate)
    weight[...] = new
    return weight, its_bias, losses


def trained_in_float64(**inputs):
    weight, bias, losses = trained(**inputs)
    return weight, bias, losses.astype("float64")


def trained_without_the_last(images, labels, weight, bias, batch_size, rate):
    whole = len(images) // batch_size * batch_size
    return trained(images[:whole], labels[:whole], weight, bias, batch_size, rate)


def trained_uphill(rate, **inputs):
    return trained(**inputs, rate=-rate)


def trained_without_losses(**inputs):
    return trained(**inputs)[:2]


def activated(**other):
    """The activations, some of them in another way: kind=function(module, x)."""

    def variant(kind, x):
        right = {"step": ops.step, "relu": ops.relu, "leaky_relu": ops.leaky_relu, "sigmoid": ops.sigmoid}
        return other[kind](device.array_module(x), x) if kind in other else right[kind](x)

    return variant


def pooled(change):
    """change(largest, indices, row in the window, column in the window, corner, x, kernel_size) of a pooling."""

    def variant(x, kernel_size):
        largest, indices = ops.max_pool2d_with_indices(x, kernel_size)
        row, column = indices // x.shape[3], indices % x.shape[3]
        corner = row // kernel_size * kernel_size * x.shape[3] + column // kernel_size * kernel_size
        return change(largest, indices, row % kernel_size, column % kernel_size, corner, x, kernel_size)

    return variant


def pooled_to_the_smallest(x, kernel_size):
    largest, indices = ops.max_pool2d_with_indices(-x, kernel_size)
    return -largest, indices


def bytes_from(saved, never=float("inf"), upside_down=False):
    """Break even where a byte saves saved(cpu, gpu, uses, seconds of a byte on the way)."""

    def variant(cpu, gpu, launch, latency, bandwidth, uses=1):
        fixed, gain = 2 * latency + uses * launch, saved(cpu, gpu, uses, 1 / bandwidth)
        if upside_down:
            return gain / fixed
        return fixed / gain if gain > 0 else never

    return variant


def timed_of_one_call_for_many(function, x, calls=20):
    function(x)
    device.synchronize(x)
    start = device.clock(x)
    function(x)
    device.synchronize(x)
    return (device.clock(x) - start) / calls


def stepping(weight_gradient, bias_gradient):
    """An epoch with other gradients: weight_gradient(grad, x), bias_gradient(grad)."""

    def variant(images, labels, weight, bias, batch_size, rate):
        losses = []
        for start in range(0, len(images), batch_size):
            x = images[start : start + batch_size].reshape(-1, weight.shape[1])
            loss, grad = ops.softmax_cross_entropy(ops.affine(x, weight, bias), labels[start : start + batch_size])
            weight, bias = weight - rate * weight_gradient(grad, x), bias - rate * bias_gradient(grad)
            losses.append(loss)
        return weight, bias, device.array_module(images).stack(losses)

    return variant


MUTANTS = {
    "activation": [
        Mutant(activated(step=lambda xp, x: xp.sign(x)), "sign is -1 below 0"),
        Mutant(activated(leaky_relu=lambda xp, x: xp.minimum(x, 0.01 * x)), "the larger of x and 0.01 * x"),
        Mutant(activated(leaky_relu=lambda xp, x: xp.maximum(0.01 * x, 0)), "above 0 it is x itself"),
        Mutant(activated(sigmoid=lambda xp, x: 1 / 1 + xp.exp(-x)), "put 1 + exp(-x) in brackets"),
        Mutant(activated(sigmoid=lambda xp, x: 1 / (1 + math.exp(-x))), "take one number, np.exp an array"),
        Mutant(activation_of_numpy_alone, "call the same function of the array's own module"),
        Mutant(activation_of_the_gpu_alone, "Unsupported type <class 'numpy.ndarray'>"),
        Mutant(activation_in_whole_numbers, "dtype is int64, expected float32"),
        Mutant(activation_with_a_float64_slope, "dtype is float64, expected float32"),
        Mutant(activation_by_way_of_float64, "1 float64 launch, none allowed: 1 x where"),
        Mutant(activation_on_the_host, "2 transfers, none allowed: 1 x to host, 1 x to device"),
        Mutant(activation_that_stays_on_the_host, "it left the GPU"),
        Mutant(activation_value_by_value, "launches, at most 6 allowed"),
        Mutant(activation_with_an_if, "1 transfer, none allowed"),
        Mutant(activation_with_another_slope, "the slope below zero is 0.01"),
        Mutant(activation_one_at_zero, "it is 1 where x > 0"),
        Mutant(activation_by_a_mask, "a boolean mask as an index makes the host wait"),
        Mutant(activation_of_where, "where(x > 0, 1.0, 0.0) has no array to take a dtype from"),
    ],
    "conv2d_port": [
        Mutant(convolved_in_float64, "dtype is float64, expected float32"),
        Mutant(convolved_by_way_of_float64, "float64 launches, none allowed"),
        Mutant(convolved_with_asarray, "Implicit conversion to a NumPy array is not allowed"),
        Mutant(convolved_in_numpys_zeros, "call the same function of the array's own module"),
        Mutant(convolved_with_numpys_pad, "call the same function of the array's own module"),
        Mutant(convolved_with_a_bias_from_the_host, "2 transfers, none allowed: 1 x to host, 1 x to device"),
        Mutant(moved_to_the_host(convolved), "transfers, none allowed"),
        Mutant(convolved_image_by_image, "launches, at most 18 allowed"),
        Mutant(convolved_without_bias, "the bias is missing"),
        Mutant(convolved_without_padding, "the padding is missing"),
    ],
    "max_pool2d_port": [
        Mutant(pooled(lambda largest, indices, *_: (indices, largest)), "the order is the largest"),
        Mutant(pooled(lambda largest, *_: largest), "return largest, indices"),
        Mutant(pooled_to_the_smallest, "these are the smallest pixels"),
        Mutant(pooled(lambda y, at, i, j, corner, x, k: (y, i * x.shape[3] + j)), "first pixel is missing"),
        Mutant(pooled(lambda y, at, i, j, corner, x, k: (y, corner + i * k + j)), "i rows of the image lower"),
        Mutant(pooled(lambda y, at, i, j, corner, x, k: (y, at * (i + j > 0))), "begin with the corners"),
        Mutant(pooled_window_by_window, "launches, at most 44 allowed"),
        Mutant(pooled_by_numpys_where, "call the same function of the array's own module"),
        Mutant(pooled_with_an_if, "transfers, none allowed: 8 x to host"),
        Mutant(pooled_on_the_host, "3 transfers, none allowed"),
        Mutant(pooled_to_the_last, "of equal maxima the first wins"),
        Mutant(pooled_within_the_window, "your index is the place inside the window"),
        Mutant(pooled_in_rows_of_the_result, "a row of the image holds W pixels, and OW is the width of the result"),
        Mutant(pooled_with_corners_in_rows_of_the_result, "the corners of your windows are counted in rows of OW"),
        Mutant(pooled_with_the_number_of_the_window, "your index counts windows"),
        Mutant(pooled_without_indices, "expected a tuple of 2"),
        Mutant(pooled_with_float_indices, "dtype is float64, expected int64"),
    ],
    "break_even": [
        Mutant(bytes_from(lambda cpu, gpu, uses, way: uses * (gpu - cpu) - 2 * way), "a byte saves nothing"),
        Mutant(bytes_from(lambda cpu, gpu, uses, way: uses * (cpu - gpu)), "bytes on the way are missing"),
        Mutant(bytes_from(lambda cpu, gpu, uses, way: uses * (cpu - gpu) + 2 * way), "the ways cost the GPU"),
        Mutant(bytes_from(lambda cpu, gpu, uses, way: uses * cpu - gpu - 2 * way), "each use costs a byte"),
        Mutant(bytes_from(lambda cpu, gpu, uses, way: uses * (cpu - gpu) - 2 * way, upside_down=True), "upside down"),
        Mutant(bytes_from(lambda cpu, gpu, uses, way: uses * (cpu - gpu) - 2 * way, never=0.0), "not 0"),
        Mutant(fewest_one_way, "the way back is missing"),
        Mutant(fewest_with_one_latency, "each transfer has its latency: there are two"),
        Mutant(fewest_with_bytes_one_way, "each byte goes there and back"),
        Mutant(fewest_moved_in_each_use, "you move the array in each use"),
        Mutant(fewest_with_one_launch, "each use is a launch"),
        Mutant(fewest_without_launches, "the launches are missing"),
        Mutant(fewest_even_below_zero, "it never pays"),
    ],
    "gpu_time": [
        Mutant(timed_of_one_call_for_many, "Or it ran for one call"),
        Mutant(timed_with_a_wait_after_every_call, "so long takes a call that the host waits for"),
        Mutant(timed_by_a_single_call, "so long takes a call that the host waits for"),
        Mutant(timed_on_the_host, "call function(x) with x as it comes"),
        Mutant(timed_without_a_wait, "the clock stopped before the device was done"),
        Mutant(timed_with_a_wait_at_the_start_alone, "the clock stopped before the device was done"),
        Mutant(timed_with_the_first_call, "the work of the first call is in it"),
        Mutant(timed_with_the_rest_of_the_first_call, "the work of the first call is in it"),
        Mutant(timed_cold_with_a_wait_after_every_call, "And the host waits after every call"),
        Mutant(timed_once_and_cold, "called once: call it once before the clock starts"),
        Mutant(timed_all_together, "divide by their number"),
        Mutant(timed_in_milliseconds, "get_elapsed_time gives milliseconds"),
        Mutant(timed_by_this_computers_clock, "time.perf_counter() tells how long this computer was busy"),
        Mutant(timed_backwards, "the clock's end minus its start"),
        Mutant(lambda function, x: None, "is the return statement missing?"),
    ],
    "train_epoch": [
        Mutant(lambda **given: trained(**given | {"rate": 1.0}), "the rate is missing"),
        Mutant(lambda **given: trained(**given)[:2], "return weight, bias, losses"),
        Mutant(lambda **given: trained(**given)[2:] + trained(**given)[:2], "the order is weight, bias, losses"),
        Mutant(stepping(lambda grad, x: grad.T @ x, lambda grad: 0), "the bias stays as it was"),
        Mutant(stepping(lambda grad, x: 0, lambda grad: grad.sum(axis=0)), "the weight stays as it was"),
        Mutant(stepping(lambda grad, x: grad.T @ x / len(x), lambda grad: grad.sum(axis=0)), "do not divide it again"),
        Mutant(stepping(lambda grad, x: grad.T @ x, lambda grad: grad.mean(axis=0)), "add up for the bias"),
        Mutant(trained_with_numpys_labels, "Implicit conversion to a NumPy array is not allowed"),
        Mutant(trained_with_an_if, "2 transfers, none allowed: 2 x to host"),
        Mutant(trained_with_a_list_of_floats, "3 transfers, none allowed: 2 x to host, 1 x to device"),
        Mutant(trained_with_an_array_of_floats, "np.array of Python numbers make float64"),
        Mutant(trained_with_a_wait, "2 synchronizations, none allowed"),
        Mutant(trained_with_labels_from_the_host, "3 transfers, none allowed"),
        Mutant(trained_in_place, "changed its input weight"),
        Mutant(trained_in_float64, "dtype is float64, expected float32"),
        Mutant(trained_without_the_last, "the last, smaller batch is left out"),
        Mutant(trained_uphill, "the step goes uphill"),
        Mutant(trained_without_losses, "expected 3 items, got 2"),
    ],
}

HONEST = {"conv2d_port": [convolved, convolved_from_a_list]}

LOOP = {"conv2d_port": convolved_image_by_image_if_many}
