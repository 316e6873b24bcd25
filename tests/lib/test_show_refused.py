"""unrolled.show: what cannot be drawn is refused, with the argument and what was expected named."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from paper_trace import PaperTrace
from pictures import (
    BOX,
    CLIMB,
    DIAGONALS,
    HISTORY,
    KERNEL,
    LINES,
    NETWORK,
    PRECISIONS,
    RECORD,
    SQUARE,
    bowl,
    forms,
    node,
)

from unrolled import show
from unrolled.parallel.network import Message

ONES, NAN = np.ones, float("nan")
NO_HISTORY = SimpleNamespace(loss=[], accuracy=[], validation_loss=[], validation_accuracy=[])
TEN = np.arange(10)
IMAGES = np.ones((10, 4, 4))
NAIVE = forms()["naive"]


convolved = partial(show.convolution, image=SQUARE, kernel=KERNEL)


def raced(**contestants: Any) -> Any:
    return show.race(IMAGES, TEN, contestants)


def sent(count: int, to: int = 1) -> Any:
    return show.messages([Message(0, to, 8, 0, 1, 1)] * count)


VALUE_ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: show.Slider("a", [1, 2], 2), "start must be an index into the 2 values, got 2"),
    (lambda: show.agreement({"kernels": {"add": (0, 1e-6)}}), r"\(measured, modelled\) seconds above 0"),
    (lambda: show.bars({"a": 0.0}, "s", log=True), "above 0"),
    (lambda: show.causes(CLIMB[:1]), "expected at least two"),
    (lambda: show.causes([CLIMB[0], {"label": "x", "seconds": 0.0, "cause": "code"}]), "'x' must be above 0"),
    (lambda: show.causes([CLIMB[0], {"label": "x", "seconds": 1.0}]), "cause of rung 'x' is None; expected code"),
    (lambda: show.clipping([1, 1]), "not all the same"),
    (lambda: show.clipping([1, 2], 9), "bits must be 2 to 8, got 9"),
    (lambda: show.col2im(ONES((4, 3)), (3, 3), 2), r"columns has shape \(4, 3\); expected \(4, 4\) for an image"),
    (lambda: show.computation_graph([[1, 2]], [0], ([[1, 2]],), ([0],)), "weights holds 1 arrays; expected 2"),
    (lambda: show.computation_graph(**{**NETWORK, "x": [[1, 2, 3]], "labels": [0]}), "weight has shape"),
    *(
        (lambda labels=labels, guesses=guesses: show.confusion(labels, guesses), "labels and predictions must be")
        for labels, guesses in (([0, 1], [0]), ([], []), ([0, -1], [0, 0]), ([0, 30], [0, 0]), ([[0]], [[0]]))
    ),
    (lambda: show.conv2d_backward(np.eye(3), np.eye(2), [[1, 2]]), r"grad has shape \(1, 2\); the output of this"),
    (lambda: show.conv2d_backward(ONES((2, 3, 3)), ONES((2, 2, 2)), np.eye(2)), "the picture has room for one"),
    (lambda: convolved(kernel=ONES((2, 3, 3))), "kernel has 2 channels, image 1"),
    (lambda: convolved(kernel=ONES((5, 3))), r"kernel_size \(5, 3\) is larger than the padded image \(4, 4\)"),
    (lambda: convolved(stride=0), "stride is 0; expected at least 1"),
    (lambda: convolved(padding=-1), "padding is -1; expected at least 0"),
    (lambda: convolved(image=ONES(4)), r"image must be one \(H, W\) or \(C, H, W\) array, got shape \(4,\)"),
    (lambda: convolved(image=ONES((9, 4, 4))), "image has 9 channels"),
    (lambda: show.crossover([{"kernel": 3, "size": 8, "faster": 0}]), "rows must hold kernel, size and faster above 0"),
    (lambda: show.difference(ONES((2, 2)), ONES((2, 3))), r"images of one shape, got \(2, 2\) and \(2, 3\)"),
    *(
        (lambda shape=shape: show.filters(ONES(shape)), "weight must be")
        for shape in ((3, 3), (4, 2, 3, 3), (65, 1, 3, 3), (0, 1, 3, 3))
    ),
    (lambda: show.filters(ONES((4, 1, 3, 3)), ONES((3, 8, 8))), "image must be"),
    (lambda: show.float_ruler(exponent=9), "exponent must be 2 to 8 and fraction 1 to 23, got 9 and 10"),
    (lambda: show.growth([1, 2, 3, 4], {"bubble": [1.0]}), "times of 'bubble' must be 4 seconds above 0"),
    (lambda: show.guesses([]), "at least one guess"),
    (lambda: show.hardware(), "expected at least one GPU"),
    (lambda: show.images(IMAGES, TEN[:9]), "labels must hold one value an image: got 9 for 10 images"),
    (lambda: show.images(ONES((2, 3, 4, 5))), r"images must be \(N, H, W\) or \(N, 1, H, W\), got"),
    (lambda: show.ladder([{"label": "x", "seconds": 0}]), "seconds of rung 'x' must be above 0, got 0"),
    (lambda: show.launches({}), r"start must be one of the traces, got None for \[\]"),
    (lambda: show.launches({"naive": NAIVE, "empty": PaperTrace()}), r"traces\['empty'\]: the trace is empty"),
    (lambda: show.launches({"a": NAIVE, "b": PaperTrace("H200").launch("add", 1)}), "modelled, H200 and modelled, T4"),
    (lambda: show.learning_curves(HISTORY, [1, 2]), "values for"),
    (lambda: show.learning_curves(NO_HISTORY), "values for"),
    (lambda: show.losses({}), "curves is empty"),
    (lambda: show.losses({"a": [NAN, 1.0]}), "'a' does not start with a number"),
    (lambda: show.max_pool2d(SQUARE, 2, values=ONES((2, 3))), r"values have shape \(2, 3\); expected \(1, 2, 2\)"),
    (lambda: sent(0), "sent must hold 1 to 400 messages, got 0"),
    (lambda: sent(1, to=16), "sent must be between 16 ranks at most, got 17"),
    (lambda: show.optimizer_paths(bowl, {"a": {0.1: [[0, 0]]}, "b": {0.2: [[0, 0]]}}, BOX), "paths"),
    (lambda: show.pipeline("gpipe2"), "schedule is 'gpipe2'; expected gpipe, 1f1b, or a list of slots for each stage"),
    (lambda: show.pipeline([]), "schedule must have 1 to 8 stages and at most 128 slots, got 0 and 0"),
    (lambda: show.pipeline([[None], []]), "schedule holds no work"),
    (lambda: show.pipeline([[("F", 0)], [("X", 0)]]), r"slot 0 of stage 1 is \('X', 0\); expected"),
    (lambda: show.pipeline("gpipe", 0, 8), "stages must be 1 to 8 and micro_batches 1 to 16, got 0 and 8"),
    (lambda: show.precision_front([{**PRECISIONS[0], "accuracy": 98}]), "rows must hold"),
    (lambda: raced(a=(1.0, TEN)), "contestants must be two"),
    (lambda: raced(a=(1.0, TEN), b=(1.0, TEN[:3])), "predictions of 'b' must hold one value an image: got 3 for 10"),
    (lambda: raced(a=(0.0, TEN), b=(1.0, TEN)), "seconds of 'a' must be above 0"),
    (lambda: show.ring_allreduce(1), "ranks must be 2 to 8, got 1"),
    (lambda: show.roofline(1e13, 4e11, kernels={"add": (1, 2, 0)}), "kernel 'add' has 1 flops, 2 bytes, 0 s"),
    (lambda: show.rungs({"a": RECORD, "b": RECORD, "c": RECORD}), "1 to 3 with the published one, got 4"),
    (lambda: show.rungs({"mine": {}}), "ladder 'mine' is empty"),
    (lambda: show.rungs({"mine": {"naive": 0.0}}), "'naive' of ladder 'mine' has seconds 0.0; expected"),
    (lambda: show.rungs({"mine": [{"name": "lstm, naive"}]}), "'naive' of ladder 'mine' has none of speedup, gflops"),
    (lambda: show.rungs({"mine": [{"speedup": 1.0}]}), "ladder 'mine' has a row without a name"),
    (lambda: show.scaling({}), "lines is empty"),
    (lambda: show.scaling({**LINES, "x": ([16], [0.1], "a guess")}), "must say how its times came about: measured"),
    (lambda: show.scaling({"x": ([16, 64], [0.1], "measured")}), "as many sizes as seconds"),
    (lambda: show.scaling_curves(compute=0), "compute must be above 0, got 0"),
    (lambda: show.scaling_curves(weak=[(65, 0.1, "a")]), r"weak holds \(65, 0.1, 'a'\); expected 1 to 64 ranks"),
    (lambda: show.systolic_array([[1, 2]], [[1, 2]]), "a and b must"),
    (lambda: show.timeline(PaperTrace()), "the trace is empty"),
    (lambda: show.warps(start="x[3 * i]"), r"got 'x\[3 \* i\]' for \['x\[i\]'"),
    (lambda: show.waterfall(node("fill", 1.0)), "'fill' has no parts to show"),
    (lambda: show.waterfall(node("step", 1.0, node("a", 1.0)), ("update",)), r"path is \('update',\); expected one of"),
    (lambda: show.wavefront([], 3, 4), "schedule is empty"),
    (lambda: show.wavefront([[(0, 0)], [(3, 0)]], 3, 4), r"slot 1 of schedule holds \(3, 0\); expected layers 0 to 2"),
    (lambda: show.wavefront(DIAGONALS, 3, 17), "layers must be 1 to 8 and steps 1 to 16, got 3 and 17"),
    (lambda: show.winograd_1d([1, 2, 3], [1, 2, 3]), r"pixels must be 4 finite numbers, got \[1.0, 2.0, 3.0\]"),
    (lambda: show.winograd_1d([1, 2, 3, 4], [[1, 2, 3]]), "weights must be 3 finite numbers"),
]
TYPE_ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: show.images(object()), "expected an array, got object"),
    (lambda: show.pipeline(None), "schedule is None; expected for each stage a list"),
    (lambda: show.wavefront(None, 3, 4), "schedule is None; expected a list of slots"),
    (lambda: show.wavefront([[(0.5, 0)]], 3, 4), "expected a list of slots"),
]


ERRORS = [(error, *row) for error, rows in ((ValueError, VALUE_ERRORS), (TypeError, TYPE_ERRORS)) for row in rows]


@pytest.mark.parametrize(("error", "draw", "words"), ERRORS, ids=[words[:40] for *_, words in ERRORS])
def test_what_cannot_be_drawn_is_refused(error: type[Exception], draw: Callable[[], Any], words: str) -> None:
    with pytest.raises(error, match=words):
        draw()
