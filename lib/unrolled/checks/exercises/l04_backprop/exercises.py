"""Lesson 04: gradients, by trying and by the chain rule: dense layers, the loss, convolution, pooling."""

from __future__ import annotations

from typing import Any

import numpy as np

from unrolled import ops
from unrolled.checks.exercises.l01_matrix_parallelism.exercises import array
from unrolled.checks.exercises.l02_convolution.exercises import BY_PLACES, SEMINAR_W, SEMINAR_X
from unrolled.checks.exercises.l02_convolution.windows import Shape, Size
from unrolled.checks.exercises.l04_backprop import dense_gradients, gradients, window_gradients
from unrolled.checks.spec import Case, Rung, Spec, Speed, case, images, normal, random_case
from unrolled.device import Array

WORK = "convolution backward only, x 60,000 images"
BATCH = 8
ONE_OUTPUT, ALL_OUTPUTS = array([1, 0], [0, 0])[None, None], array([1, 2], [3, 4])[None, None]


def gradients_case(name: str, grad: Any, x: Any, weight: Any, dtype: Any = np.float32, **options: int) -> Case:
    """Return a case with these arrays, or such of these shapes, drawn from the normal distribution."""
    given = {"grad": grad, "x": x, "weight": weight}
    arrays = {key: normal(*of, dtype=dtype) if isinstance(of, tuple) else of for key, of in given.items()}
    return case(name, **arrays, **options)


numeric_gradient = Spec(
    reference=ops.numeric_gradient,
    cases=[
        case("a² + b² + c² at (1, -2, 3)", function=gradients.SQUARES, x=np.array([1.0, -2.0, 3.0])),
        case("a matrix", function=gradients.GROWING, x=normal(2, 3, dtype=float)),
        case("the step that is given: 0.01", function=gradients.KINKED, x=np.array([0.003, -0.002]), step=0.01),
        case("x in float32, gradient in float64", function=gradients.GROWING, x=normal(3, 2)),
        *(random_case(f"catches: {error}", draw) for error, draw in gradients.ERRORS.items()),
    ],
    domain=random_case("any smooth function", gradients.any_function),
    points=3,
    hints=(
        "Visit the values of x one by one. Move that one a little up and ask the function; move it a little down and "
        "ask again. The difference of the answers, divided by the way between them, is one value of the gradient.",
        "Copy x into float64 first: np.array(x, dtype=np.float64) makes a new array, and the one you were given stays "
        "as it is. The gradient has the shape of x. np.ndindex(x.shape) visits every index, for any number of "
        "axes. From x - step to x + step it is 2 * step.",
        "x = np.array(x, dtype=np.float64)\n"
        "gradient = np.zeros(x.shape)\n"
        "for index in np.ndindex(x.shape):\n"
        "    up, down = x.copy(), x.copy()\n"
        "    up[index] += step\n"
        "    down[index] -= step\n"
        "    gradient[index] = (function(up) - function(down)) / (2 * step)",
    ),
    tolerance=gradients.CLOSE,
    mistakes=gradients.NUMERIC_MISTAKES,
    compare=gradients.is_a_judge,
)

affine_backward = Spec(
    reference=ops.affine_backward,
    cases=[
        gradients_case(
            "two samples of two numbers, by hand", array([1, 10], [2, 0]), array([2, 3], [1, 1]), array([1, 4], [0, 1])
        ),
        gradients_case("one sample of three numbers", array([1, 10]), array([2, 3, 5]), array([1, 0, 2], [0, 1, 1])),
        gradients_case("all sizes 4, where no shape can warn you", (4, 4), (4, 4), (4, 4)),
    ],
    domain=random_case("any sizes", dense_gradients.any_layer),
    points=2,
    hints=(
        "Write y = x @ weight.T + bias for one sample and one output: y_m is the sum over d of x_d * weight_md, plus "
        "bias_m. How much does y_m grow with x_d? With weight_md? With bias_m? Multiply by grad_m, and add up over "
        "whatever the value had a part in.",
        "Each gradient has the shape of what it belongs to: grad_x (N, D), grad_weight (M, D), grad_bias (M,). You "
        "have grad (N, M), x (N, D) and weight (M, D). Which products of two of them fit? Where N disappears, the "
        "product has added up over the samples.",
        "grad_x = grad @ weight\ngrad_weight = grad.T @ x\ngrad_bias = grad.sum(axis=0)",
    ),
    mistakes=dense_gradients.AFFINE_MISTAKES,
    compare=gradients.by_layer,
)

