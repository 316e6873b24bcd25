"""Wrong and imperfect answers to lesson 07."""

import time

import numpy as np

from unrolled import device
from unrolled.checks.exercises.l07_profiling import planted

from . import Mutant, bottlenecks, bounds

# time_layers


def timed(layers, x, grad, clock, synchronize):
    """Right, in another form than the library's."""

    def seconds_of(work):
        synchronize()
        start = clock()
        result = work()
        synchronize()
        return result, clock() - start

    forward, backward = [], []
    for layer in layers:
        x, took = seconds_of(lambda layer=layer, x=x: layer.forward(x, training=True))
        forward.append(took)
    for layer in layers[::-1]:
        grad, took = seconds_of(lambda layer=layer, grad=grad: layer.backward(grad))
        backward.insert(0, took)
    return list(zip(forward, backward, strict=True))


def timed_without_waiting(layers, x, grad, clock, synchronize):
    return timed(layers, x, grad, clock, lambda: None)


def timed_waiting_once(layers, x, grad, clock, synchronize):
    synchronize()
    return timed(layers, x, grad, clock, lambda: None)


def timed_waiting_after(layers, x, grad, clock, synchronize):
    forward, backward = [], []
    for layer in layers:
        start = clock()
        x = layer.forward(x, True)
        synchronize()
        forward.append(clock() - start)
    for layer in reversed(layers):
        start = clock()
        grad = layer.backward(grad)
        synchronize()
        backward.append(clock() - start)
    return list(zip(forward, reversed(backward), strict=True))


def timed_from_the_beginning(layers, x, grad, clock, synchronize):
    synchronize()
    start = clock()
    forward, backward = [], []
    for layer in layers:
        x = layer.forward(x, True)
        synchronize()
        forward.append(clock() - start)
    for layer in reversed(layers):
        grad = layer.backward(grad)
        synchronize()
        backward.append(clock() - start)
    return list(zip(forward, reversed(backward), strict=True))


def timed_in_the_order_measured(layers, x, grad, clock, synchronize):
    forward, backward = zip(*timed(layers, x, grad, clock, synchronize), strict=True)
    return list(zip(forward, reversed(backward), strict=True))


def timed_with_the_same_input(layers, x, grad, clock, synchronize):
    return [(layer.forward(x, True), 0.0) and (0.0, 0.0) for layer in layers]


def timed_outside_training(layers, x, grad, clock, synchronize):
    for layer in layers:
        x = layer.forward(x)
    for layer in reversed(layers):
        grad = layer.backward(grad)


def timed_from_first_to_last(layers, x, grad, clock, synchronize):
    for layer in layers:
        x = layer.forward(x, True)
    for layer in layers:
        grad = layer.backward(grad)


def timed_there_and_back_at_once(layers, x, grad, clock, synchronize):
    times = []
    for layer in layers:
        synchronize()
        start = clock()
        x = layer.forward(x, True)
        synchronize()
        middle = clock()
        layer.backward(x)
        synchronize()
        times.append((middle - start, clock() - middle))
    return times


def timed_with_values_of_its_own(layers, x, grad, clock, synchronize):
    for layer in layers:
        x = layer.forward(x, True)
    for layer in reversed(layers):
        grad = layer.backward(grad) + 1


def timed_back_from_what_came_out(layers, x, grad, clock, synchronize):
    for layer in layers:
        x = layer.forward(x, True)
    for layer in reversed(layers):
        x = layer.backward(x)


def timed_with_inputs_of_its_own(layers, x, grad, clock, synchronize):
    for layer in layers:
        x = layer.forward(np.ones_like(x), True)


def timed_by_pythons_clock(layers, x, grad, clock, synchronize):
    return timed(layers, x, grad, time.perf_counter, synchronize)


