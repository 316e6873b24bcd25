"""Wrong and imperfect answers to lesson 07."""

import time

import numpy as np

from unrolled import device
from unrolled.checks.exercises.l07_profiling import planted

from . import Mutant

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


# find_bottleneck


def each(trace, blamed, by="line", work=True, order="start", first=True):
    """Seconds of each line; blamed(before, after) are the events that a gap is put down to."""
    events = sorted(trace, key=lambda event: event[order]) if order else trace
    seconds, done, before = {}, 0.0 if first else events[0]["start"], None
    for event in events:
        causes = blamed(before or {**event, "waits": False}, event)
        for cause in causes if isinstance(causes, list) else [causes]:
            seconds[cause[by]] = seconds.get(cause[by], 0.0) + event["start"] - done
        if work:
            seconds[event[by]] = seconds.get(event[by], 0.0) + event["end"] - event["start"]
        done, before = event["end"], event
    return seconds


def due(trace, blamed, by="line", **options):
    """The line to which most of the GPU's time is due."""
    seconds = each(trace, blamed, by, **options)
    worst = max(seconds, key=seconds.get)
    return next(event["line"] for event in trace if event[by] == worst), seconds[worst]


def cause_of(before, after):
    return before if before["waits"] else after


def total(trace, since="start"):
    seconds = {}
    for event in trace:
        seconds[event["line"]] = seconds.get(event["line"], 0.0) + event["end"] - event[since]
    line = max(seconds, key=seconds.get)
    return line, seconds[line]


def bottleneck_longest(trace):
    event = max(trace, key=lambda event: event["end"] - event["start"])
    return event["line"], event["end"] - event["start"]


def bottleneck_to_the_next(trace):
    return due(trace, lambda before, after: after)


def bottleneck_to_the_last(trace):
    return due(trace, lambda before, after: before)


def bottleneck_without_work(trace):
    return due(trace, cause_of, work=False)


def bottleneck_unsorted(trace):
    return due(trace, cause_of, order="")


def bottleneck_by_op(trace):
    return due(trace, cause_of, by="what")


def bottleneck_by_line_number(trace):
    return due(trace, cause_of, order="line")


def bottleneck_without_the_first_gap(trace):
    return due(trace, cause_of, first=False)


def bottleneck_with_a_wait_for_ever(trace):
    waited = []

    def blamed(before, after):
        waited.extend([before] if before["waits"] else [])
        return waited[-1] if waited else after

    return due(trace, blamed)


def bottleneck_to_the_wrong_one(trace):
    return due(trace, lambda before, after: after if before["waits"] else before)


def bottleneck_by_the_wait_after(trace):
    return due(trace, lambda before, after: before if after["waits"] else after)


def bottleneck_without_gaps_after_waits(trace):
    return due(trace, lambda before, after: [] if before["waits"] else after)


def bottleneck_with_gaps_after_waits_alone(trace):
    return due(trace, lambda before, after: before if before["waits"] else [])


def bottleneck_with_gaps_twice(trace):
    return due(trace, lambda before, after: [before, after] if before["waits"] else after)


def bottleneck_until_issued(trace):
    seconds, done, waited = dict.fromkeys((event["line"] for event in trace), 0.0), 0.0, None
    for event in sorted(trace, key=lambda event: event["start"]):
        seconds[waited or event["line"]] += max(0.0, event["issued"] - done)
        seconds[event["line"]] += event["end"] - event["start"]
        done, waited = event["end"], event["line"] if event["waits"] else None
    line = max(seconds, key=seconds.get)
    return line, seconds[line]


def bottleneck_of_one_call(trace):
    sums = each(trace, cause_of)
    calls = {line: sum(event["line"] == line for event in trace) for line in sums}
    line = max(sums, key=lambda line: sums[line] / calls[line])
    return line, sums[line] / calls[line]


def bottleneck_of_most_events(trace):
    lines = [event["line"] for event in trace]
    line = max(lines, key=lines.count)
    return line, each(trace, cause_of)[line]


def bottleneck_of_the_largest_number(trace):
    return max(each(trace, cause_of).items())


def bottleneck_from_first_to_last(trace):
    lines = {event["line"] for event in trace}
    span = {
        line: max(e["end"] for e in trace if e["line"] == line) - min(e["start"] for e in trace if e["line"] == line)
        for line in lines
    }
    return max(span.items(), key=lambda pair: pair[1])


def bottleneck_all_seconds(trace):
    return due(trace, cause_of)[0], sum(each(trace, cause_of).values())


def bottleneck_share(trace):
    line, seconds = due(trace, cause_of)
    return line, seconds / sum(each(trace, cause_of).values())


def bottleneck_the_other_way_round(trace):
    return due(trace, cause_of)[::-1]


def bottleneck_wrong_and_turned(trace):
    return total(trace)[::-1]


