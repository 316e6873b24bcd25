"""unrolled.show: pictures of GPUs and ranks draw what traces, profiles, schedules and the simulated GPU say."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from drawn import Drawn
from jit_programs import kernel
from paper_trace import PaperTrace, lying_clock
from pictures import DIAGONALS, IN_TURN, RECORD, STEP, node, slots
from pictures import forms as traces

from unrolled import ops, show
from unrolled import simgpu as cp
from unrolled.parallel.pipeline import activations, bubble
from unrolled.show.comparisons import kernels_of
from unrolled.show.kernels import Access, with_barriers, without_barriers, words_a_bank
from unrolled.show.lstm_cell import BIAS, CELL_STEPS, WEIGHT_HH, WEIGHT_IH, C, Cell, H, X, worked_cell
from unrolled.show.ranks import Ring
from unrolled.show.rungs import PUBLISHED, gains, largest_gain, steps_of
from unrolled.show.scaling import Model, efficiency
from unrolled.show.schedules import BACKWARD, FIRING, FORWARD, Layers, Pipeline
from unrolled.show.schedules import WRONG as TOO_EARLY
from unrolled.show.style import BLUE, ORANGE, PALE, RED, SKY
from unrolled.show.timeline import FORMS_LEFT, RIGHT, Form, Interval, course_of, reading
from unrolled.show.waterfall import IN_NONE, levels_of
from unrolled.simgpu import jit


def test_the_clock_can_stop_after_any_call_and_blocking_copies_make_it_honest() -> None:
    course = course_of(lying_clock())
    for wait, clocks in ((False, [1e-5, 2e-5, 3e-5, 4e-5]), (True, [1.01e-3, 1.51e-3, 2.01e-3, 3.01e-3])):
        assert [reading(course, place, wait=wait)[0] for place in range(4)] == pytest.approx(clocks)
    course = course_of(PaperTrace().launch("add", 1e-3).copy("to host", 1e-4).launch("add", 1e-3).synchronize())
    assert reading(course, 0, wait=False) == pytest.approx((1e-5, 1.01e-3))
    clock, true = reading(course, 1, wait=False)
    assert clock == true == pytest.approx(1.11e-3)
    assert Interval("host", "wait", pytest.approx(2e-5), pytest.approx(1.11e-3), 1) in course.pieces
    trace = PaperTrace().copy("to device", 1e-3, blocking=False)
    assert "1 copy" in show.timeline(trace).alt
    assert reading(course_of(trace.synchronize()), 0, wait=False) == pytest.approx((1e-5, 1.01e-3))


def test_a_long_trace_has_few_stops_the_last_among_them() -> None:
    trace = PaperTrace()
    for _ in range(500):
        trace.launch("add", 1e-6)
    course = course_of(trace.synchronize())
    assert len(course.stops) == 60
    assert [course.stops[place].words for place in (0, -1)] == ["after call 1 (add)", "after call 500 (add)"]
    assert [piece.kind for piece in course.pieces].count("kernel") == 500


def test_the_remainder_is_always_a_bar() -> None:
    for level in levels_of(STEP):
        assert level.bars[-1].kind == "remainder"
        assert sum(bar.seconds for bar in level.bars) == pytest.approx(level.seconds)
    forward, backward, rest = next(levels_of(STEP)).bars
    assert (rest.name, rest.seconds) == (IN_NONE, pytest.approx(2.0))
    assert (forward.name, forward.deeper, forward.kind) == ("forward", True, "part")
    assert (backward.name, backward.deeper, backward.kind) == ("backward", True, "largest")
    profile = SimpleNamespace(tree=json.loads(json.dumps(STEP)))
    assert show.waterfall(profile).alt == show.waterfall(STEP).alt


def test_many_parts_are_gathered_but_none_is_lost() -> None:
    level = next(levels_of(node("forward", 465.0, *(node(f"layer {i}", float(i)) for i in range(1, 31)))))
    assert (len(level.bars), level.bars[-2].name) == (14, "18 others")
    assert level.remainder == pytest.approx(0)


def test_kernels_of_a_trace_stand_on_the_roofline() -> None:
    trace = PaperTrace().launch("add", 1e-4, flops=10**6).launch("add", 1e-4, flops=10**6).launch("take", 4e-5, flops=0)
    kernels = kernels_of(trace)
    assert kernels["add"] == (2 * 10**6, 16 * 10**6, pytest.approx(2e-4))
    assert kernels["take"] == (0, 8 * 10**6, pytest.approx(4e-5))
    alt = show.roofline(1e13, 4e11, kernels=trace, where="modelled, T4").alt
    assert alt == show.roofline(1e13, 4e11, kernels=kernels, where="modelled, T4").alt
    assert "add: 10 Gflop/s at 0.125 flops a byte, 20 % of what memory allows." in alt
    assert alt.endswith("take computes nothing: 200 GB/s, 50 % of the bandwidth.")


VALUES = np.array([3, 1, 4, 1, 5, 9, 2, 6], float)


def report(source: str, *arrays: Any, threads: int) -> Any:
    compiled = kernel(source, jit, cp)
    compiled[1, threads](*map(cp.asarray, arrays))
    return compiled.report


@pytest.mark.parametrize("index", ["i", "i + 1", "2 * i", "32 * i", "31 - i % 32", "i // 4", "i * 37 % 64", "0"])
def test_a_warps_sectors_are_those_that_the_simulated_gpu_counts(index: str) -> None:
    places = np.array([[eval(index) for i in range(32 * warp, 32 * warp + 32)] for warp in range(3)])
    access = Access(places)
    source = f"def kernel(y, x):\n    i = cp.int32(jit.threadIdx.x)\n    y[i] = x[{index}]\n"
    total = report(source, np.zeros(96, "f"), np.zeros(64 * 96, "f"), threads=96).total
    assert sum(len(access.shares(warp)) for warp in range(3)) == total.read_sectors
    assert sum(access.fewest(warp) for warp in range(3)) == total.read_ideal


@pytest.mark.parametrize("word", ["t", "32 * t", "33 * t", "2 * t", "t // 2", "0", "(t * 7) % 64", "t % 4 * 32 + t"])
def test_passes_are_those_that_the_simulated_gpu_counts(word: str) -> None:
    source = (
        "def kernel(y):\n    t = cp.int32(jit.threadIdx.x)\n    s = jit.shared_memory(cp.float32, 1152)\n"
        "    for k in range(t, 1152, 32):\n        s[k] = 0.0\n"
        f"    jit.syncthreads()\n    y[t] = s[{word}]\n"
    )
    lines = report(source, np.zeros(32, "f"), threads=32).lines
    line = next(line for line in lines if line.code.startswith("y[t]"))
    passes = words_a_bank(np.array([eval(word) for t in range(32)])).max()
    assert (passes, passes - 1) == (line.shared_passes, line.bank_conflicts)


# barriers

LOOP = """
def kernel(y, x):
    t = cp.int32(jit.threadIdx.x)
    s = jit.shared_memory(cp.float32, 8)
    s[t] = x[t]
    jit.syncthreads()
    half = 4
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        half //= 2
        BARRIER
    if t == 0:
        y[0] = s[0]
