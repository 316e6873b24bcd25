"""A function under capture: one call of it becomes a CUDA graph, which is launched on several contents of its buffers.

A function that can be captured works on arrays that stay where they are: it makes none, reads none on the host, and
takes every number that changes from an array. Its graph does the same again and again, with what lies in them then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled import device

from .gpu import places
from .spec import Budget, Function, Inputs

if TYPE_CHECKING:
    from unrolled.simgpu.trace import Trace

OWN_STREAM = 255  # of the simulated GPU's streams the last, which a function in another process cannot name by itself
MADE = (
    "a graph works on the same memory each time: make the arrays before, write into them with out=..., and change an "
    "array in place"
)


def replayed(
    function: Function, buffers: Inputs, contents: Sequence[Mapping[str, Any]], results: Sequence[str]
) -> list[list[Any]]:
    """Capture a call of the function, launch the graph for each of the contents, and return what the results are then.

    buffers: the keyword arguments. The arrays among them, which are left as they are, are copied, and the function
    works on the copies. contents: for each launch, arrays by the names of buffers, written there before it. results:
    names of buffers; a list of their copies is returned for each launch. Before the capture the function is called
    once, as programs do so that kernels are compiled, and the buffers get their first values back.

    The host waits at the beginning and at the end. Arrays of NumPy have no graph: the function is called for each of
    the contents. Raises what the function raises under capture, and what the end of the capture does.
    """
    module = device.array_module(*(x for x in buffers.values() if hasattr(x, "dtype")))
    if module is np:
        static = _copied(module, buffers)
        return [_once(lambda: function(**static), static, content, results) for content in contents]
    stream = module.cuda.Stream(non_blocking=True)
    if device.is_simulated(module):
        stream.number = OWN_STREAM
    module.cuda.Stream.null.synchronize()  # both times the host waits: then one stream alone has work
    with stream:
        static = _copied(module, buffers)
        function(**static)
        _write(static, buffers)
        graph = captured(stream, function, static)
        found = [_once(graph.launch, static, content, results) for content in contents]
    stream.synchronize()
    return found


def captured(stream: Any, function: Function, arguments: Inputs) -> Any:
    """Return the graph of a call of the function, captured on a stream that is in use. Raises what the call raises."""
    stream.begin_capture()
    try:
        function(**arguments)
    except BaseException:
        with contextlib.suppress(Exception):  # what broke the capture is told, not that it is broken
            stream.end_capture()
        raise
    return stream.end_capture()


def beyond(trace: Trace, budget: Budget, function: Function) -> Iterator[str]:
    """Yield what a function did with CUDA graphs beyond its budget; nothing if it kept to it."""
    made = [event for event in trace.allocations if event.captured and not event.freed]
    if budget.made is not None and len(made) > budget.made:
        plural = "s" * (len(made) > 1)
        allowed = f"at most {budget.made} allowed" if budget.made else "none allowed"
        yield f"{len(made)} array{plural} made while a stream was capturing, {allowed}"
        yield from places(made, function)
        yield MADE
    longest = max((graph.kernels for graph in trace.graphs), default=0)
    if budget.nodes is not None and longest > budget.nodes:
        yield f"{longest} kernels in a graph, at most {budget.nodes} allowed"
    if len(trace.graphs) < budget.graphs:
        yield f"{len(trace.graphs) or 'no'} launch of a graph, at least {budget.graphs} expected"


def _copied(module: Any, buffers: Inputs) -> Inputs:
    return {name: module.array(x) if hasattr(x, "dtype") else x for name, x in buffers.items()}


def _write(static: Inputs, content: Mapping[str, Any]) -> None:
    for name, x in content.items():
        if hasattr(x, "dtype"):
            static[name][...] = x


def _once(run: Any, static: Inputs, content: Mapping[str, Any], results: Sequence[str]) -> list[Any]:
    """What the results are after the content was written and all of it ran once."""
    _write(static, content)
    run()
    return [static[name].copy() for name in results]
