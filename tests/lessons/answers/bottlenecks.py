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


MUTANTS = [
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
]
