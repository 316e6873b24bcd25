"""Wrong and imperfect answers to lesson 07."""

import math
import time
from collections import Counter
from operator import itemgetter

import numpy as np

from unrolled import device
from unrolled.checks.exercises.l07_profiling import planted

from . import Mutant, result_of, solution

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


def timed_with_the_same_input(layers, x, grad, clock, synchronize):
    return [(layer.forward(x, True), 0.0) and (0.0, 0.0) for layer in layers]


def timed_outside_training(layers, x, grad, clock, synchronize):
    for layer in layers:
        x = layer.forward(x)
    for layer in reversed(layers):
        grad = layer.backward(grad)


def timed_by_pythons_clock(layers, x, grad, clock, synchronize):
    return timed(layers, x, grad, time.perf_counter, synchronize)


# repaired_step


def step_of(kind):
    """The slow step with this bottleneck planted, of a learner whose step it is."""
    number = planted.KINDS.index(kind)
    return planted.made(planted.source_of(planted.PLANTED[kind], planted.factor_of(number)), f"<{kind}>")


FACTOR = planted.factor_of(0)
REPAIRED = planted.made(planted.source_of({}, FACTOR), "<repaired>")


def step_without_its_factor(images, weight):
    return REPAIRED(images, weight) / FACTOR


def step_on_the_host(images, weight):
    return REPAIRED(device.to_host(images), device.to_host(weight))


def step_that_mirrors_the_others(images, weight):
    return REPAIRED(images[:, :, :, ::-1], weight)


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


# roofline_bound


def step_bound(kernels, peak, bandwidth, launch, slower=max):
    memory = arithmetic = 0.0
    for flops, nbytes in kernels:
        seconds = slower(flops / peak, nbytes / bandwidth)
        if seconds == flops / peak:
            arithmetic += seconds
        else:
            memory += seconds
    limit = "memory" if memory > arithmetic else "arithmetic"
    work, host = memory + arithmetic, len(kernels) * launch
    return (host, "launches") if host > work else (work, limit)


def limit_of(kernels, peak, bandwidth):
    """What sets the pace of these kernels, without their launches."""
    return step_bound(kernels, peak, bandwidth, 0)[1]


def bound_named_by_count(kernels, peak, bandwidth, launch):
    seconds, limit = step_bound(kernels, peak, bandwidth, launch)
    slow = sum(nbytes / bandwidth > flops / peak for flops, nbytes in kernels)
    return seconds, limit if limit == "launches" else "memory" if slow > len(kernels) / 2 else "arithmetic"


def bound_named_by_the_largest_of_three(kernels, peak, bandwidth, launch):
    seconds, _ = step_bound(kernels, peak, bandwidth, launch)
    sums = {"memory": 0.0, "arithmetic": 0.0, "launches": len(kernels) * launch}
    for kernel in kernels:
        alone, limit = step_bound([kernel], peak, bandwidth, 0)
        sums[limit] += alone
    return seconds, max(sums, key=sums.get)


def bound_never_named_launches(kernels, peak, bandwidth, launch):
    return step_bound(kernels, peak, bandwidth, launch)[0], limit_of(kernels, peak, bandwidth)


MUTANTS = {
    "time_layers": [
        Mutant(timed_by_pythons_clock, "clock() was never called"),
        Mutant(timed_with_the_same_input, "takes what the one before it gave"),
        Mutant(timed_outside_training, "a forward pass with training=True before it"),
    ],
    "find_bottleneck": [
        Mutant(result_of("find_bottleneck", lambda pair: pair[::-1]), "the pair is the other way round"),
        Mutant(result_of("find_bottleneck", itemgetter(0)), "expected a pair (line, seconds) of numbers, got int"),
    ],
    "repaired_step": [
        Mutant(step_without_its_factor, "the factor in the last line of your step is missing"),
        Mutant(step_on_the_host, "it left the GPU"),
        Mutant(step_that_mirrors_the_others, "the other maps are mirrored"),
    ],
    "roofline_bound": [
        Mutant(bound_named_by_count, "count the seconds of the kernels, not the kernels"),
        Mutant(bound_named_by_the_largest_of_three, "longer than memory and arithmetic together"),
        Mutant(bound_never_named_launches, "all launches 500 µs"),
    ],
}


# Right answers in other styles


def changed(exercise, *changes):
    return solution("07_profiling", exercise, *changes)


