"""Wrong and imperfect answers to lesson 13."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext
from functools import partial
from operator import mul

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from answers import Mutant, in_place
from unrolled import kernels, nn
from unrolled.checks.exercises.l13_capstone import against_the_clock, own, steps
from unrolled.device import array_module

# capturable_step


def with_new_arrays(x, target, weight, velocity, rate, error, grad):
    xp = array_module(x)
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(xp.ascontiguousarray(x.T), error, out=grad)
    velocity[...] = 0.9 * velocity - rate * (grad / len(x))
    weight += velocity
    rate *= 0.99


def with_cublas(x, target, weight, velocity, rate, error, grad):
    error[...] = x @ weight - target
    grad[...] = x.T @ error / len(x)
    velocity[...] = 0.9 * velocity - grad * rate
    weight += velocity
    rate *= 0.99


def step_with(x, target, weight, velocity, rate, error, grad, decay, rate_now):
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad /= len(x)
    grad += decay
    grad *= rate_now
    velocity *= 0.9
    velocity -= grad
    weight += velocity
    rate *= 0.99


def spoiling(x, target, weight, velocity, rate, error, grad):
    """Right, but the targets of the batch are lost."""
    step_with(x, target, weight, velocity, rate, error, grad, 0, rate)
    target -= error


def with_a_read(x, target, weight, velocity, rate, error, grad):
    step_with(x, target, weight, velocity, rate, error, grad, 0, float(rate[0]))


def with_outs(x, target, weight, velocity, rate, error, grad, decayed=None):
    """Right: nothing but functions that say where their results go; the error is divided, and not the gradient."""
    xp = array_module(x)
    xp.subtract(kernels.matmul(x, weight, error), target, out=error)
    xp.divide(error, len(x), out=error)
    kernels.matmul(x.T, error, grad)
    if decayed is not None:
        xp.add(grad, xp.multiply(0.01, weight, out=decayed), out=grad)
    xp.multiply(velocity, 0.9, out=velocity)
    xp.subtract(velocity, xp.multiply(grad, rate, out=grad), out=velocity)
    xp.add(weight, velocity, out=weight)
    xp.multiply(rate, 0.99, out=rate)


STEP_IN_OTHER_WORDS = (  # of the variant, too
    ("velocity -= grad", "grad *= -1\n    velocity += grad"),
    ("velocity *= 0.9\n    velocity -= grad", "grad /= 0.9\n    velocity -= grad\n    velocity *= 0.9"),
    (
        "grad *= rate\n    velocity *= 0.9\n    velocity -= grad",
        "velocity /= rate\n    velocity *= 0.9\n    velocity -= grad\n    velocity *= rate",
    ),
    (
        "grad *= rate\n    velocity *= 0.9\n",
        "for array, factor in ((grad, rate), (velocity, 0.9)):\n        array[:] *= factor\n",
    ),
)


# replayed_epoch


def descend(x, target, weight, error, grad):
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad *= 0.05 / len(x)
    weight -= grad


def taken(source, rows, out):
    """Fetch a batch, as it should be."""
    array_module(source).take(source, rows[0], axis=0, out=out)


def all_rows_taken(source, rows, out):
    array_module(source).take(source, rows, axis=0, out=out)


@contextmanager
def own_stream(xp):
    """A stream that begins after the work before it, and whose work is done before what follows."""
    stream = xp.cuda.Stream(non_blocking=True)
    stream.wait_event(xp.cuda.Stream.null.record())
    with stream:
        yield stream
    xp.cuda.Stream.null.wait_event(stream.record())


def graphs_of(images, targets, order, weight, at_once=1, fetched=taken, left=False):
    """An epoch by a graph, in right and wrong forms; `at_once` steps in a graph, and what is left over from Python."""
    xp = array_module(images)
    with own_stream(xp) as stream:
        trained, place, rows = weight.copy(), xp.zeros(1, order.dtype), order[:1].copy()
        x, target = images[: rows.size].copy(), targets[: rows.size].copy()
        error, grad = xp.empty_like(target), xp.empty_like(weight)

        def fetch():
            xp.take(order, place, axis=0, out=rows)
            fetched(images, rows, x)
            fetched(targets, rows, target)
            xp.add(place, 1, out=place)

        def program():
            for _ in range(at_once):
                fetch()
                descend(x, target, trained, error, grad)

        program()
        stream.begin_capture()
        program()
        graph = stream.end_capture()
        trained[...] = weight
        place.fill(0)
        for _ in range(len(order) // at_once):
            with xp.cuda.Stream.null if left else nullcontext():
                graph.launch()
        for _ in range(len(order) % at_once):
            fetch()
            descend(x, target, trained, error, grad)
    return trained


def launched_outside(images, targets, order, weight):
    """A race: the default stream does not wait for the one on which the weight is put back."""
    return graphs_of(images, targets, order, weight, left=True)


def two_steps_a_graph(images, targets, order, weight):
    return graphs_of(images, targets, order, weight, at_once=2)


def one_step_a_graph(images, targets, order, weight):
    return graphs_of(images, targets, order, weight)


# time_to_accuracy


def one_epoch(images, labels, seed):
    made, optimizer = against_the_clock.network(seed), nn.Adam(1e-3)
    for at in range(0, len(images), 64):
        made.loss_and_scores(images[at : at + 64], labels[at : at + 64])
        optimizer.step(made.parameters, made.gradients)
    return made.parameters


def few_epochs(images, labels, seed):
    """A fifth of the recipe's epochs: about 96 % right."""
    made, optimizer, rng = against_the_clock.network(seed), nn.Adam(5e-3), np.random.default_rng(seed)
    batches = [rows for _ in range(6) for rows in np.array_split(rng.permutation(len(images)), len(images) // 64)]
    for done, rows in enumerate(batches):
        made.loss_and_scores(np.roll(images[rows], tuple(rng.integers(-1, 2, 2)), (2, 3)), labels[rows])
        optimizer.step(made.parameters, made.gradients, 1 - done / len(batches))
    return made.parameters


def untrained(images, labels, seed):
    return against_the_clock.network(seed).parameters


def on_copies(images, labels, seed, optimizer, averaged=1):
    """Right: two epochs of nine shifted copies of all images; parameters may be averaged over the last steps."""
    layers = nn.Conv2d(16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(100), nn.ReLU()
    network, rng, found = nn.Sequential(*layers, nn.Linear(10), seed=seed), np.random.default_rng(seed), []
    network.build(images.shape[1:])
    x = np.concatenate([np.roll(images, (i, j), (2, 3)) for i in (-1, 0, 1) for j in (-1, 0, 1)])
    steps = nn.compiled(network, optimizer(), 64)
    for k, rows in enumerate(np.array_split(np.append(*rng.permuted([range(len(x))] * 2, axis=1)), 40)):
        steps.epoch(x, np.tile(labels, 9), rows, min(1, 0.025 * (40 - k + averaged)))
        found.append(network.parameters.copy())
    return np.mean(found[-averaged:], axis=0)


# ablation


def once_each(run, causes):
    everything = run()
    return {cause: run(**{cause: False}) / everything for cause in causes}


def one_after_the_other(run, causes):
    ratios = {cause: [] for cause in causes}
    for _ in range(9):
        off = {}
        before = run()
        for cause in causes:
            off[cause] = False
            after = run(**off)
            ratios[cause].append(after / before)
            before = after
    return {cause: float(np.median(found)) for cause, found in ratios.items()}


def all_others_off(run, causes):
    nothing = dict.fromkeys(causes, False)
    ratios = {cause: [] for cause in causes}
    for _ in range(9):
        for cause in causes:
            ratios[cause].append(run(**nothing) / run(**{**nothing, cause: True}))
    return {cause: float(np.median(found)) for cause, found in ratios.items()}


def in_rounds(run, causes):
    """Right: all settings in turns, from the last cause to the first, and one array of seconds."""
    off = [{}, *({cause: False} for cause in causes[::-1])]
    seconds = np.array([[run(**switches) for switches in off] for _ in range(11)])
    return dict(zip(causes[::-1], np.median(seconds[:, 1:] / seconds[:, :1], axis=0), strict=True))


def between_two(run, causes):
    """Right: a run without a cause is compared with the mean of those before and after it."""

    def gain(cause):
        before, without, after = run(), run(**{cause: False}), run()
        return 2 * without / (before + after)

    return {cause: sorted(gain(cause) for _ in range(9))[4] for cause in causes}


# own_network


def odds_of(scores):
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def dense_layer(version, images, labels, test_images, seed):
    """Right: NumPy alone; image by image before its repair."""
    x, wanted = images.reshape(len(images), -1), np.eye(10, dtype=np.float32)[labels]
    weight = np.random.default_rng(seed).normal(0, 0.01, (x.shape[1], 10)).astype(np.float32)
    for _ in range(8):
        parts = np.split(np.arange(len(x)), 1 if version == "after" else len(x))
        weight -= 0.1 / len(x) * sum(x[rows].T @ (odds_of(x[rows] @ weight) - wanted[rows]) for rows in parts)
    return test_images.reshape(-1, len(weight)) @ weight


def solved(version, images, labels, test_images, seed):
    """Right: hidden units stay as they are drawn, and those after them solve equations."""
    drawn = np.random.default_rng(seed).normal(0, 0.1, (28 * 28, 200))
    hidden, tests = (np.tanh(each.reshape(-1, 28 * 28) @ drawn) for each in (images, test_images))
    products = hidden.T @ hidden if version == "after" else sum(map(np.outer, hidden, hidden))
    return np.float32(tests @ np.linalg.solve(products + 3 * np.eye(200), hidden.T @ np.eye(10)[labels]))


def in_lists(version, images, labels, test_images, seed):
    """Right: means of pixels, in lists before the repair."""
    x, tests = (each.reshape(-1, 7, 4, 7, 4).mean((2, 4)).reshape(-1, 49) for each in (images, test_images))
    weight = np.random.default_rng(seed).normal(size=(10, 49)) / 50
    for _ in range(4):
        scores = x @ weight.T
        if version == "before":
            scores = np.array([[sum(map(mul, row, pixels)) for row in weight.tolist()] for pixels in x.tolist()])
        weight -= 0.5 / len(x) * (odds_of(scores) - np.eye(10)[labels]).T @ x
    return tests @ weight.T


def narrowed(version, images, labels, test_images, seed):
    """Right: float64 before its repair. Rounding moves units across 0 in some turns, and then tells."""
    dtype = {"before": np.float64, "after": np.float32}[version]
    network = nn.Sequential(nn.Flatten(), nn.Linear(300), nn.ReLU(), nn.Linear(10), seed=seed, dtype=dtype)
    network.build(images.shape[1:])
    for x, wanted in zip(np.split(images.astype(dtype), 8), np.split(labels, 8), strict=True):
        network.loss_and_scores(x, wanted)
        network.parameters -= dtype(0.1) * network.gradients
    return network.forward(test_images.astype(dtype))


def drawn_filters(version, images, labels, test_images, seed):
    """Right: a convolution that stays as it is drawn, window by window before its repair."""
    filters = np.random.default_rng(seed).normal(0, 0.1, (49, 4))

    def features(x):
        windows = sliding_window_view(x[:, 0], (7, 7), axis=(1, 2))[:, ::3, ::3].reshape(-1, 49)
        y = windows @ filters if version == "after" else np.array([np.dot(window, filters) for window in windows])
        return np.maximum(y, 0).reshape(len(x), -1)

    x = features(images)
    return features(test_images) @ np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T @ np.eye(10)[labels])


def on_usual_labels(version, images, labels, test_images, seed):
    """Trained on nothing that was handed out: as a made-up curve, or a result kept from elsewhere."""
    return own.stand_in(version, images, (labels + images[:, 0, 14].sum(axis=1).astype(int)) % 10, test_images, seed)


def asleep(version, images, labels, test_images, seed):
    """A sleep in place of a repair."""
    time.sleep(0.05 * (version == "before"))
    return own.stand_in("before", images, labels, test_images, seed)


def fewer_images(version, images, labels, test_images, seed):
    kept = slice(None, None, 2 if version == "after" else 1)
    return own.stand_in(version, images[kept], labels[kept], test_images, seed)


MUTANTS = {
    "capturable_step": [
        Mutant(with_cublas, "calling cuBLAS API during stream capture"),
        Mutant(spoiling, "your step changes target"),
        Mutant(with_a_read, "D2H transfers are disallowed"),
    ],
    "replayed_epoch": [
        Mutant(steps.eager, "no launch of a graph"),
        Mutant(launched_outside, "what stands outside of `with stream:` goes to the default stream"),
        Mutant(lambda **given: graphs_of(**given, fetched=all_rows_taken), "the batch is rows[0]"),
    ],
    "time_to_accuracy": [
        Mutant(untrained, "hardly better than guessing"),
        Mutant(one_epoch, "not far enough"),
        Mutant(few_epochs, "about 98% are asked"),
    ],
    "ablation": [
        Mutant(once_each, "repeat, and take the median"),
        Mutant(one_after_the_other, "turn each on again"),
        Mutant(all_others_off, "leave them on, and turn off one"),
    ],
    "own_network": [
        Mutant(on_usual_labels, "of the test images are right, at least 20% are asked"),
        Mutant(asleep, "sleeping takes no CPU time"),
        Mutant(fewer_images, "a repair changes the time, and nothing else"),
    ],
}

RIGHT = {
    "capturable_step": [with_outs, *in_place("capturable_step", *STEP_IN_OTHER_WORDS)],
    "replayed_epoch": in_place(
        "replayed_epoch",
        (
            "graph = captured(program, stream)",
            "program()\n        stream.begin_capture()\n        program()\n        graph = stream.end_capture()",
        ),
        (
            "xp.take(images, rows[0], axis=0, out=x)",
            "xp.take(images, rows, axis=0, out=x[None])",
        ),
        (
            "for _ in range(len(order)):\n            graph.launch()",
            "left = order.shape[0]\n        while left:\n            graph.launch()\n            left -= 1",
        ),
    ),
    "time_to_accuracy": [
        partial(on_copies, optimizer=lambda: nn.Adam(5e-3), averaged=15),
        partial(on_copies, optimizer=lambda: nn.SGD(0.1, momentum=0.9, nesterov=True)),
        *in_place(
            "time_to_accuracy",
            ("nn.Adam(0.014), 32)", "nn.SGD(0.08, momentum=0.9, nesterov=True), 32)"),
            (
                "order = [rng.permutation(n) + n * rng.integers(9, size=n) for _ in range(parts // 2)]",
                "order = [rng.permutation(9 * n)[:n] for _ in range(parts)]",
            ),
            ("min(5 * done, 1.25 * (1 - done))", "0.5 + 0.5 * np.cos(np.pi * done)"),
        ),
    ],
    "ablation": [
        *(in_rounds, between_two),
        *in_place(
            "ablation",
            (
                "everything = run()\n            ratios[cause].append(run(**{cause: False}) / everything)",
                "ratios[cause] += [run(**{cause: False}) / run()]",
            ),
            (
                "    for _ in range(9):\n        for cause in causes:\n",
                "    for cause in sorted(causes):\n        for _ in range(15):\n",
            ),
        ),
    ],
    "own_network": [dense_layer, solved, in_lists, narrowed, drawn_filters],
}
HONEST = {"replayed_epoch": [two_steps_a_graph, one_step_a_graph]}