"""


def test_the_tree_is_the_kernels_and_without_a_barrier_the_kernel_races() -> None:
    y, x = cp.zeros(1, "f"), cp.asarray(VALUES.astype("f"))
    compiled = kernel(LOOP.replace("BARRIER", "jit.syncthreads()"), jit, cp)
    compiled[1, 8](y, x)
    tree = with_barriers(VALUES)
    assert tree.result == y.get()[0] == VALUES.sum()
    assert compiled.report.barriers == 1 + len(tree.steps)
    with pytest.raises(jit.KernelFault, match="race"):
        kernel(LOOP.replace("BARRIER", "pass"), jit, cp)[1, 8](y, x)


@pytest.mark.parametrize("count", [4, 8, 16])
def test_without_barriers_every_addition_is_done_and_the_sum_is_wrong(count: int) -> None:
    values = 2.0 ** np.arange(count)
    ordered, hasty = with_barriers(values), without_barriers(values)
    assert ordered.result == values.sum() != hasty.result
    assert len(ordered.steps) == len(hasty.steps)
    adds = [{(add.thread, add.other) for step in tree.steps for add in step} for tree in (ordered, hasty)]
    assert adds[0] == adds[1]
    assert not any(add.late for step in ordered.steps for add in step)


@pytest.mark.parametrize(("inputs", "units"), [(2, 2), (4, 3), (1, 1)])
def test_the_cell_in_the_picture_computes_what_the_library_does(inputs: int, units: int) -> None:
    rng = np.random.default_rng(0)
    shapes = (inputs,), (units,), (units,), (4 * units, inputs), (4 * units, units), (4 * units,)
    given = [rng.standard_normal(shape) for shape in shapes]
    x, h, c, *parameters = given
    right_h, right_c = ops.lstm_step(x[None], h[None], c[None], *parameters)
    values = Cell(*given).values
    np.testing.assert_allclose(values["h"], right_h[0])
    np.testing.assert_allclose(values["c"], right_c[0])
    np.testing.assert_allclose(values["sums"].ravel(), x @ parameters[0].T + h @ parameters[1].T + parameters[2])


def _cell(inputs: int, units: int) -> Cell:
    size = 4 * units
    return Cell(np.ones(inputs), *(np.ones(units),) * 2, np.ones((size, inputs)), np.ones((size, units)), np.ones(size))


def test_the_cell_in_words() -> None:
    example = Cell(X, H, C, WEIGHT_IH, WEIGHT_HH, BIAS)
    lines = [worked_cell(example, step) for step in range(len(CELL_STEPS))]
    assert lines[1].endswith("1 × (−2) + (−0.5) × 1 + 0.5 × (−1) + 0.2 × 0 + (−0.5) = −3.5")
    assert lines[2] == "First value: sigmoid(−3.5) = 0.03"
    assert lines[4] == "First value: tanh(0.95) = 0.74"
    assert lines[7] == "First value: 0.88 × tanh(0.81) = 0.59"
    assert worked_cell(_cell(4, 3), 1).startswith("First value: 1 × 1 + ")
    long = Cell(*(np.full_like(values, -0.25) for values in vars(_cell(4, 3)).values()))
    assert worked_cell(long, 1) == "First value: 7 products and a bias = 0.19"


def test_a_form_says_how_long_it_takes_and_how_busy_the_gpu_is() -> None:
    many, few = (Form.of(trace) for trace in traces().values())
    assert (many.launches, few.launches) == (8, 2)
    assert (many.span, few.span) == pytest.approx((1.65e-4, 6e-5))
    assert (many.busy, few.busy) == pytest.approx((6e-5, 4e-5))  # two streams at once count once


def test_launches_stand_where_their_time_is(drawn: Drawn) -> None:
    """The host's calls, the products and the others of the chosen form, each with a look of its own."""
    drawn.at(show.launches(traces(), start="fused"))
    by_colour = {look: [box for box, colour in drawn.fills if colour == look] for look in (BLUE, ORANGE, SKY)}
    inch = (RIGHT - FORMS_LEFT) / 1.65e-4
    assert [box[0] for box in by_colour[BLUE][:2]] == pytest.approx([FORMS_LEFT, FORMS_LEFT + 2e-5 * inch])
    product, other = by_colour[ORANGE][0], by_colour[SKY][0]
    assert (product[0], product[2]) == pytest.approx((FORMS_LEFT + 2e-5 * inch, 4e-5 * inch))
    assert (other[0], other[2]) == pytest.approx((FORMS_LEFT + 4e-5 * inch, 2e-5 * inch))
    assert other[3] < product[3]  # told apart without colours
    assert other[1] > product[1] + product[3]  # a row of its own for the second stream
    assert {"host", "stream 0", "stream 7"} <= set(drawn.texts)


