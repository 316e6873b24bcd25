"""Functions under capture in the learner's own check: values after each launch, budgets, and what is said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graph_specs
from unrolled import simgpu
from unrolled.checks import Report, Spec, graphs, run


def checked(source: str, spec: Spec = graph_specs.STEP) -> Report:
    names: dict[str, Any] = {}
    exec(compile(source, "<cell>", "exec"), names)
    return run("step", spec, names["answer"])


def test_a_step_that_can_be_captured_passes() -> None:
    found = checked(graph_specs.RIGHT)
    assert found.passed, str(found)


@pytest.mark.parametrize("name", graph_specs.WRONG)
def test_what_cannot_be_captured_is_said(name: str) -> None:
    source, verdict, says = graph_specs.WRONG[name]
    finding = checked(source).findings[0]
    assert finding.verdict == verdict, finding.lines
    assert all(words in " ".join(finding.lines) for words in says), finding.lines


def test_a_loop_of_launches_is_told_from_an_eager_one() -> None:
    found = checked(graph_specs.REPLAYED, graph_specs.EPOCH)
    assert found.passed, str(found)
    assert "no launch of a graph, at least 5 expected" in str(checked(graph_specs.EAGER, graph_specs.EPOCH))


def test_buffers_are_copied_and_numpy_is_called_for_each_of_the_contents() -> None:
    for module in (np, simgpu):
        x, total, count = module.ones(2, "f4"), module.zeros(2, "f4"), module.zeros(1, "f4")
        contents = [{"x": module.full(2, value, "f4")} for value in (3, 5)]
        buffers = {"x": x, "total": total, "count": count}
        found = graphs.replayed(graph_specs.step, buffers, contents, ["total", "count"])
        assert [[part.tolist() for part in parts] for parts in found] == [[[6, 6], [1]], [[11, 11], [2]]]
        assert (x.tolist(), total.tolist(), count.tolist()) == ([1, 1], [0, 0], [0])


def test_what_a_function_raises_under_capture_is_raised_and_ends_it() -> None:
    x = simgpu.ones(2, "f4")
    with pytest.raises(RuntimeError, match="D2H"):
        graphs.replayed(lambda x: x.get(), {"x": x}, [], [])
    simgpu.cuda.Device().synchronize()  # nothing is captured any more