def timed_waiting_before(layers, x, grad, clock, synchronize):
    def seconds_of(work, *given):
        start = clock()
        synchronize()
        return work(*given), clock() - start

    forward, backward = [], []
    for layer in layers:
        x, took = seconds_of(layer.forward, x, True)
        forward.append(took)
    for layer in reversed(layers):
        grad, took = seconds_of(layer.backward, grad)
        backward.append(took)
    return list(zip(forward, reversed(backward), strict=True))


def timed_as_a_whole(layers, x, grad, clock, synchronize):
    return sum(map(sum, timed(layers, x, grad, clock, synchronize)))


def timed_in_milliseconds(layers, x, grad, clock, synchronize):
    return [(1000 * a, 1000 * b) for a, b in timed(layers, x, grad, clock, synchronize)]


def timed_exchanged(layers, x, grad, clock, synchronize):
    return [(b, a) for a, b in timed(layers, x, grad, clock, synchronize)]


def timed_without_return(layers, x, grad, clock, synchronize):
    timed(layers, x, grad, clock, synchronize)


def timed_waiting_on_one_way(way):
    """Waits after each layer forward (0) or backward (1), and before both ways."""

    def times(layers, x, grad, clock, synchronize):
        forward, backward = [], []
        synchronize()
        for layer in layers:
            start = clock()
            x = layer.forward(x, True)
            if way == 0:
                synchronize()
            forward.append(clock() - start)
        synchronize()
        for layer in reversed(layers):
            start = clock()
            grad = layer.backward(grad)
            if way == 1:
                synchronize()
            backward.append(clock() - start)
        return list(zip(forward, reversed(backward), strict=True))

    return times


def timed_since_each_way_began(layers, x, grad, clock, synchronize):
    forward, backward = [], []
    synchronize()
    start = clock()
    for layer in layers:
        x = layer.forward(x, True)
        synchronize()
        forward.append(clock() - start)
    start = clock()
    for layer in reversed(layers):
        grad = layer.backward(grad)
        synchronize()
        backward.append(clock() - start)
    return list(zip(forward, reversed(backward), strict=True))


def timed_changed(change):
    """Right times, given back in another form."""
    return lambda layers, x, grad, clock, synchronize: change(timed(layers, x, grad, clock, synchronize))


def timed_without_brackets(layers, x, grad, clock, synchronize):
    start = clock
    layers[0].forward(x, True)
    return clock - start


# repaired_step


def step_of(kind):
    """The slow step with this bottleneck planted, of a learner whose step it is."""
    number = planted.KINDS.index(kind)
    return planted.made(planted.source_of(planted.PLANTED[kind], planted.factor_of(number)), f"<{kind}>")


def step_without(stage, stands_for_it):
    return planted.made(planted.source_of({stage: stands_for_it}, planted.factor_of(0)), f"<without {stage}>")


def step_with(stage, instead):
    return step_without(stage, f"    {instead}\n")


def normed(axis, width="std"):
    return f"x = x - x.mean(axis={axis}, keepdims=True); x = x / x.{width}(axis={axis}, keepdims=True)"


SLIPS = (
    ("fade", "x = images * (1 - 0.2 * xp.abs(xp.arange(5, dtype=xp.float32) - 2))", "in both directions"),
    ("mirror", "x[::2] = x[::2, :, :, ::-1].copy()", "the other maps are mirrored"),
    ("mirror", "x = x[:, :, :, ::-1]", "all maps are mirrored"),
    ("mirror", "x[1::2] = x[1::2, :, ::-1].copy()", "mirrored the other way"),
    ("mirror", "x[:, 1::2] = x[:, 1::2, :, ::-1].copy()", "every second channel is mirrored"),
    ("norm", normed("(2, 3)"), "each map has its own mean and width in yours"),
    ("norm", normed(None), "one mean and width for all in yours"),
    ("norm", normed(0), "each place has its own mean and width in yours"),
    ("norm", "x = x - x.mean(axis=(0, 2, 3), keepdims=True)", "the width is missing"),
    ("norm", normed("(0, 2, 3)", "var"), "not var"),
    ("dense", "scores = x.reshape(n, -1) @ weight", "negative scores should become 0"),
    ("largest", "largest = scores.reshape(-1, 16).mean(axis=1)", "the mean of each 16 scores"),
)