def plan(schedule: Any) -> Layers:
    return Layers.of(schedule, 3, 4)


WRONG_WAVEFRONTS = {  # wrong schedules, with the cells that are wrong in each slot
    "same slot": ([[(0, 0), (1, 0)], [(0, 1), (1, 1)]], [[(1, 0)], [(1, 1)]]),
    "backward": ([[(1, 1)], [(0, 1), (1, 0)], [(0, 0)]], [[(1, 1)], [(0, 1), (1, 0)], []]),
    "twice": ([[(0, 0)], [(0, 0), (0, 1)], [(0, 1)]], [[], [(0, 0)], [(0, 1)]]),
    "twice at once": ([[(0, 0), (0, 0)]], [[(0, 0)]]),
    "step skipped": ([[(0, 0)], [(0, 2)]], [[], [(0, 2)]]),
}


def test_diagonals_are_right_and_so_is_one_cell_at_a_time() -> None:
    one = [[(layer, step)] for layer in range(3) for step in range(4)]
    for schedule in (DIAGONALS, one):
        assert not any(plan(schedule).wrong(slot) for slot in range(len(schedule)))
        assert plan(schedule).never == 0
        assert show.wavefront(schedule, 3, 4).alt.endswith("Every cell fires once, after what it needs.")


@pytest.mark.parametrize(("schedule", "wrong"), WRONG_WAVEFRONTS.values(), ids=WRONG_WAVEFRONTS)
def test_cells_that_fire_too_early_or_again_are_found(schedule: Any, wrong: Any) -> None:
    found = plan(schedule)
    assert [found.wrong(slot) for slot in range(len(schedule))] == wrong
    assert "after what it needs." not in show.wavefront(schedule, 3, 4).alt