def bottleneck_line_only(trace):
    return due(trace, cause_of)[0]


def bottleneck_by_name(trace):
    line, seconds = due(trace, cause_of)
    return f"line {line}", seconds


def bottleneck_in_milliseconds(trace):
    line, seconds = due(trace, cause_of)
    return line, 1000 * seconds


def bottleneck_sorting_in_place(trace):
    trace.sort(key=lambda event: event["start"])
    return due(trace, cause_of)


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


def bound_of_the_totals(kernels, peak, bandwidth, launch):
    return step_bound([tuple(map(sum, zip(*kernels, strict=True)))], peak, bandwidth, len(kernels) * launch)


def bound_of_the_faster(kernels, peak, bandwidth, launch):
    return step_bound(kernels, peak, bandwidth, launch, slower=min)


def bound_in_turn(kernels, peak, bandwidth, launch):
    return sum(flops / peak + nbytes / bandwidth for flops, nbytes in kernels), "memory"


def bound_with_launches_added(kernels, peak, bandwidth, launch):
    return step_bound(kernels, peak, bandwidth, 0)[0] + len(kernels) * launch, "memory"


def bound_with_one_launch(kernels, peak, bandwidth, launch):
    return step_bound(kernels, peak, bandwidth, launch / len(kernels))


def bound_without_launches(kernels, peak, bandwidth, launch):
    return step_bound(kernels, peak, bandwidth, 0)


def bound_exchanged(kernels, peak, bandwidth, launch):
    return step_bound([(flops, nbytes) for nbytes, flops in kernels], peak, bandwidth, launch)


def bound_in_flops(kernels, peak, bandwidth, launch):
    seconds, limit = step_bound(kernels, peak, bandwidth, launch)
    return sum(flops for flops, _ in kernels) / seconds, limit


def limit_of(kernels, peak, bandwidth):
    """What sets the pace of these kernels, without their launches."""
    return step_bound(kernels, peak, bandwidth, 0)[1]


def bound_named_by(choose):
    """The right seconds; where launches do not set the pace, the limit is that of the kernels that `choose` gives."""

    def named(kernels, peak, bandwidth, launch):
        seconds, limit = step_bound(kernels, peak, bandwidth, launch)
        return seconds, limit if limit == "launches" else limit_of(choose(kernels), peak, bandwidth)

    return named


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


def bound_with_a_launch_in_each(kernels, peak, bandwidth, launch):
    sums = {"memory": 0.0, "arithmetic": 0.0, "launches": 0.0}
    for flops, nbytes in kernels:
        each = {"memory": nbytes / bandwidth, "arithmetic": flops / peak, "launches": launch}
        limit = max(each, key=each.get)
        sums[limit] += each[limit]
    return sum(sums.values()), max(sums, key=sums.get)


def bound_of(choose):
    """The bound of those kernels that `choose` gives, beside all launches."""
    return lambda kernels, peak, bandwidth, launch: step_bound(
        choose(kernels), peak, bandwidth, len(kernels) * launch / len(choose(kernels))
    )


def bound_of_the_longest(kernels, peak, bandwidth, launch):
    return max(max(flops / peak, nbytes / bandwidth) for flops, nbytes in kernels), "arithmetic"


def bound_multiplied(kernels, peak, bandwidth, launch):
    return sum(max(flops * peak, nbytes * bandwidth) for flops, nbytes in kernels), "memory"


def bound_upside_down(kernels, peak, bandwidth, launch):
    return sum(max(peak / flops, bandwidth / nbytes) for flops, nbytes in kernels), "memory"


def bound_by_intensity(kernels, peak, bandwidth, launch):
    sums = {"memory": 0.0, "arithmetic": 0.0}
    for flops, nbytes in kernels:
        attainable = min(peak, flops / nbytes * bandwidth)
        sums["memory" if attainable < peak else "arithmetic"] += flops / attainable
    work, host = sum(sums.values()), len(kernels) * launch
    return (host, "launches") if host > work else (work, max(sums, key=sums.get))


def bound_of_the_mean(kernels, peak, bandwidth, launch):
    seconds, limit = step_bound(kernels, peak, bandwidth, launch)
    return seconds / len(kernels), limit


def bound_of_the_shorter(kernels, peak, bandwidth, launch):
    return min(step_bound(kernels, peak, bandwidth, 0)[0], len(kernels) * launch), "launches"


