"""Variants of lesson 04: a slope along a direction, weights (D, M), smoothed labels, dilation, channels last."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l02_convolution import dilation
from unrolled.checks.exercises.l04_backprop import dense_gradients, exercises, gradients, window_gradients
from unrolled.checks.exercises.l04_backprop.exercises import BATCH, WORK, columns_case, gradients_case, numbered_columns
from unrolled.checks.exercises.l04_backprop.gradients import GROWING, KINKED, SQUARES, directed
from unrolled.checks.spec import Case, Rung, case, normal, random_case, variant


def _slope_case(name: str, function: gradients.Known, x: list[float], direction: list[float], **step: float) -> Case:
    return case(name, function=function, x=np.array(x), direction=np.array(direction), **step)


numeric_gradient_directional = variant(
    exercises.numeric_gradient,
    reference=gradients.slope_along,
    cases=[
        _slope_case("a² + b² + c² at (1, -2, 3), along (1, 0, 2)", SQUARES, [1.0, -2.0, 3.0], [1.0, 0.0, 2.0]),
        _slope_case("a direction twice as long: twice the slope", SQUARES, [1.0, -2.0, 3.0], [2.0, 0.0, 4.0]),
        case("a matrix", function=GROWING, x=normal(2, 3, dtype=float), direction=normal(2, 3, dtype=float)),
        _slope_case("the step that is given: 0.01", KINKED, [0.003, -0.002], [1.0, 0.5], step=0.01),
        case("x and direction in float32", function=GROWING, x=normal(3, 2), direction=normal(3, 2)),
        *(random_case(f"catches: {error}", directed(draw)) for error, draw in gradients.ERRORS.items()),
        random_case("shapes as they come", directed(gradients.any_function)),
    ],
    hints=(
        "Stand at x and look along the direction. Go a little way ahead and ask the function; go the same way back "
        "from x and ask again. The difference of the answers, divided by the way between them, is the slope.",
        "All values of x move at once, each by step times its value in direction: x + step * direction has the shape "
        "of x. Convert both to float64 first. From the point behind to the point ahead it is 2 * step.",
        "x = np.array(x, dtype=np.float64)\n"
        "way = (step times the direction, in float64)\n"
        "return (function(x + way) - (what it gives as far behind x)) / (the way from one point to the other)",
    ),
    mistakes=gradients.DIRECTION_MISTAKES,
    compare=gradients.is_a_judge_along,
)

affine_backward_in_out = variant(
    exercises.affine_backward,
    reference=dense_gradients.in_out_backward,
    cases=[
        gradients_case(
            "two samples of two numbers, by hand", array([1, 10], [2, 0]), array([2, 3], [1, 1]), array([1, 0], [4, 1])
        ),
        gradients_case("one sample of three numbers", array([1, 10]), array([2, 3, 5]), array([1, 0], [0, 1], [2, 1])),
        gradients_case("all sizes 4, where no shape can warn you", (4, 4), (4, 4), (4, 4)),
        gradients_case("float64", (3, 2), (3, 5), (5, 2), float),
        random_case("sizes as they come", dense_gradients.any_affine_in_out),
    ],
    hints=(
        "Write y = x @ weight + bias for one sample and one output: y_m is the sum over d of x_d * weight_dm, plus "
        "bias_m. How much does y_m grow with x_d? With weight_dm? With bias_m? Multiply by grad_m, and add up over "
        "whatever the value had a part in.",
        "Each gradient has the shape of what it belongs to: grad_x (N, D), grad_weight (D, M), grad_bias (M,). You "
        "have grad (N, M), x (N, D) and weight (D, M). Which products of two of them fit, one of the two transposed? "
        "Where N disappears, the product has added up over the samples.",
        "grad_x = grad @ weight.T\ngrad_weight = x.T @ grad\ngrad_bias = grad.sum(axis=0)",
    ),
    mistakes=dense_gradients.IN_OUT_MISTAKES,
)

softmax_cross_entropy_smoothing = variant(
    exercises.softmax_cross_entropy,
    reference=dense_gradients.smoothed_cross_entropy,
    cases=[
        case(
            "probabilities 1/4, 3/4 and targets 0.1, 0.9",
            scores=np.log(array([1, 3])),
            labels=np.array([1]),
            smoothing=0.2,
        ),
        case("two equal scores: loss log 2", scores=array([0, 0]), labels=np.array([0]), smoothing=0.2),
        case("four samples, the smoothing left at 0.1", scores=normal(4, 5), labels=np.array([0, 4, 2, 2])),
        case("no smoothing", scores=normal(3, 4), labels=np.array([3, 0, 1]), smoothing=0.0),
        case("all smoothing: the labels do not count", scores=normal(3, 4), labels=np.array([3, 0, 1]), smoothing=1.0),
        case("scores of 1,000", scores=array([1000, 998, 999], [-1, 0, 1]), labels=np.array([1, 2]), smoothing=0.3),
        case("scores of -1,000", scores=array([-1000, -998], [3, 2]), labels=np.array([1, 0]), smoothing=0.3),
        case("a wrong class with probability 0", scores=array([200, 0], [0, 1]), labels=np.array([0, 1])),
        case("the right class with probability 0", scores=array([200, 0], [0, 1]), labels=np.array([1, 1])),
        case("float64", scores=normal(3, 4, dtype=float), labels=np.array([3, 0, 1]), smoothing=0.25),
        random_case("sizes as they come", dense_gradients.any_smoothed),
    ],
    hints=(
        "The loss is the sum over the classes of target times -log(p). Write -log(p_m) as log(sum) - s_m. The targets "
        "add up to 1, so log(sum) comes out of the sum, once; what is left is a mean of scores, weighed by targets.",
        "shifted (N, M) = scores minus the maximum of each row. Of it you need two numbers a row: the score of the "
        "right class, with weight 1 - smoothing, and the mean of all, with weight smoothing. The gradient is "
        "(probabilities - targets) / N, with smoothing / M in every target and 1 - smoothing more at the label.",
        "shifted = scores - (the largest of each row, as a column)\n"
        "exponentials = np.exp(shifted)\n"
        "sums = exponentials.sum(axis=1)\n"
        "rows = np.arange(len(scores))\n"
        "chosen = (1 - smoothing) * shifted[rows, labels] + smoothing * (the mean of each row of shifted)\n"
        "loss = (np.log(sums) - chosen).mean()\n"
        "grad = exponentials / sums[:, None] - (what every class has as its target)\n"
        "grad[rows, labels] -= 1 - smoothing\n"
        "return loss, (grad, divided by what the mean divided by)",
    ),
    mistakes=dense_gradients.SMOOTHING_MISTAKES,
)

col2im_dilated = variant(
    exercises.col2im,
    reference=dilation.col2im_dilated,
    cases=[
        columns_case("1 to 16, 4 x 4 pixels, dilation 2", numbered_columns(4, 4), (1, 1, 4, 4), (2, 2), dilation=2),
        columns_case(
            "ones: how many windows cover each pixel", np.ones((4, 9), np.float32), (1, 1, 5, 5), (2, 2), dilation=2
        ),
        columns_case("dilation 1: no gaps", numbered_columns(4, 6), (1, 1, 3, 4), (2, 2)),
        columns_case("two channels, kernel 2 x 3", numbered_columns(12, 4), (1, 2, 4, 6), (2, 3), dilation=2),
        columns_case("three images, dilation 3", normal(6, 24), (3, 1, 5, 10), (2, 3), dilation=3),
        columns_case("padding 2", normal(9, 12), (1, 1, 3, 4), (3, 3), padding=2, dilation=2),
        columns_case(
            "stride 2, dilation 3, the last column is met by no window",
            normal(4, 6),
            (1, 1, 6, 9),
            (2, 2),
            stride=2,
            dilation=3,
        ),
        columns_case(
            "stride 3, padding 2, dilation 2", normal(18, 12), (2, 2, 7, 5), (3, 3), stride=3, padding=2, dilation=2
        ),
        columns_case("a 1 x 1 kernel, float64", normal(3, 16, dtype=float), (2, 3, 2, 4), (1, 1), dilation=5),
        random_case("sizes as they come", window_gradients.any_dilated_columns),
    ],
    hints=(
        "Walk as for windows without gaps, and write the values back where they came from, adding to what lies there. "
        "For speed go by the places inside the window: for each (i, j) there is a whole grid of values, one a window. "
        "Only where that grid begins depends on the dilation.",
        "columns.reshape(C, KH, KW, N, OH, OW) parts all axes; [:, i, j] is (C, N, OH, OW). Its first pixel in a "
        "padded x (N, C, H + 2 * padding, W + 2 * padding) lies at row i * dilation and column j * dilation, and the "
        "windows stand `stride` apart. For OH and OW, a window spans dilation * (KH - 1) + 1 rows.",
        "spans = dilation * (KH - 1) + 1, dilation * (KW - 1) + 1\n"
        "OH, OW = ops.conv2d_output_size((H, W), spans, stride, padding)\n"
        "in the loops over i, j, with the reshaped columns and a padded x of zeros:\n"
        "    top, left = i * dilation, j * dilation\n"
        "    values = columns[:, i, j].swapaxes(0, 1)\n"
        "    x[:, :, top : top + stride * OH : stride, left : left + stride * OW : stride] += values\n"
        "return x[:, :, padding : padding + H, padding : padding + W]",
    ),
    mistakes=window_gradients.DILATED_MISTAKES,
    speed=replace(
        exercises.COL2IM_SPEED,
        baseline=dilation.col2im_dilated_loops,
        inputs={**exercises.COL2IM_SPEED.inputs, "padding": 2, "dilation": 2},
    ),
)

X3 = array([1, 2, 0], [0, 1, 3], [2, 0, 1])[None, :, :, None]
W2 = array([1, 0], [2, 3])[:, :, None, None]

conv2d_backward_nhwc = variant(
    exercises.conv2d_backward,
    reference=window_gradients.nhwc_backward,
    cases=[
        case("3 x 3 pixels, one output", grad=array([1, 0], [0, 0])[None, :, :, None], x=X3, weight=W2),
        case("all four outputs", grad=array([1, 2], [3, 4])[None, :, :, None], x=X3, weight=W2),
        gradients_case("two filters", (1, 3, 3, 2), (1, 4, 5, 1), (2, 3, 1, 2)),
        gradients_case("all sizes 3, where no shape can warn you", (3, 3, 3, 3), (3, 3, 3, 3), (3, 3, 3, 3), padding=1),
        gradients_case("two images, three channels", (2, 3, 6, 4), (2, 5, 7, 3), (3, 2, 3, 4)),
        gradients_case("padding 1", (2, 5, 4, 2), (2, 5, 4, 1), (3, 3, 1, 2), padding=1),
        gradients_case("stride 2", (1, 3, 3, 1), (1, 7, 8, 1), (3, 3, 1, 1), stride=2),
        gradients_case("stride 3, padding 2", (2, 3, 3, 3), (2, 6, 5, 2), (3, 3, 2, 3), stride=3, padding=2),
        gradients_case("a 1 x 1 kernel, float64", (2, 4, 3, 4), (2, 4, 3, 5), (1, 1, 5, 4), float),
        random_case("sizes as they come", window_gradients.any_convolution_nhwc),
    ],
    hints=(
        "Take one place (i, j) of the kernel. Forward, every window's pixel at that place went through a dense layer "
        "with the weight weight[i, j] (C, O), and the KH * KW results were added up. So go back through each of these "
        "dense layers: the same grad, other pixels, another weight.",
        "With rows = grad as (N*OH*OW, O): the pixels that place (i, j) met are padded[:, i : i + stride * OH : stride,"
        " j : j + stride * OW : stride], (N, OH, OW, C). As (N*OH*OW, C), pixels.T @ rows is grad_weight[i, j] (C, O)."
        " And grad @ weight[i, j].T (N, OH, OW, C) is added where the pixels were. Channels are last, so all of these "
        "are plain reshapes.",
        "padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))\n"
        "grad_padded, grad_weight = np.zeros_like(padded), np.empty_like(weight)\n"
        "in loops over i, j:\n"
        "    place = (slice(None), slice(i, i + stride * OH, stride), slice(j, j + stride * OW, stride))\n"
        "    grad_weight[i, j] = padded[place].reshape(-1, C).T @ grad.reshape(-1, O)\n"
        "    grad_padded[place] += grad @ weight[i, j].T\n"
        "grad_x = grad_padded[:, padding : padding + H, padding : padding + W]\n"
        "grad_bias = grad.sum(axis=(0, 1, 2))",
    ),
    mistakes=window_gradients.NHWC_MISTAKES,
    rung=Rung(
        "backward in NHWC, place by place",
        WORK,
        {"grad": normal(BATCH, 28, 28, 10), "x": normal(BATCH, 28, 28, 1), "weight": normal(3, 3, 1, 10), "padding": 1},
        BATCH,
    ),
)
