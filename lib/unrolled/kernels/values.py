"""One thread for each value: one launch for what would otherwise be several."""

from __future__ import annotations

import numpy as np

from unrolled.kernels.kernel import Arrays, Options, per_value

RELU = " y[at] = x[at] > 0 || x[at] != x[at] ? x[at] : (T)0; "  # NaN stays NaN
RELU_BACKWARD = " grad_x[at] = grad[at] * (T)(x[at] > 0); "
ADD_ROW = " y[at] += row[at % COLUMNS]; "
DROPOUT = r"""
    T kept = chance[at] >= (float)rate ? (T)(1 / (1 - rate)) : (T)0;
    mask[at] = kept;
    y[at] = x[at] * kept;
"""


def _relu(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    np.maximum(inputs[0], 0, out=outputs[0])


def _add_row(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (row,), (y,) = inputs, outputs
    if y.shape[1:] != row.shape or row.size != options["columns"]:
        raise ValueError(f"a row of shape {row.shape} does not fit {y.shape}, {dict(options)}")
    np.add(y, row, out=y)


def _relu_backward(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (grad, x), (grad_x,) = inputs, outputs
    np.multiply(grad, x > 0, out=grad_x)


def _dropout(inputs: Arrays, outputs: Arrays, options: Options) -> None:
    (x, chance), (y, mask) = inputs, outputs
    mask[...] = chance >= np.float32(options["rate"])
    mask *= mask.dtype.type(1 / (1 - options["rate"]))
    np.multiply(x, mask, out=y)


relu = per_value("relu", "x -> y", RELU, _relu, lambda inputs, *_: inputs[0].size)
relu_backward = per_value(
    "relu_backward", "grad, x -> grad_x", RELU_BACKWARD, _relu_backward, lambda inputs, *_: 2 * inputs[0].size
)
CHANCES = "x, float chance -> y, mask; rate"
dropout = per_value("dropout", CHANCES, DROPOUT, _dropout, lambda inputs, *_: 2 * inputs[0].size)
add_row = per_value("add_row", "row -> y", ADD_ROW, _add_row, lambda _, outputs, o: outputs[0].size, updates=True)
"""Adds a row (M,) to each row of y (N, M), in place."""