softmax_cross_entropy = Spec(
    reference=ops.softmax_cross_entropy,
    cases=[
        case("two equal scores: loss log 2", scores=array([0, 0]), labels=np.array([0])),
        case(
            "probabilities 1/8, 5/8, 1/4 and 1/2, 1/4, 1/4",
            scores=np.log(array([1, 5, 2], [2, 1, 1])),
            labels=np.array([1, 0]),
        ),
        case("four samples", scores=normal(4, 5), labels=np.array([0, 4, 2, 2])),
        case("scores of 1,000", scores=array([1000, 998, 999], [-1, 0, 1]), labels=np.array([1, 2])),
        case("scores of -1,000", scores=array([-1000, -998], [3, 2]), labels=np.array([1, 0])),
        case("a wrong class with probability 0", scores=array([200, 0], [0, 1]), labels=np.array([0, 1])),
        case("the right class with probability 0", scores=array([200, 0], [0, 1]), labels=np.array([1, 1])),
    ],
    domain=random_case("any scores", dense_gradients.any_labelled),
    points=3,
    hints=(
        "Put the logarithm into the formula before you compute anything: -log(exp(s) / sum) is log(sum) - s. And "
        "softmax does not change when you subtract the same number from all scores of a row: take the largest, and exp "
        "has nothing above 0 left.",
        "shifted (N, M) = scores minus the maximum of each row (keepdims=True keeps the axis). exponentials (N, M), "
        "sums (N,). shifted[np.arange(n), labels] picks the score of the right class of each row: (N,). The gradient "
        "is (probabilities - 1 at the right classes) / N.",
        "shifted = scores - (the largest of each row, as a column)\n"
        "exponentials = np.exp(shifted)\n"
        "sums = exponentials.sum(axis=1)\n"
        "rows = np.arange(len(scores))\n"
        "loss = (np.log(sums) - (shifted, at the right class of each row)).mean()\n"
        "grad = exponentials / sums[:, None]\n"
        "grad[rows, labels] -= 1\n"
        "return loss, (grad, divided by what the mean divided by)",
    ),
    mistakes=dense_gradients.LOSS_MISTAKES,
    compare=gradients.named("loss", "grad", least=lambda inputs: 1 / len(inputs["labels"])),
)


def numbered_columns(height: int, width: int) -> Array:
    """Return a matrix of 1, 2, 3 and so on, row by row."""
    return np.arange(1, 1 + height * width, dtype=np.float32).reshape(height, width)


def columns_case(name: str, columns: Any, x_shape: Shape, kernel_size: Size, **options: int) -> Case:
    """Return a case of the way from columns (C*KH*KW, N*OH*OW) back to images of x_shape (N, C, H, W)."""
    return case(name, columns=columns, x_shape=x_shape, kernel_size=kernel_size, **options)


col2im = Spec(
    reference=ops.col2im,
    allows=(ops.conv2d_output_size, ops.im2col),
    cases=[
        columns_case("1 to 16, 3 x 3 pixels", numbered_columns(4, 4), (1, 1, 3, 3), (2, 2)),
        columns_case("ones: how many windows cover each pixel", np.ones((4, 4), np.float32), (1, 1, 3, 3), (2, 2)),
        columns_case("1 to 24, 3 rows of 4, kernel 2 x 2", numbered_columns(4, 6), (1, 1, 3, 4), (2, 2)),
        columns_case("three images", numbered_columns(6, 12), (3, 1, 3, 4), (2, 3)),
        columns_case("padding 1", normal(9, 12), (1, 1, 3, 4), (3, 3), padding=1),
        columns_case("stride 2, the last column is met by no window", normal(4, 6), (1, 1, 4, 7), (2, 2), stride=2),
        columns_case("stride 2, windows overlap", normal(18, 12), (2, 2, 5, 7), (3, 3), stride=2),
        columns_case("stride 3, padding 2", normal(18, 18), (2, 2, 6, 5), (3, 3), stride=3, padding=2),
    ],
    domain=random_case("any windows", window_gradients.any_columns),
    points=2,
    hints=(
        "im2col read windows; walk the same way and write them back, adding to what lies there. For speed, do not go "
        "window by window: go by the places inside the window. For each place (i, j) there is a whole grid of values, "
        "one a window, and it belongs on a grid of pixels, shifted by (i, j).",
        "columns.reshape(C, KH, KW, N, OH, OW) parts all axes. For place (i, j), [:, i, j] is (C, N, OH, OW). Its "
        "pixels in a padded x (N, C, H + 2 * padding, W + 2 * padding) are the rows i : i + stride * OH : stride and "
        "the columns j : j + stride * OW : stride. Cut the padding off at the end.",
        "columns = columns.reshape(C, KH, KW, N, OH, OW)\n"
        "x = np.zeros((N, C, H + 2 * padding, W + 2 * padding), dtype=columns.dtype)\n"
        "in the loops over i, j:\n"
        "    values = columns[:, i, j].swapaxes(0, 1)\n"
        "    x[:, :, i : i + stride * OH : stride, j : j + stride * OW : stride] += values\n"
        "return x[:, :, padding : padding + H, padding : padding + W]",
    ),
    mistakes=window_gradients.COL2IM_MISTAKES,
    speed=Speed(
        baseline=ops.col2im_loops,
        inputs={"columns": normal(18, 12544), "x_shape": (16, 2, 28, 28), "kernel_size": (3, 3), "padding": 1},
        at_least=10,
        against="a loop over windows, on the columns of 16 images of 28 x 28 with 2 channels",
        advice=BY_PLACES,
    ),
)

