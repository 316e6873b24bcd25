"""A loop over events that never goes on to the next."""


def find_bottleneck(trace):
    seconds, at = {}, 0
    while at < len(trace):
        event = trace[at]
        seconds[event["line"]] = seconds.get(event["line"], 0) + event["end"] - event["start"]
    line = max(seconds, key=seconds.get)
    return line, seconds[line]
