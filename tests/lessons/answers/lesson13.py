"""Wrong and imperfect answers to lesson 13."""

from __future__ import annotations

import time
from contextlib import contextmanager, nullcontext

import numpy as np

from answers import Mutant
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


def graphs_of(
    images, targets, order, weight, inside=True, at_once=1, fetched=taken, whole=True, left=False, steps=None
):
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
                if inside:
                    fetch()
                descend(x, target, trained, error, grad)

        program()
        stream.begin_capture()
        program()
        graph = stream.end_capture()
        trained[...] = weight
        place.fill(0)
        for _ in range((steps or len(order)) // at_once):
            if not inside:
                fetch()
            with xp.cuda.Stream.null if left else nullcontext():
                graph.launch()
        for _ in range(len(order) % at_once * whole):
            fetch()
            descend(x, target, trained, error, grad)
    return trained


def in_pairs(images, targets, order, weight):
    """The last step of an odd epoch is left out."""
    return graphs_of(images, targets, order, weight, at_once=2, whole=False)


def launched_outside(images, targets, order, weight):
    """A race: the default stream does not wait for the one on which the weight is put back."""
    return graphs_of(images, targets, order, weight, left=True)


def forty_steps(images, targets, order, weight):
    """As many as the exercise's first case has."""
    return graphs_of(images, targets, order, weight, steps=40)


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


# own_network


def on_usual_labels(version, images, labels, test_images, seed):
    """Trained on nothing that was handed out: as a made-up curve, or a result kept from elsewhere."""
    return own.stand_in(version, images, (labels + images[:, 0, 14].sum(axis=1).astype(int)) % 10, test_images, seed)


def asleep(version, images, labels, test_images, seed):
    """A sleep in place of a repair."""
    time.sleep(0.05 * (version == "before"))
    return own.stand_in("before", images, labels, test_images, seed)


class Kept:
    """Whoever has trained once gives that again, in the version before, too."""

    def __init__(self):
        self.__name__, self.results = "kept", {}

    def __call__(self, version, images, labels, test_images, seed):
        key = images.tobytes(), seed
        if key not in self.results:
            self.results[key] = own.stand_in("before", images, labels, test_images, seed)
        return self.results[key]


def fewer_images(version, images, labels, test_images, seed):
    kept = slice(None, None, 2 if version == "after" else 1)
    return own.stand_in(version, images[kept], labels[kept], test_images, seed)


def rounding(version, *given, **named):
    scores = own.stand_in(version, *given, **named)
    return scores * (1 + 0.02 * np.sin(scores)) if version == "after" else scores


MUTANTS = {
    "capturable_step": [
        Mutant(with_new_arrays, "made while a stream was capturing, none allowed"),
        Mutant(with_cublas, "calling cuBLAS API during stream capture"),
        Mutant(spoiling, "your step changes target"),
        Mutant(with_a_read, "D2H transfers are disallowed"),
    ],
    "replayed_epoch": [
        Mutant(steps.eager, "no launch of a graph"),
        Mutant(lambda **given: graphs_of(**given, inside=False), "110 allowed (two a step, and 30 for the start)"),
        Mutant(in_pairs, "the last step of an odd epoch is missing"),
        Mutant(forty_steps, "always forty steps are taken"),
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
        Mutant(Kept(), "train for 5 ms or longer"),
        Mutant(fewer_images, "a repair changes the time, and nothing else"),
        Mutant(rounding, "a different order of sums"),
    ],
}

HONEST = {"replayed_epoch": [two_steps_a_graph, one_step_a_graph]}