conv2d_backward = Spec(
    reference=ops.conv2d_backward,
    allows=(ops.im2col, ops.col2im, ops.affine_backward),
    cases=[
        case("the seminar's 4 x 4 example, one output", grad=ONE_OUTPUT, x=SEMINAR_X, weight=SEMINAR_W),
        case("all four outputs", grad=ALL_OUTPUTS, x=SEMINAR_X, weight=SEMINAR_W),
        gradients_case("padding 1", (2, 2, 5, 4), (2, 1, 5, 4), (2, 1, 3, 3), padding=1),
        gradients_case("stride 2", (1, 1, 3, 3), (1, 1, 7, 8), (1, 1, 3, 3), stride=2),
        gradients_case("stride 3, padding 2", (2, 3, 3, 3), (2, 2, 6, 5), (3, 2, 3, 3), stride=3, padding=2),
    ],
    domain=random_case("any windows", window_gradients.any_convolution),
    points=3,
    hints=(
        "Forward it was a dense layer on columns: y = weight_rows @ columns + bias. So go backward as through a "
        "dense layer: a product with the columns for the weights, a product with the weights for the columns. Then the "
        "columns have to become an image again, which is what col2im does.",
        "Undo the last step of conv2d_gemm first: grad (N, O, OH, OW) -> (O, N, OH, OW) -> rows (O, N*OH*OW). "
        "With columns (C*KH*KW, N*OH*OW): rows @ columns.T is (O, C*KH*KW), and weight_rows.T @ rows is "
        "(C*KH*KW, N*OH*OW). The bias was added everywhere, so it collects over N, OH and OW.",
        "rows = grad.swapaxes(0, 1).reshape(O, -1)\n"
        "columns = ops.im2col(x, (KH, KW), stride, padding)\n"
        "grad_weight = (rows @ columns.T).reshape(weight.shape)\n"
        "grad_columns = weight.reshape(O, -1).T @ rows\n"
        "grad_x = ops.col2im(grad_columns, x.shape, (KH, KW), stride, padding)\n"
        "grad_bias = rows.sum(axis=1)",
    ),
    mistakes=window_gradients.CONVOLUTION_MISTAKES,
    compare=gradients.by_layer,
    rung=Rung(
        "backward by matrix products",
        WORK,
        {"grad": normal(BATCH, 10, 28, 28), "x": normal(BATCH, 1, 28, 28), "weight": normal(10, 1, 3, 3), "padding": 1},
        BATCH,
    ),
)

max_pool2d_backward = Spec(
    reference=ops.max_pool2d_backward,
    allows=(ops.max_pool2d_indices, ops.max_unpool2d),
    cases=[
        case("the seminar's 4 x 4 image", grad=ALL_OUTPUTS, x=SEMINAR_X, kernel_size=2),
        case(
            "after a ReLU: a window of zeros, and ties",
            grad=ALL_OUTPUTS,
            x=array([0, 0, 5, 0], [0, 0, 0, 5], [0, 7, 1, 1], [7, 0, 1, 1])[None, None],
            kernel_size=2,
        ),
        case("a row that no window meets", grad=images(1, 2, 2, 2), x=images(1, 2, 5, 4), kernel_size=2),
        case(
            "overlapping windows that share a maximum",
            grad=array([1, 10], [100, 1000])[None, None],
            x=array([1, 2, 1, 0], [3, 9, 8, 1], [1, 5, 4, 2], [0, 1, 6, 3])[None, None],
            kernel_size=3,
            stride=1,
        ),
        case("window 4, stride 2", grad=images(2, 2, 3, 3), x=images(2, 2, 8, 8), kernel_size=4, stride=2),
        case("padding 1", grad=images(1, 1, 3, 3), x=images(1, 1, 4, 4), kernel_size=2, padding=1),
    ],
    domain=random_case("any windows", window_gradients.any_pooling),
    points=2,
    hints=(
        "Only the largest pixel of a window had a say in the output, so the whole gradient of that output belongs to "
        "it. In lesson 03 you put values back where the maxima came from.",
        "ops.max_pool2d_indices(x, kernel_size, stride, padding) says where the maxima are: (N, C, OH, OW), as grad. "
        "ops.max_unpool2d(values, indices, size) puts values there and adds up what meets; size is (H, W).",
        "indices = ops.max_pool2d_indices(x, kernel_size, stride, padding)\n"
        "return ops.max_unpool2d(what is put back, indices, the size of an image of x)",
    ),
    mistakes=window_gradients.POOLING_MISTAKES,
)
