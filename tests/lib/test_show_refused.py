"""unrolled.show: what cannot be drawn is refused, with the argument and what was expected named."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from paper_trace import PaperTrace
from pictures import DIAGONALS, HISTORY, KERNEL, NETWORK, SQUARE, forms, node

from unrolled import show

ONES, NAN = np.ones, float("nan")
NO_HISTORY = SimpleNamespace(loss=[], accuracy=[], validation_loss=[], validation_accuracy=[])
TEN = np.arange(10)
IMAGES = np.ones((10, 4, 4))
NAIVE = forms()["naive"]


convolved = partial(show.convolution, image=SQUARE, kernel=KERNEL)


def raced(**contestants: Any) -> Any:
    return show.race(IMAGES, TEN, contestants)


VALUE_ERRORS: list[tuple[Callable[[], Any], str]] = [
    (lambda: show.Slider("a", [1, 2], 2), "start must be an index into the 2 values, got 2"),
    (lambda: show.attention_blocks(16, 2), "t is 16 and block 2; expected 2 to 16, in at most 7 blocks"),
    (lambda: show.bars({"a": 0.0}, "s", log=True), "above 0"),
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
    (lambda: show.difference(ONES((2, 2)), ONES((2, 3))), r"images of one shape, got \(2, 2\) and \(2, 3\)"),
    *(
        (lambda shape=shape: show.filters(ONES(shape)), "weight must be")
        for shape in ((3, 3), (4, 2, 3, 3), (65, 1, 3, 3), (0, 1, 3, 3))
    ),
    (lambda: show.filters(ONES((4, 1, 3, 3)), ONES((3, 8, 8))), "image must be"),
    (lambda: show.gallery([]), "nothing to draw"),
    (lambda: show.images(IMAGES, TEN[:9]), "labels must hold one value an image: got 9 for 10 images"),
    (lambda: show.images(ONES((2, 3, 4, 5))), r"images must be \(N, H, W\) or \(N, 1, H, W\), got"),
    (lambda: show.launches({}), r"start must be one of the traces, got None for \[\]"),
    (lambda: show.launches({"naive": NAIVE, "empty": PaperTrace()}), r"traces\['empty'\]: the trace is empty"),
    (lambda: show.launches({"a": NAIVE, "b": PaperTrace("H200").launch("add", 1)}), "modelled, H200 and modelled, T4"),
    (lambda: show.learning_curves(HISTORY, [1, 2]), "values for"),
    (lambda: show.learning_curves(NO_HISTORY), "values for"),
    (lambda: show.losses({"a": [NAN, 1.0]}), "'a' does not start with a number"),
    (lambda: show.max_pool2d(SQUARE, 2, values=ONES((2, 3))), r"values have shape \(2, 3\); expected \(1, 2, 2\)"),
    (lambda: show.pipeline("gpipe2"), "schedule is 'gpipe2'; expected gpipe, 1f1b, or a list of slots for each stage"),
    (lambda: show.pipeline([]), "schedule must have 1 to 8 stages and at most 128 slots, got 0 and 0"),
    (lambda: show.pipeline([[None], []]), "schedule holds no work"),
    (lambda: show.pipeline([[("F", 0)], [("X", 0)]]), r"slot 0 of stage 1 is \('X', 0\); expected"),
    (lambda: show.pipeline("gpipe", 0, 8), "stages must be 1 to 8 and micro_batches 1 to 16, got 0 and 8"),
    (lambda: raced(a=(1.0, TEN), b=(1.0, TEN[:3])), "predictions of 'b' must hold one value an image: got 3 for 10"),
    (lambda: show.systolic_array([[1, 2]], [[1, 2]]), "a and b must"),
    (lambda: show.timeline(PaperTrace()), "the trace is empty"),
    (lambda: show.warps(start="x[3 * i]"), r"got 'x\[3 \* i\]' for \['x\[i\]'"),
    (lambda: show.waterfall(node("fill", 1.0)), "'fill' has no parts to show"),
    (lambda: show.waterfall(node("step", 1.0, node("a", 1.0)), ("update",)), r"path is \('update',\); expected one of"),
    (lambda: show.wavefront([], 3, 4), "schedule is empty"),
    (lambda: show.wavefront([[(0, 0)], [(3, 0)]], 3, 4), r"slot 1 of schedule holds \(3, 0\); expected layers 0 to 2"),
    (lambda: show.wavefront(DIAGONALS, 3, 17), "layers must be 1 to 8 and steps 1 to 16, got 3 and 17"),
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