def test_a_slot_is_drawn_as_it_is(drawn: Drawn) -> None:
    """Cells firing and done, an arrow from each that is needed, and what is wrong marked."""
    explorer = show.wavefront(DIAGONALS, 3, 4)
    for slot, (firing, arrows) in enumerate(((1, 0), (2, 2), (3, 4), (3, 5), (2, 4), (1, 2))):
        drawn.at(explorer, slot=slot)
        assert sum(colour == FIRING for _, colour in drawn.fills) == firing + 1  # and the legend's
        assert sum(colour == BLUE for _, colour in drawn.lines) == 2 * (arrows + 1)  # each with its head
        assert len(drawn.hatches) == 1
    drawn.at(show.wavefront([[(0, 0), (1, 0)]], 2, 1), slot=0)
    assert sum(colour == TOO_EARLY for _, colour in drawn.fills) == 2
    assert sum(colour == RED for _, colour in drawn.lines) == 2 * 2
    (box, _), _ = drawn.hatches
    assert box in [box for box, colour in drawn.fills if colour == TOO_EARLY]


def test_no_layer_stands_beside_a_whole_network_and_a_mark_tells_how_its_time_came_about() -> None:
    rungs = [
        {"label": "a layer", "seconds": 2.0, "what": "convolution forward only"},
        {"label": "a network", "seconds": 9.0, "what": "an epoch of training"},
        {"label": "a model", "seconds": 3.0, "what": "an epoch of training", "hardware": "T4, modelled"},
    ]
    layers, networks = show.ladder(rungs).figure.axes
    marks = [[line.get_marker() for line in axes.lines if len(line.get_xdata()) == 1] for axes in (layers, networks)]
    assert marks == [["o"], ["o", "^", "D", "D", "D", "D"]]


def test_the_published_ladder_is_as_it_was_published() -> None:
    steps = steps_of(PUBLISHED)
    assert [step.gflops for step in steps] == [349, 724, 994, 1942, 2199, 2290, 3898]
    for step in steps:  # some of its factors are rounded, others cut off
        assert (step.gflops or 0) / 349 == pytest.approx(step.factor, abs=0.1)
    assert largest_gain(steps) == "combined"
    assert "wavefront" not in gains(steps)


def test_the_largest_gain_is_of_one_rung_over_the_one_before() -> None:
    steps = steps_of(RECORD)
    assert gains(steps) == pytest.approx({"combined": 2, "streams": 0.8, "persistent": 12.5})
    assert largest_gain(steps) == "persistent"
    assert largest_gain(steps_of({"naive": 1.0, "combined": 2.0})) == ""


@pytest.mark.parametrize("size", range(2, 9))
def test_a_ring_adds_up_real_numbers(size: int) -> None:
    """Powers of two: their sum says which ranks are in it, and a rank that is added twice shows."""
    ring, values = Ring(size), np.repeat(2 ** np.arange(size), size).reshape(size, size)
    assert ring.rounds == 2 * (size - 1)
    for number in range(ring.rounds + 1):
        before = values.copy()
        for rank, chunk in ring.moves(number):
            to = (rank + 1) % size
            values[to, chunk] = before[rank, chunk] + (values[to, chunk] if number < size else 0)
        held = [[sum(2**rank for rank in cell) for cell in row] for row in ring.after(number)]
        assert held == values.tolist()
        assert len(ring.moves(number)) == (size if number else 0)  # a chunk of each rank
    assert (values == 2**size - 1).all()
    assert ring.carried(ring.rounds) * size == 2 * (size - 1)


