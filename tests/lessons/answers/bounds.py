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


MUTANTS = [
    Mutant(bound_named_by_count, "count the seconds of the kernels, not the kernels"),
    Mutant(bound_named_by_the_largest_of_three, "longer than memory and arithmetic together"),
    Mutant(bound_never_named_launches, "all launches 500 µs"),
]