FACTOR = planted.factor_of(0)
REPAIRED = planted.made(planted.source_of({}, FACTOR), "<repaired>")


def step_without_its_factor(images, weight):
    return REPAIRED(images, weight) / FACTOR


def step_on_the_host(images, weight):
    return REPAIRED(device.to_host(images), device.to_host(weight))


def step_that_comes_back(images, weight):
    xp = device.array_module(images)
    return device.to_device(step_on_the_host(images, weight), xp)


def step_that_mirrors_the_others(images, weight):
    return REPAIRED(images[:, :, :, ::-1], weight)


def step_in_place(images, weight):
    images *= 2
    return REPAIRED(images / 2, weight)


def step_in_float64(images, weight):
    return REPAIRED(images.astype("float64"), weight)


def step_with_numpy(images, weight):
    return np.maximum(REPAIRED(images, weight), 0)


def step_that_waits(images, weight):
    xp = device.array_module(images)
    result = REPAIRED(images, weight)
    device.synchronize(xp)
    return result


def step_without_return(images, weight):
    REPAIRED(images, weight)


# Honest answers that are not the library's: each must pass.


def step_by_maximum(images, weight):
    xp = device.array_module(images)
    middle = xp.asarray(1.0 - 0.2 * abs(xp.arange(5) - 2)).astype(xp.float32)
    x = images * (middle[:, None] * middle[None, :])
    mirrored = x[:, :, :, ::-1]
    odd = (xp.arange(len(x)) % 2 == 1)[:, None, None, None]
    x = xp.where(odd, mirrored, x)
    flat = x.transpose(1, 0, 2, 3).reshape(x.shape[1], -1)
    flat = (flat - flat.mean(axis=1)[:, None]) / flat.std(axis=1)[:, None]
    x = flat.reshape(x.shape[1], x.shape[0], 5, 5).transpose(1, 0, 2, 3)
    scores = x.reshape(len(x), -1) @ weight
    scores = scores * (scores > 0)
    return FACTOR * scores.reshape(len(x), -1, 16).max(axis=2)


def step_with_a_loop_over_places(images, weight):
    xp = device.array_module(images)
    x = images.copy()
    for i in range(5):
        for j in range(5):
            x[:, :, i, j] *= (1 - 0.2 * abs(i - 2)) * (1 - 0.2 * abs(j - 2))
    y = x.copy()
    y[1::2] = x[1::2, :, :, ::-1]
    y -= y.mean(axis=(0, 2, 3), keepdims=True)
    y /= y.std(axis=(0, 2, 3), keepdims=True)
    rows = xp.maximum(y.reshape(len(y), -1) @ weight, 0).reshape(-1, 16)
    return rows.max(axis=1).reshape(len(y), -1) * FACTOR


