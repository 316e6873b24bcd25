"""unrolled.show: the pictures of lessons 06 and 07 draw and say what traces and profiles hold."""

import json

import pytest
from drawn import Drawn
from paper_trace import PaperTrace, lying_clock
from pictures import LINES, MODELLED, PUBLISHED, STEP, node

from unrolled import show
from unrolled.show.roofline import as_points, kernels_of
from unrolled.show.style import GREEN, ORANGE, RED
from unrolled.show.timeline import Interval, course_of, reading
from unrolled.show.waterfall import IN_NONE, TOO_MUCH, levels_of
from unrolled.simgpu.profiles import PROFILES

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


def test_streams_have_rows_of_their_own() -> None:
    trace = PaperTrace().launch("add", 1e-3).launch("add", 1e-3, stream=7)
    assert course_of(trace).rows == ["host", "stream 0", "stream 7"]
    assert course_of(lying_clock()).rows == ["host", "GPU"]


def test_work_stands_where_its_time_is(drawn: Drawn) -> None:
    """Kernels fill the axis from the first call to the end, in proportion; a copy has a colour of its own."""
    explorer = show.timeline(lying_clock())
    kernels = [box for box, colour in drawn.at(explorer).fills if colour == ORANGE][:4]
    widths = [box[2] for box in kernels]
    assert [width / widths[0] for width in widths] == pytest.approx([1, 0.5, 0.5, 1])
    assert kernels[1][0] == pytest.approx(kernels[0][0] + widths[0])
    drawn.at(show.timeline(lying_clock().copy("to host", 1e-3)))
    assert sum(colour == GREEN for _, colour in drawn.fills) == 2  # and the legend


def test_the_stop_moves_and_later_work_fades(drawn: Drawn) -> None:
    explorer = show.timeline(lying_clock())

    def stop(place: int, wait: bool) -> tuple[float, int]:
        drawn.at(explorer, place=place, wait=wait)
        upright = [points for points, colour in drawn.lines if colour == RED and points[0][0] == points[1][0]]
        return upright[0][0][0], sum(colour == ORANGE for _, colour in drawn.fills) - 1  # less the legend's

    places = [stop(place, wait=False)[0] for place in range(4)]
    assert places == sorted(places)
    assert stop(1, wait=False)[1] == 4
    assert stop(1, wait=True)[1] == 2
    assert stop(1, wait=True)[0] > places[3]


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


def test_levels_lead_down_the_largest_parts_first() -> None:
    paths = ["/".join(level.path) for level in levels_of(STEP)]
    assert paths == ["step", "step/backward", "step/backward/pool", "step/forward"]


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


def test_each_bar_begins_where_the_last_one_ended(drawn: Drawn) -> None:
    boxes = [box for box, _ in drawn.at(show.waterfall(STEP)).fills]
    whole, forward, backward, rest = boxes
    assert [box[2] / whole[2] for box in (forward, backward, rest)] == pytest.approx([0.3, 0.5, 0.2])
    assert forward[0] == whole[0]
    assert backward[0] == pytest.approx(forward[0] + forward[2])
    assert rest[0] + rest[2] == pytest.approx(whole[0] + whole[2])
    assert (rest, RED) in drawn.hatches
    assert "backward ▸" in drawn.texts


def test_parts_that_make_more_than_the_whole_are_caught(drawn: Drawn) -> None:
    """As published: each part was measured on its own."""
    level = next(levels_of(PUBLISHED))
    assert (level.bars[-1].name, level.bars[-1].seconds) == (TOO_MUCH, pytest.approx(-0.24))
    explorer = show.waterfall(PUBLISHED)
    whole, *_, rest = (box for box, _ in drawn.at(explorer).fills)
    assert rest[0] == pytest.approx(whole[0] + whole[2])  # it sticks out


def test_many_parts_are_gathered_but_none_is_lost() -> None:
    parts = [node(f"layer {i}", float(i)) for i in range(1, 31)]
    level = next(levels_of(node("forward", 465.0, *parts)))
    assert len(level.bars) == 14
    assert level.bars[-2].name == "18 others"
    assert level.remainder == pytest.approx(0)


def test_a_waterfall_of_a_profile_and_where_to_start() -> None:
    class Profile:
        tree = json.loads(json.dumps(STEP))

    assert show.waterfall(Profile()).alt == show.waterfall(STEP).alt
    assert show.waterfall(STEP, ("backward", "pool")).alt.startswith("step / backward / pool takes 4.5 s")


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


def test_the_same_kernels_measured() -> None:
    kernels = {"add": (2e6, 16e6, 2e-4)}
    assert as_points(kernels) == {"add": (0.125, pytest.approx(1e10))}
    assert show.roofline(1e13, 4e11, as_points(kernels)).alt == show.roofline(1e13, 4e11, kernels=kernels).alt


def test_measured_kernels_stand_beside_modelled_ones() -> None:
    kernels = {"add": (2e6, 16e6, 2e-4), "relu": (2e6, 16e6, 1e-4)}
    picture = show.roofline(1e13, 4e11, kernels=kernels, modelled={"add": 1e-4})
    hollow = [line for line in picture.figure.axes[0].lines if line.get_markerfacecolor() == "none"]
    assert [tuple(line.get_xydata()[0]) for line in hollow] == [pytest.approx((0.125, 2e10))]


# scaling


def test_only_what_was_measured_now_has_filled_markers_and_a_full_line() -> None:
    lines = show.scaling(LINES).figure.axes[0].lines[:3]
    assert [line.get_linestyle() for line in lines] == ["-", "--", ":"]
    assert [line.get_markerfacecolor() == line.get_color() for line in lines] == [True, False, False]


# agreement


def test_agreement_has_measured_times_on_its_x_axis() -> None:
    axes = show.agreement(MODELLED).figure.axes[0]
    groups = [line for line in axes.lines if line.get_marker() not in (None, "None") and len(line.get_xdata()) > 1]
    assert [list(line.get_xdata()) for line in groups] == [[2e-6, 4e-6], [50e-6, 1e-6, 1e-6]]
    assert [list(line.get_ydata()) for line in groups] == [[3e-6, 2e-6], [10e-6, 3e-6, 1e-6]]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("measured", "modelled")


# in a notebook


# the hardware


def test_the_ways_of_the_hardware_carry_the_first_gpus_figures(drawn: Drawn) -> None:
    show.hardware(PROFILES["T4"])
    assert {"launch", "12.9 µs", "bus", "12 GB/s", "40 multiprocessors"} <= {*drawn.texts}
    assert sum(colour == ORANGE for _, colour in drawn.fills) == 40