class Watch:
    """A clock that waits before it is read."""

    def __init__(self, clock, synchronize):
        self.clock, self.synchronize = clock, synchronize

    def __call__(self):
        self.synchronize()
        return self.clock()


def timed_by_a_class(layers, x, grad, clock, synchronize):
    watch, times = Watch(clock, synchronize), {}
    for layer in layers:
        start = watch()
        x = layer.forward(x, training=True)
        times[layer, "forward"] = watch() - start
    for layer in layers[::-1]:
        start = watch()
        grad = layer.backward(grad)
        times[layer, "backward"] = watch() - start
    return [(times[layer, "forward"], times[layer, "backward"]) for layer in layers]


def timed_by_readings(layers, x, grad, clock, synchronize):
    watch = Watch(clock, synchronize)
    readings = [watch()]
    for layer in layers:
        x = layer.forward(x, True)
        readings.append(watch())
    for layer in reversed(layers):
        grad = layer.backward(grad)
        readings.append(watch())
    spans = np.diff(readings)
    return np.stack([spans[: len(layers)], spans[: len(layers) - 1 : -1]], axis=1)


def blamed(trace):
    """Yield (line, seconds) of each piece of work and each gap."""
    done, waiting = 0, None
    for e in sorted(trace, key=lambda e: e["end"]):
        yield e["line"] if waiting is None else waiting, e["start"] - done
        yield e["line"], e["end"] - e["start"]
        done, waiting = e["end"], e["line"] if e["waits"] else None


def found_by_a_counter(trace):
    seconds = Counter()
    for line, share in blamed(trace):
        seconds[line] += share
    return seconds.most_common(1)[0]


def found_by_sums(trace):
    shares = list(blamed(trace))
    return list(max(((n, sum(s for line, s in shares if line == n)) for n, _ in shares), key=itemgetter(1)))


def bound_by_a_comprehension(kernels, peak, bandwidth, launch):
    memory = sum(n / bandwidth for f, n in kernels if n / bandwidth > f / peak)
    arithmetic = sum(f / peak for f, n in kernels if n / bandwidth <= f / peak)
    ways = [
        (memory + arithmetic, "arithmetic" if arithmetic >= memory else "memory"),
        (len(kernels) * launch, "launches"),
    ]
    return max(ways, key=itemgetter(0))


def bound_by_intensity(kernels, peak, bandwidth, launch):
    ridge, seconds = peak / bandwidth, {"memory": [], "arithmetic": []}
    for flops, nbytes in kernels:
        slow = "memory" if flops < ridge * nbytes else "arithmetic"
        seconds[slow].append(nbytes / bandwidth if slow == "memory" else flops / peak)
    sums = {name: math.fsum(each) for name, each in seconds.items()}
    host = launch * len(kernels)
    return [host, "launches"] if host > sum(sums.values()) else [sum(sums.values()), max(sums, key=sums.get)]


def step_without_copies(images, weight):
    xp = device.array_module(images)
    middle = 1 - abs(xp.arange(-2, 3).astype("float32")) / 5
    x = xp.einsum("ncij,i,j->ncij", images, middle, middle)
    x = xp.concatenate([x[::2], x[1::2, :, :, ::-1]])
    x = (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)
    y = xp.maximum(x.reshape(len(x), -1) @ weight, 0).reshape(len(x), -1, 16).max(axis=2)
    half, found = -(-len(x) // 2), xp.empty_like(y)
    found[::2], found[1::2] = y[:half], y[half:]
    return found * FACTOR


RIGHT = {
    "time_layers": [
        timed,
        timed_by_a_class,
        timed_by_readings,
        changed(
            "time_layers",
            ("backward.append(end - start)", "backward.insert(0, end - start)"),
            ("reversed(backward)", "backward"),
        ),
    ],
    "find_bottleneck": [
        found_by_a_counter,
        found_by_sums,
        changed(
            "find_bottleneck",
            (
                "seconds, done, waited = {}",
                "import collections\n    seconds, done, waited = collections.defaultdict(float)",
            ),
        ),
        changed("find_bottleneck", ("return line, seconds[line]", "return [line, np.float64(seconds[line])]")),
    ],
    "repaired_step": [REPAIRED, step_by_maximum, step_with_a_loop_over_places, step_without_copies],
    "roofline_bound": [
        step_bound,
        bound_by_a_comprehension,
        bound_by_intensity,
        changed(
            "roofline_bound",
            ("    for flops, nbytes in kernels:", "    for kernel in kernels:\n        flops, nbytes = kernel"),
        ),
    ],
}
