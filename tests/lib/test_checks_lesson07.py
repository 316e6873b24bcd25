"""Lesson 07's planted steps: all compute the same, each is far too slow, and each learner is judged by their own."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from unrolled import checks
from unrolled.checks.exercises.l07_profiling import planted, repairs
from unrolled.checks.exercises.l07_profiling import traces as trace_events
from unrolled.checks.exercises.l07_profiling.toy_device import on_toy
from unrolled.checks.gpu import connected

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lessons"))
from answers import lesson07 as answers

SPEC = checks.lessons()["07_profiling"]["repaired_step"]
SMALL = (4, 3, 5, 5), (75, 64)


def with_factor(number):
    """The repaired step of the learner with this number."""
    return planted.made(planted.source_of({}, planted.factor_of(number)), f"<repaired {number}>")


def traces(step, count):
    """The traces of so many calls, one after the other, on one simulated GPU."""
    with connected() as gpu:
        images, weight = map(gpu.asarray, planted.drawn(np.random.default_rng(1), *planted.SHAPES))
        return [repairs.traced_call(step, {"images": images, "weight": weight})[1] for _ in range(count)]


@pytest.mark.parametrize("kind", planted.KINDS)
def test_a_planted_step_computes_the_same_and_is_far_too_slow(kind):
    slow = planted.made(planted.source_of(planted.PLANTED[kind], 1.5), "<slow>")
    clean = planted.made(planted.source_of({}, 1.5), "<clean>")
    images, weight = planted.drawn(np.random.default_rng(0), *SMALL)
    expected = clean(images, weight)
    assert expected.dtype == slow(images, weight).dtype == np.float32
    np.testing.assert_allclose(slow(images, weight), expected, rtol=1e-4, atol=1e-5)
    assert repairs.planted_seconds(kind) == pytest.approx(traces(slow, 2)[1].seconds)
    assert repairs.planted_seconds("") == pytest.approx(traces(clean, 2)[1].seconds)
    assert repairs.planted_seconds(kind) > 2 * repairs.AT_LEAST * traces(clean, 2)[1].seconds


def test_the_step_follows_from_the_id():
    assert planted.assign("Mina ").source == planted.assign("mina").source
    assert planted.assign(1234).source == planted.assign("1234").source
    assert planted.assign().kind == planted.assign(...).kind == planted.assign("").kind == planted.KINDS[0]
    steps = [planted.assign(f"student{number}") for number in range(600)]
    assert min(Counter(step.kind for step in steps).values()) > 60
    assert len({step.factor for step in steps}) > 300


def test_a_step_that_leaves_the_gpu_or_is_too_slow_is_told_the_time_of_its_own_step():
    number = planted.KINDS.index("a host round trip")
    report = str(checks.run("repaired_step", SPEC, answers.step_of(planted.KINDS[number]), case_limit=60))
    assert f"{repairs.planted_seconds(planted.KINDS[number]) * 1e6:,.0f} µs, yours" in report
    assert "1.0 times as fast (asked: 5)" in report
    source = planted.source_of(planted.PLANTED["float64 by accident"], planted.factor_of(500))
    slow = planted.made(source, "<still slow>")
    assert "as it came, the step with the factor 1.501 takes" in str(
        checks.run("repaired_step", SPEC, slow, case_limit=60)
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_drawn_trace_gives_each_moment_to_a_line_and_shows_each_mistake(seed):
    for waits in (True, False):
        trace = trace_events.drawn_trace(np.random.default_rng(seed), waits)["trace"]
        assert sum(seconds for _, seconds in trace_events._shares(trace)) == pytest.approx(max(e["end"] for e in trace))
        line, _ = trace_events.costliest(trace)
        assert any(e["waits"] for e in trace if e["line"] == line) == waits
        wrong = [m for m in trace_events.TRACE_MISTAKES if m.of(trace_events.costliest)(trace)[0] != line]
        assert trace_events.TRACE_MISTAKES[0] in wrong


def test_the_factor_tells_whose_step_it_is():
    images, weight = planted.drawn(np.random.default_rng(3), *SMALL)
    clean = with_factor(0)(images, weight) / np.float32(planted.factor_of(0))
    for number in (0, 1, 499, 998, 999):
        assert repairs.step_number(with_factor(number)(images, weight), clean) == number
    assert repairs.step_number(clean, clean) is None
    assert repairs.step_number(-clean, clean) is None
    assert repairs.step_number(clean * np.nan, clean) is None


def test_a_toy_layer_takes_only_what_it_is_owed():
    inputs = on_toy(np.random.default_rng(0), False)
    first, second = inputs["layers"][:2]
    with pytest.raises(ValueError, match="got other values"):
        first.forward(inputs["x"] + 1, True)
    y = first.forward(inputs["x"], True)
    with pytest.raises(ValueError, match="got its own output"):
        first.backward(y)
    with pytest.raises(ValueError, match="training=True before it"):
        second.backward(inputs["grad"])
