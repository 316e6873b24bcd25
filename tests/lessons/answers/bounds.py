"""Wrong answers to lesson 07's `roofline_bound`."""

from . import Mutant


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


MUTANTS = [
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
]
