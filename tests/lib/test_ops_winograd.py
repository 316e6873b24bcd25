"""Winograd's convolution: its matrices, and what it does not take; `test_ops_conv.py` has its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops_cases import Call

from unrolled import ops


def floats(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def by_4(x: Any, weight: Any, bias: Any) -> Any:
    return ops.winograd_conv2d(x, weight, bias, 1, 1, tile=4)


def by_4_backward(grad: Any, x: Any, weight: Any) -> Any:
    return ops.winograd_conv2d_backward(grad, x, weight, 1, 1, tile=4)


X, WEIGHT, BIAS = floats(2, 3, 6, 5), floats(4, 3, 3, 3), floats(4)
GRAD = floats(2, 4, 6, 5)
by_4.__name__, by_4_backward.__name__ = "winograd_conv2d", "winograd_conv2d_backward"
CALLS = {
    "winograd_conv2d": Call(ops.winograd_conv2d, (X, WEIGHT, BIAS), (1, (1, 2))),
    "winograd_conv2d, no bias": Call(ops.winograd_conv2d, (X, WEIGHT)),
    "winograd_conv2d, 4": Call(by_4, (X, WEIGHT, BIAS)),
    "winograd_conv2d_backward": Call(ops.winograd_conv2d_backward, (GRAD, X, WEIGHT), (1, 1)),
    "winograd_conv2d_backward, 4": Call(by_4_backward, (GRAD, X, WEIGHT)),
}
"""For `test_ops_contract.py`."""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": np.zeros((4, 3, 3, 1))}, r"weight has kernels of \(3, 1\); expected \(3, 3\) for Winograd"),
        ({"stride": (1, 2)}, r"stride is \(1, 2\); expected 1 for Winograd"),
        ({"tile": 3}, "tile is 3; expected 2 or 4"),
    ],
)
def test_what_it_does_not_take_is_named_both_ways(changes: dict[str, Any], message: str) -> None:
    arguments = {"x": np.zeros((2, 3, 8, 8)), "weight": np.zeros((4, 3, 3, 3))} | changes
    with pytest.raises(ValueError, match=message):
        ops.winograd_conv2d(**arguments)
    grad = np.zeros((2, 4, *ops.conv2d_output_size((8, 8), arguments["weight"].shape[2:], changes.get("stride", 1))))
    with pytest.raises(ValueError, match=message):
        ops.winograd_conv2d_backward(grad, **arguments)