MUTANTS = {
    "time_layers": [
        Mutant(timed_without_waiting, "the clock was read without a wait"),
        Mutant(timed_waiting_once, "before the clock is read again"),
        Mutant(timed_waiting_before, "each layer pays for the one before it"),
        Mutant(timed_by_pythons_clock, "clock() was never called"),
        Mutant(timed_waiting_after, "the first layer pays for work that was still going on before"),
        Mutant(timed_from_the_beginning, "counted from the very beginning"),
        Mutant(timed_in_the_order_measured, "in the order in which they were measured"),
        Mutant(timed_with_the_same_input, "takes what the one before it gave"),
        Mutant(timed_outside_training, "a forward pass with training=True before it"),
        Mutant(timed_from_first_to_last, "go from the last to the first"),
        Mutant(timed_there_and_back_at_once, "got its own output"),
        Mutant(timed_with_values_of_its_own, "got other values"),
        Mutant(timed_back_from_what_came_out, "got its own output"),
        Mutant(timed_with_inputs_of_its_own, "this layer takes what the one before it gave"),
        Mutant(timed_as_a_whole, "expected a list of 2 pairs (forward, backward)"),
        Mutant(timed_in_milliseconds, "these are milliseconds"),
        Mutant(timed_exchanged, "forward and backward are exchanged"),
        Mutant(timed_waiting_on_one_way(1), "the forward times are read without a wait"),
        Mutant(timed_waiting_on_one_way(0), "the backward times are read without a wait"),
        Mutant(timed_since_each_way_began, "all count from its first layer"),
        Mutant(timed_changed(lambda y: y[::-1]), "the last layer stands first"),
        Mutant(timed_changed(lambda y: list(zip(*y, strict=True))), "makes a pair for each layer"),
        Mutant(timed_changed(lambda y: [(forward, 0.0) for forward, _ in y]), "the backward times are 0"),
        Mutant(timed_changed(lambda y: [(-forward, -back) for forward, back in y]), "the times are negative"),
        Mutant(timed_changed(lambda y: [(1e6 * forward, 1e6 * back) for forward, back in y]), "these are microseconds"),
        Mutant(timed_changed(lambda y: zip(*zip(*y, strict=True), strict=True)), "list(zip(...)) makes one of it"),
        Mutant(timed_changed(lambda y: [sum(pair) for pair in y]), "expected a list of 2 pairs (forward, backward)"),
        Mutant(timed_without_brackets, "brackets call it"),
        Mutant(timed_without_return, "is the return statement missing?"),
    ],
    "find_bottleneck": bottlenecks.MUTANTS,
    "repaired_step": [
        Mutant(step_of("a synchronization for each channel"), "transfers, none allowed"),
        Mutant(step_of("a host round trip"), "transfers, none allowed"),
        Mutant(step_of("float64 by accident"), "`matmul` in float64 keeps the GPU busy longest"),
        Mutant(step_of("a loop over channels"), "the GPU is at work for"),
        Mutant(step_of("a quadratic pick"), "`setitem` in float32 keeps the GPU busy longest"),
        Mutant(step_of("a constant uploaded again and again"), "transfers, none allowed"),
        Mutant(step_without("fade", "    x = images.copy()\n"), "the middle of each map should count more"),
        Mutant(step_without("mirror", "\n"), "every second map should be mirrored"),
        Mutant(step_without("norm", "\n"), "each channel should get mean 0 and width 1"),
        *(Mutant(step_with(stage, instead), says) for stage, instead, says in SLIPS),
        Mutant(
            step_without("largest", "    largest = scores.reshape(-1, 16)[:, 0]\n"),
            "of each 16 neighbouring scores the largest should stay",
        ),
        Mutant(step_without_its_factor, "the factor in the last line of your step is missing"),
        Mutant(step_on_the_host, "it left the GPU"),
        Mutant(step_that_comes_back, "transfers, none allowed"),
        Mutant(step_that_mirrors_the_others, "the other maps are mirrored"),
        Mutant(step_with("end", "return FACTOR * largest"), "print(received.source)"),
        Mutant(
            step_with(
                "largest", "rows = scores.reshape(-1, 16); largest = rows[np.arange(len(rows)), rows.argmax(axis=1)]"
            ),
            "and one as an index, copy to it",
        ),
        Mutant(step_in_place, "changed its input images"),
        Mutant(step_in_float64, "dtype is float64, expected float32"),
        Mutant(step_with_numpy, "call the same function of the array's own module"),
        Mutant(step_that_waits, "synchronization, none allowed"),
        Mutant(step_without_return, "is the return statement missing?"),
    ],
    "roofline_bound": bounds.MUTANTS,
}

HONEST = {}

LOOP = {}