FILLED = slots("F0 F1 F2 -  -  B0 B1 B2", "-  F0 F1 F2 B0 B1 B2")
WRONG_PIPELINES = {
    "same slot": (slots("F0 - B0", "F0 B0"), [(1, 0)], "stage 1 does F0 in slot 0, before F0 of stage 0"),
    "backward first": (slots("B0 F0"), [(0, 0)], "stage 0 does B0 in slot 0, before F0 of stage 0"),
    "not back yet": (slots("F0 - B0", "- F0 B0"), [(0, 2)], "stage 0 does B0 in slot 2, before B0 of stage 1"),
    "neither": (
        slots("B0 F0 - B0", "- - F0 B0"),
        [(0, 0), (0, 3)],
        "B0 in slot 0, before F0 of stage 0 and B0 of stage 1; 1 more slot",
    ),
    "again": (slots("F0 F0 B0"), [(0, 1)], "stage 0 does F0 in slot 1 again"),
    "left out": (slots("F0 F1 - B0 B1", "- F0 B0"), [(0, 4)], "before B1 of stage 1; 2 passes never done"),
}


def wrong_places(plan: Pipeline) -> list[tuple[int, int]]:
    return [(stage, slot) for slot in range(len(plan.slots)) for stage, _ in plan.wrong(slot)]


def test_both_ways_through_a_pipeline_are_right_and_hold_what_they_hold() -> None:
    for schedule, held in ((FILLED, [3, 3]), (IN_TURN, [2, 1])):
        plan = Pipeline.of(schedule)
        assert (wrong_places(plan), plan.never, activations(plan.rows)) == ([], 0, held)
        assert (len(plan.rows), plan.micro_batches, len(plan.slots), plan.fewest) == (2, 3, 8, 8)
        assert bubble(plan.rows) == pytest.approx(1 / (3 + 1))  # (p - 1) / (m + p - 1)
    forward = Pipeline.of(slots("F0 F1", "- F0 F1"))
    assert (forward.never, forward.fewest, activations(forward.rows)) == (0, 3, [2, 2])


@pytest.mark.parametrize(("schedule", "wrong", "words"), WRONG_PIPELINES.values(), ids=WRONG_PIPELINES)
def test_what_comes_too_early_or_again_in_a_pipeline_is_found(schedule: Any, wrong: Any, words: str) -> None:
    assert wrong_places(Pipeline.of(schedule)) == wrong
    assert f"{words}." in show.pipeline(schedule).alt


def test_a_pipeline_is_drawn_as_it_is(drawn: Drawn) -> None:
    drawn.at(show.pipeline(IN_TURN))
    colours = [colour for _, colour in drawn.fills]
    assert [colours.count(colour) - 1 for colour in (FORWARD, BACKWARD, PALE)] == [6, 6, 4]  # -1: the legend
    assert not drawn.hatches
    lefts = {colour: [box[0] for box, its in drawn.fills if its == colour][:-1] for colour in (FORWARD, BACKWARD)}
    slot = lefts[FORWARD][1] - lefts[FORWARD][0]  # micro-batches 0 and 1 of stage 0 stand side by side
    first = [round((left - lefts[FORWARD][0]) / slot) for left in lefts[BACKWARD]]
    assert sorted(first) == [2, 3, 4, 5, 6, 7]
    drawn.at(show.pipeline(WRONG_PIPELINES["again"][0]))
    assert sum(colour == TOO_EARLY for _, colour in drawn.fills) == 2
    assert [colour for _, colour in drawn.hatches] == [RED, RED]


def test_a_step_computes_and_then_reduces_its_gradient() -> None:
    model = Model(compute=0.08, gradient=4e6, alpha=1e-3, beta=1e-8)
    assert model.step(1, "strong") == model.step(1, "weak") == 0.08
    reduced = 2 * 3 * (1e-3 + 1e-8 * 4e6 / 4)  # 2 (p - 1) (alpha + beta n / p)
    assert model.step(4, "strong") == pytest.approx(0.02 + reduced)
    assert model.step(4, "weak") == pytest.approx(0.08 + reduced)
    assert efficiency(0.08, 0.04, 4, "strong") == pytest.approx(0.5)
    assert efficiency(0.08, 0.1, 4, "weak") == pytest.approx(0.8)
    assert model.efficiency(4, "weak") == pytest.approx(0.08 / (0.08 + reduced))