def bound_alone(kernels, peak, bandwidth, launch):
    return step_bound(kernels, peak, bandwidth, launch)[0]


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
    "find_bottleneck": [
        Mutant(total, "only the GPU's work is in it"),
        Mutant(bottleneck_to_the_next, "after an event that `waits` it is due to the line that waited"),
        Mutant(bottleneck_to_the_last, "the host has not asked for the next one yet"),
        Mutant(bottleneck_without_work, "only the gaps are in it"),
        Mutant(bottleneck_unsorted, "the trace holds its events in any order"),
        Mutant(bottleneck_longest, "that is the longest single event"),
        Mutant(lambda trace: total(trace, "issued"), "then it waited in the queue"),
        Mutant(bottleneck_by_op, "you added up by `what`"),
        Mutant(bottleneck_by_line_number, "sorted by something else than their `start`"),
        Mutant(bottleneck_without_the_first_gap, "the gap before the first event is missing"),
        Mutant(bottleneck_with_a_wait_for_ever, "once a line has waited"),
        Mutant(bottleneck_to_the_wrong_one, "down to the wrong one of two"),
        Mutant(bottleneck_by_the_wait_after, "`waits` of the event after a gap decides in yours"),
        Mutant(bottleneck_without_gaps_after_waits, "after an event that `waits` are due to nobody in yours"),
        Mutant(bottleneck_with_gaps_after_waits_alone, "between events that do not wait are due to nobody in yours"),
        Mutant(bottleneck_with_gaps_twice, "goes to two lines in yours"),
        Mutant(bottleneck_until_issued, "the GPU is idle until it starts"),
        Mutant(bottleneck_of_one_call, "in total, not per call"),
        Mutant(bottleneck_of_most_events, "this is the line with most events"),
        Mutant(bottleneck_of_the_largest_number, "max(seconds) compares the keys"),
        Mutant(bottleneck_from_first_to_last, "from a line's first event to its last"),
        Mutant(bottleneck_all_seconds, "these are all seconds of the trace"),
        Mutant(bottleneck_share, "this is a share of the whole"),
        Mutant(bottleneck_the_other_way_round, "the pair is the other way round"),
        Mutant(bottleneck_wrong_and_turned, "the pair is the other way round"),
        Mutant(bottleneck_line_only, "expected a pair (line, seconds) of numbers, got int"),
        Mutant(bottleneck_by_name, "expected a pair (line, seconds) of numbers, got ('line"),
        Mutant(lambda trace: (*due(trace, cause_of), "add"), "got 3 items"),
        Mutant(lambda trace: each(trace, cause_of), "of numbers, got dict"),
        Mutant(bottleneck_in_milliseconds, "these are milliseconds"),
        Mutant(bottleneck_sorting_in_place, "changed its input"),
        Mutant(lambda trace: None, "is the return statement missing?"),
    ],
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
    "roofline_bound": [
        Mutant(bound_of_the_totals, "Bound each kernel, then add up"),
        Mutant(bound_of_the_faster, "the longer one holds, not the shorter"),
        Mutant(bound_in_turn, "a kernel moves and computes at the same time"),
        Mutant(bound_with_launches_added, "launches and work are added up"),
        Mutant(bound_with_one_launch, "as many launches as kernels"),
        Mutant(bound_without_launches, "the launches are missing"),
        Mutant(bound_exchanged, "a kernel is (flops, bytes)"),
        Mutant(bound_in_flops, "the seconds of the step are asked"),
        Mutant(bound_named_by_count, "count the seconds of the kernels, not the kernels"),
        Mutant(bound_named_by(lambda kernels: [tuple(map(sum, zip(*kernels, strict=True)))]), "were added up first"),
        Mutant(bound_named_by(lambda kernels: [max(kernels)]), "what sets the longest kernel"),
        Mutant(bound_named_by(lambda kernels: kernels[:1]), "those that wait for arithmetic 250 µs"),
        Mutant(bound_named_by_the_largest_of_three, "longer than memory and arithmetic together"),
        Mutant(bound_never_named_launches, "all launches 500 µs"),
        Mutant(bound_with_a_launch_in_each, "the seconds of one launch are compared with each kernel"),
        Mutant(bound_of(lambda kernels: kernels[-1:]), "only one kernel is in it"),
        Mutant(bound_of(lambda kernels: kernels[:1]), "only the first kernel is in it"),
        Mutant(bound_of_the_longest, "only one kernel is in it"),
        Mutant(bound_multiplied, "you multiplied"),
        Mutant(bound_upside_down, "not the other way round"),
        Mutant(bound_by_intensity, "a copy of 5 s that has no flops"),
        Mutant(bound_by_intensity, "what you divide by is 0"),
        Mutant(bound_of_the_mean, "this is the mean of the kernels"),
        Mutant(bound_of_the_shorter, "the longer one holds, not the shorter"),
        Mutant(lambda **step: (1e3 * step_bound(**step)[0], step_bound(**step)[1]), "these are milliseconds"),
        Mutant(lambda **step: step_bound(**step)[::-1], "the pair is the other way round"),
        Mutant(lambda **step: (*step_bound(**step), "T4"), "got 3 items"),
        Mutant(bound_alone, "expected a pair such as"),
    ],
}

HONEST = {}

LOOP = {}
