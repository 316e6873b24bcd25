"""unrolled.show: the pictures of lessons 06 and 07 draw and say what traces and profiles hold."""

import json

import pytest
from paper_trace import PaperTrace, lying_clock
from pictures import STEP, node

from unrolled import show
from unrolled.show.comparisons import kernels_of
from unrolled.show.timeline import Interval, course_of, reading
from unrolled.show.waterfall import IN_NONE, levels_of

# the timeline


def test_the_clock_can_stop_after_any_call() -> None:
    course = course_of(lying_clock())
    assert [reading(course, place, wait=False)[0] for place in range(4)] == pytest.approx([1e-5, 2e-5, 3e-5, 4e-5])
    assert [reading(course, place, wait=True)[0] for place in range(4)] == pytest.approx(
        [1.01e-3, 1.51e-3, 2.01e-3, 3.01e-3]
    )


def test_blocking_copies_make_the_clock_honest_so_far() -> None:
    course = course_of(PaperTrace().launch("add", 1e-3).copy("to host", 1e-4).launch("add", 1e-3).synchronize())
    assert reading(course, 0, wait=False) == pytest.approx((1e-5, 1.01e-3))
    clock, true = reading(course, 1, wait=False)
    assert clock == true == pytest.approx(1.11e-3)
    assert Interval("host", "wait", pytest.approx(2e-5), pytest.approx(1.11e-3), 1) in course.pieces


def test_a_copy_that_does_not_block_lets_the_host_go_on() -> None:
    course = course_of(PaperTrace().copy("to device", 1e-3, blocking=False).synchronize())
    assert reading(course, 0, wait=False) == pytest.approx((1e-5, 1.01e-3))
    assert "1 copy" in show.timeline(PaperTrace().copy("to device", 1e-3, blocking=False)).alt


def test_a_long_trace_has_few_stops_the_last_among_them() -> None:
    trace = PaperTrace()
    for _ in range(500):
        trace.launch("add", 1e-6)
    course = course_of(trace.synchronize())
    assert len(course.stops) == 60
    assert course.stops[0].words == "after call 1 (add)"
    assert course.stops[-1].words == "after call 500 (add)"
    assert len([piece for piece in course.pieces if piece.kind == "kernel"]) == 500


# the waterfall


def test_the_remainder_is_always_a_bar() -> None:
    for level in levels_of(STEP):
        assert level.bars[-1].kind == "remainder"
        assert sum(bar.seconds for bar in level.bars) == pytest.approx(level.seconds)
    step = next(levels_of(STEP))
    assert (step.bars[-1].name, step.bars[-1].seconds) == (IN_NONE, pytest.approx(2.0))
    assert [(bar.name, bar.deeper, bar.kind) for bar in step.bars[:2]] == [
        ("forward", True, "part"),
        ("backward", True, "largest"),
    ]


def test_many_parts_are_gathered_but_none_is_lost() -> None:
    parts = [node(f"layer {i}", float(i)) for i in range(1, 31)]
    level = next(levels_of(node("forward", 465.0, *parts)))
    assert len(level.bars) == 14
    assert level.bars[-2].name == "18 others"
    assert level.remainder == pytest.approx(0)


def test_a_waterfall_of_a_profile() -> None:
    class Profile:
        tree = json.loads(json.dumps(STEP))

    assert show.waterfall(Profile()).alt == show.waterfall(STEP).alt


# the roofline of kernels


def test_kernels_of_a_trace_stand_on_the_roofline() -> None:
    trace = PaperTrace().launch("add", 1e-4, flops=10**6).launch("add", 1e-4, flops=10**6).launch("take", 4e-5, flops=0)
    assert kernels_of(trace) == {
        "add": (2 * 10**6, 16 * 10**6, pytest.approx(2e-4)),
        "take": (0, 8 * 10**6, pytest.approx(4e-5)),
    }
    alt = show.roofline(1e13, 4e11, kernels=trace, where="modelled, T4").alt
    assert alt.startswith("Roofline (modelled, T4): memory allows 400 GB/s")
    assert "add: 10 Gflop/s at 0.125 flops a byte, 20 % of what memory allows." in alt
    assert alt.endswith("take computes nothing: 200 GB/s, 50 % of the bandwidth.")
