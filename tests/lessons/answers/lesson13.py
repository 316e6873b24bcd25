"""Wrong and imperfect answers to lesson 13."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from answers import Mutant
from unrolled import data, kernels, nn
from unrolled.checks.exercises.l13_capstone import against_the_clock, factors, own, steps
from unrolled.device import array_module

# capturable_step


def frozen(at):
    """A step whose rate is a number of Python: the first one, or that of a counter that the capture has seen."""
    calls = []

    def step(x, target, weight, velocity, rate, error, grad):
        number = steps.FIRST_RATE * (steps.FALLS ** len(calls) if at == "capture" and calls else 1)
        calls[:] = [1]  # the counter of the program; a check calls it once before
        kernels.matmul(x, weight, out=error)
        error -= target
        kernels.matmul(x.T, error, out=grad)
        grad *= number / len(x)
        velocity *= 0.9
        velocity -= grad
        weight += velocity
        rate *= 0.99

    return step


def with_new_arrays(x, target, weight, velocity, rate, error, grad):
    xp = array_module(x)
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(xp.ascontiguousarray(x.T), error, out=grad)
    velocity[...] = 0.9 * velocity - rate * (grad / len(x))
    weight += velocity
    rate *= 0.99


def with_a_new_velocity(x, target, weight, velocity, rate, error, grad):
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad /= len(x)
    velocity = 0.9 * velocity - rate * grad
    weight += velocity
    rate *= 0.99


def with_a_new_rate(x, target, weight, velocity, rate, error, grad):
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad /= len(x)
    grad *= rate
    velocity *= 0.9
    velocity -= grad
    weight += velocity
    rate = rate * 0.99


def without_momentum(x, target, weight, velocity, rate, error, grad):
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad /= len(x)
    grad *= rate
    weight -= grad
    rate *= 0.99


def with_cublas(x, target, weight, velocity, rate, error, grad):
    error[...] = x @ weight - target
    grad[...] = x.T @ error / len(x)
    velocity[...] = 0.9 * velocity - grad * rate
    weight += velocity
    rate *= 0.99


def with_a_read(x, target, weight, velocity, rate, error, grad):
    kernels.matmul(x, weight, out=error)
    error -= target
    kernels.matmul(x.T, error, out=grad)
    grad *= float(rate[0]) / len(x)
    velocity *= 0.9
    velocity -= grad
    weight += velocity
    rate *= 0.99


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


def new_rows(source, rows, out):
    out[...] = source[rows[0]]


@contextmanager
def own_stream(xp):
    """A stream that begins after the work before it, and whose work is done before what follows."""
    stream = xp.cuda.Stream(non_blocking=True)
    stream.wait_event(xp.cuda.Stream.null.record())
    with stream:
        yield stream
    xp.cuda.Stream.null.wait_event(stream.record())


def graphs_of(
    images, targets, order, weight, inside=True, back="wp", first=False, launches=0, at_once=1, fetched=taken
):  # fmt: skip
    """An epoch by a graph, in right and wrong forms; `at_once` steps in a graph, as far as they divide the epoch.

    Put `back` after the run that warms up: the weight (w), or another array for it (W), and the place (p).
    """
    xp = array_module(images)
    with own_stream(xp) as stream:
        trained, place, rows = weight.copy(), xp.zeros(1, order.dtype), order[:1].copy()
        x, target = images[: rows.size].copy(), targets[: rows.size].copy()
        error, grad = xp.empty_like(target), xp.empty_like(weight)
        if first:
            xp.take(images, order[0], axis=0, out=x)
            xp.take(targets, order[0], axis=0, out=target)

        def fetch():
            xp.take(order, place, axis=0, out=rows)
            fetched(images, rows, x)
            fetched(targets, rows, target)
            xp.add(place, 1, out=place)

        def program():
            for _ in range(at_once):
                if inside and not first:
                    fetch()
                descend(x, target, trained, error, grad)

        program()
        stream.begin_capture()
        program()
        graph = stream.end_capture()
        if "w" in back:
            trained[...] = weight
        if "W" in back:
            trained = weight.copy()
        if "p" in back:
            place.fill(0)
        for _ in range(len(order) // at_once + launches):
            if not inside:
                fetch()
            graph.launch()
    return trained


def captured_in_each_step(images, targets, order, weight, counted=True, back_in_each=False):
    """Captures anew for each row of order; each capture runs the program once."""
    xp = array_module(images)
    with own_stream(xp) as stream:
        trained, place, rows = weight.copy(), xp.zeros(1, order.dtype), order[:1].copy()
        x, target = images[: rows.size].copy(), targets[: rows.size].copy()
        error, grad = xp.empty_like(target), xp.empty_like(weight)

        def program():
            if counted:
                xp.take(order, place, axis=0, out=rows)
            taken(images, rows, x)
            taken(targets, rows, target)
            descend(x, target, trained, error, grad)
            xp.add(place, 1, out=place)

        for each in range(len(order)):
            rows[...] = order[each : each + 1]
            program()
            stream.begin_capture()
            program()
            graph = stream.end_capture()
            if back_in_each:
                trained[...] = weight
                place.fill(0)
            graph.launch()
    return trained


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


def trained_once():
    """Trains in the first call, and gives the same in all others."""
    kept = []

    def time_to_accuracy(images, labels, seed):
        if not kept:
            kept.append(one_epoch(images, labels, seed))
        return kept[0]

    return time_to_accuracy


def trained_before():
    """Trains on from weights that saw digits before, whatever the seed."""
    digits = data.digits()
    before = against_the_clock.network(0)
    epochs(before, 5e-3, 64, 6, against_the_clock.halved(digits.images), digits.labels)

    def time_to_accuracy(images, labels, seed):
        made = against_the_clock.network(seed)
        made.parameters[...] = before.parameters
        return epochs(made, 5e-3, 64, 6, images, labels)

    return time_to_accuracy


def epochs(network, rate, batch, count, images, labels):
    """Train in compiled steps, without shifts and with one rate; return the parameters."""
    steps, rng = nn.compiled(network, nn.Adam(rate), batch), np.random.default_rng(0)
    for _ in range(count):
        steps.epoch(images, labels, rng.permutation(len(images)))
    return network.parameters


def too_fast(images, labels, seed):
    return epochs(against_the_clock.network(seed), 0.1, 32, 12, images, labels)


def normalized(images, labels, seed):
    images = (images - images.mean()) / images.std()
    return epochs(against_the_clock.network(seed), 5e-3, 64, 12, images, labels)


def from_minus_one_to_one(images, labels, seed):
    return epochs(against_the_clock.network(seed), 5e-3, 64, 12, 2 * images - 1, labels)


def on_the_notebooks_own(images, labels, seed):
    digits = data.digits()
    own_images = against_the_clock.halved(digits.images)
    return epochs(against_the_clock.network(seed), 5e-3, 64, 12, own_images, digits.labels)


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


def all_others_off_once(run, causes):
    """One run of each: what these factors are cannot be told, only how they came about."""
    nothing = dict.fromkeys(causes, False)
    return {cause: run(**nothing) / run(**{**nothing, cause: True}) for cause in causes}


def first_all_then_all(run, causes):
    everything = np.median([run() for _ in range(40)])
    return {cause: float(np.median([run(**{cause: False}) for _ in range(40)]) / everything) for cause in causes}


def with_means(run, causes):
    ratios = {cause: [] for cause in causes}
    for _ in range(9):
        for cause in causes:
            everything = run()
            ratios[cause].append(run(**{cause: False}) / everything)
    return {cause: float(np.mean(found)) for cause, found in ratios.items()}


def with_means_of_the_other_order(run, causes):
    return {cause: float(np.mean([run(**{cause: False}) / run() for _ in range(9)])) for cause in causes}


def one_pair_each(run, causes):
    return {cause: run(**{cause: False}) / run() for cause in causes}


def shortest_of_five(run, causes):
    """Warmed up, but not in pairs: the machine gets slower from the first setting to the last."""
    run()
    everything = min(run() for _ in range(5))
    return {cause: min(run(**{cause: False}) for _ in range(5)) / everything for cause in causes}


def upside_down(run, causes):
    return {cause: 1 / factor for cause, factor in factors.turned_off_alone(run, causes).items()}


# own_network


def without_a_seed():
    calls = []

    def own_network(version, seed):
        calls.append(version)
        return np.full(3, len(calls), np.float32)

    return own_network


def numbers(version, seed):
    """No network at all, though its numbers fall."""
    return np.sort(np.random.default_rng(seed).standard_normal(8))[::-1].copy()


def uphill(version, seed):
    return own.stand_in(version, seed)[::-1].copy()


def other_order_of_sums(version, seed):
    """What rounding leads to, with weights that grow: more difference with each step."""
    losses = own.stand_in(version, seed)
    return losses * (1 + 1e-7 * 1.2 ** np.arange(len(losses), dtype=np.float32)) if version == "after" else losses


def other_batch(version, seed):
    return own.stand_in(version, seed)[:: 4 if version == "after" else 1].copy()


MUTANTS = {
    "capturable_step": [
        Mutant(frozen("first"), "the rate is frozen at its first value"),
        Mutant(frozen("capture"), "does not count launches"),
        Mutant(with_new_arrays, "made while a stream was capturing, none allowed"),
        Mutant(with_a_new_velocity, "velocity did not change: `velocity = ...` makes a new local name"),
        Mutant(with_cublas, "calling cuBLAS API during stream capture"),
        Mutant(with_a_read, "D2H transfers are disallowed"),
        Mutant(steps.wrong_step(mean=False), "divide by len(x)"),
        Mutant(steps.wrong_step(momentum=0), "0.9 times the old one stays"),
        Mutant(steps.wrong_step(falls=1), "your rate did not change"),
        Mutant(with_a_new_rate, "your rate did not change: it has to become 0.99 times as large"),
        Mutant(without_momentum, "the momentum is missing"),
        Mutant(steps.wrong_step(sign=-1), "uphill"),
    ],
    "replayed_epoch": [
        Mutant(steps.eager, "no launch of a graph"),
        Mutant(lambda **given: graphs_of(**given, inside=False), "110 allowed (two a step, and 30 for the start)"),
        Mutant(lambda **given: graphs_of(**given, back="p"), "put the weight back before the first launch"),
        Mutant(lambda **given: graphs_of(**given, back="w"), "moved the place on: put it back, too"),
        Mutant(lambda **given: graphs_of(**given, back=""), "put both back, the weight and the place"),
        Mutant(lambda **given: graphs_of(**given, back="Wp"), "use trained[...] = weight"),
        Mutant(lambda **given: graphs_of(**given, fetched=all_rows_taken), "the batch is rows[0]"),
        Mutant(captured_in_each_step, "two steps are taken for each row of order"),
        Mutant(
            lambda **given: captured_in_each_step(**given, counted=False), "two steps are taken for each row of order"
        ),
        Mutant(lambda **given: captured_in_each_step(**given, back_in_each=True), "only the first step is left"),
        Mutant(lambda **given: graphs_of(**given, fetched=new_rows), "made while a stream was capturing, none allowed"),
        Mutant(lambda **given: graphs_of(**given, first=True), "all steps are taken on the first batch"),
        Mutant(lambda **given: graphs_of(**given, launches=-1), "the last step is missing"),
    ],
    "time_to_accuracy": [
        Mutant(untrained, "hardly better than guessing"),
        Mutant(one_epoch, "not far enough"),
        Mutant(few_epochs, "about 98% are asked"),
        Mutant(trained_once(), "the weights are the same with all three seeds"),
        Mutant(trained_before(), "these weights are far from those that the seed gives"),
        Mutant(too_fast, "is the rate too high?"),
        Mutant(normalized, "the judge feeds the images as they are, with values from 0 to 1"),
        Mutant(from_minus_one_to_one, "the judge feeds the images as they are, with values from 0 to 1"),
        Mutant(on_the_notebooks_own, "whose labels are permuted"),
        Mutant(lambda images, labels, seed: None, "is the return statement missing?"),
        Mutant(lambda images, labels, seed: untrained(images, labels, seed)[:-10], "train that one"),
    ],
    "ablation": [
        Mutant(once_each, "repeat, and take the median"),
        Mutant(one_after_the_other, "turn each on again"),
        Mutant(all_others_off, "leave them on, and turn off one"),
        Mutant(all_others_off_once, "run(code=False, batch=False): 2 causes are off at once; turn off one alone"),
        Mutant(first_all_then_all, "compare runs that follow each other"),
        Mutant(shortest_of_five, "compare runs that follow each other"),
        Mutant(with_means, "these are means, which hold the disturbed runs, too: take the median of the ratios"),
        Mutant(with_means_of_the_other_order, "these are means, which hold the disturbed runs, too"),
        Mutant(one_pair_each, "repeat, and take the median"),
        Mutant(upside_down, "upside down"),
        Mutant(lambda run, causes: run.factors, "has no attribute 'factors'"),
        Mutant(lambda run, causes: [2.0 for _ in causes], "expected a dictionary with the causes"),
    ],
    "own_network": [
        Mutant(lambda version, seed: None, "return an array"),
        Mutant(
            lambda version, seed: np.full(3, version == "after", np.float32),
            "first in losses[0]: 0 before, 1 after",
        ),
        Mutant(lambda version, seed: np.ones(3, np.float32), "come from the seed"),
        Mutant(lambda version, seed: np.full(3, np.nan, np.float32), "NaN or infinity"),
        Mutant(without_a_seed(), "something else each time"),
        Mutant(lambda version, seed: np.ones(()), "return an array of floats: the loss of each step"),
        Mutant(numbers, "train for 5 ms or longer"),
        Mutant(uphill, "the losses do not fall"),
        Mutant(other_order_of_sums, "a different order of sums?"),
        Mutant(other_batch, "100 losses before, 25 after: another batch is another training"),
    ],
}

HONEST = {"replayed_epoch": [two_steps_a_graph, one_step_a_graph]}
LOOP = {"replayed_epoch": steps.eager}
