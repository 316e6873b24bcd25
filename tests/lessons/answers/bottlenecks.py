"""Wrong answers to lesson 07's `find_bottleneck`."""

from . import Mutant


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


def bottleneck_the_other_way_round(trace):
    return due(trace, cause_of)[::-1]


def bottleneck_line_only(trace):
    return due(trace, cause_of)[0]


MUTANTS = [
    Mutant(bottleneck_the_other_way_round, "the pair is the other way round"),
    Mutant(bottleneck_line_only, "expected a pair (line, seconds) of numbers, got int"),
    Mutant(lambda trace: each(trace, cause_of), "of numbers, got dict"),
]
